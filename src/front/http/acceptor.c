#include "front/http/acceptor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "net/head.h"

#define LOG_MODULE "http"
#define ROUND_MAX 64             /* connections taken before others get their turn */
#define WAITING_MAX 4096         /* connections that have not asked for anything yet */
#define LOOK_BYTES (16 * 1024)   /* a head that is longer shows enough of itself */
#define SILENT_MS 60000          /* a browser opens connections ahead of its needs */
#define HEAD_MS 15000            /* from the first byte on */
#define PAUSE_MS 100             /* when there are no descriptors left */
#define DEFER_S 10               /* the kernel keeps those that say nothing, for as long */
#define STACK_BYTES (256 * 1024) /* nothing here is deep */

struct waiting {
    struct acceptor *a;
    struct watch watch;
    struct deadline deadline;
    struct later later;
    struct waiting *next, **at;
    int fd;
    size_t seen;
    bool spoken;
    struct sockaddr_storage peer;
    socklen_t peer_len;
};

struct acceptor {
    struct acceptor_config config;
    struct loop *loop;
    pthread_t thread;
    struct watch listen, stop;
    struct deadline pause;
    struct waiting *waiting;
    unsigned nwaiting;
    int stop_fd;
    char look[LOOK_BYTES];
};

enum look { LOOK_MORE, LOOK_HANDED, LOOK_GONE };

static bool begins_a_method(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* What the socket holds so far, and where that leads. *seen: bytes of it without the end of a head. */
static enum look look(struct acceptor *a, int fd, const struct sockaddr *peer, socklen_t peer_len,
                      size_t *seen)
{
    ssize_t n;
    do
        n = recv(fd, a->look, sizeof(a->look), MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return LOOK_MORE;
    if (n <= 0)
        return LOOK_GONE;
    size_t end = head_end(a->look, (size_t)n, *seen);
    *seen = (size_t)n;
    /* What is no HTTP gets the server's own answer to that. */
    if (end == 0 && (size_t)n < sizeof(a->look) && begins_a_method(a->look[0]))
        return LOOK_MORE;
    if (!a->config.divert || !a->config.divert(a->config.arg, fd, a->look, end ? end : (size_t)n))
        a->config.serve(a->config.arg, fd, peer, peer_len);
    return LOOK_HANDED;
}

/* ---- those that have not said enough ---- */

static void free_waiting(struct later *later)
{
    free(container_of(later, struct waiting, later));
}

static void forget(struct waiting *w)
{
    struct acceptor *a = w->a;
    loop_no_deadline(a->loop, &w->deadline);
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    a->nwaiting--;
    loop_defer(a->loop, &w->later, free_waiting);
}

static void drop(struct waiting *w)
{
    loop_remove(w->a->loop, &w->watch);
    (void)close(w->fd);
    forget(w);
}

static void on_deadline(struct deadline *d)
{
    drop(container_of(d, struct waiting, deadline));
}

static void on_bytes(struct watch *watch, uint32_t events)
{
    struct waiting *w = container_of(watch, struct waiting, watch);
    struct acceptor *a = w->a;
    int fd = w->fd;
    /* Out of the loop before somebody else has the descriptor. */
    loop_remove(a->loop, &w->watch);
    switch (look(a, fd, (struct sockaddr *)&w->peer, w->peer_len, &w->seen)) {
    case LOOK_HANDED: forget(w); return;
    case LOOK_GONE: drop(w); return;
    case LOOK_MORE: break;
    }
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) ||
        loop_add(a->loop, &w->watch, fd, EPOLLIN | EPOLLRDHUP | EPOLLET) < 0) {
        drop(w);
        return;
    }
    if (!w->spoken && w->seen > 0)
        loop_deadline(a->loop, &w->deadline, clock_mono_ms() + HEAD_MS, on_deadline);
    w->spoken = w->seen > 0;
}

/* Edge-triggered: what was looked at stays in the socket, and must not wake us again. */
static int wait_for_more(struct acceptor *a, int fd, const struct sockaddr_storage *peer,
                         socklen_t peer_len, size_t seen)
{
    struct waiting *w = a->nwaiting < WAITING_MAX ? calloc(1, sizeof(*w)) : NULL;
    if (!w)
        return -ENOMEM;
    *w = (struct waiting){ .a = a,
                           .watch = { -1, on_bytes },
                           .fd = fd,
                           .seen = seen,
                           .spoken = seen > 0,
                           .peer = *peer,
                           .peer_len = peer_len };
    if (loop_add(a->loop, &w->watch, fd, EPOLLIN | EPOLLRDHUP | EPOLLET) < 0) {
        free(w);
        return -ENOMEM;
    }
    w->next = a->waiting;
    w->at = &a->waiting;
    if (w->next)
        w->next->at = &w->next;
    a->waiting = w;
    a->nwaiting++;
    loop_deadline(a->loop, &w->deadline, clock_mono_ms() + (w->spoken ? HEAD_MS : SILENT_MS),
                  on_deadline);
    return 0;
}

/* ---- new ones ---- */

static void on_paused(struct deadline *d)
{
    struct acceptor *a = container_of(d, struct acceptor, pause);
    if (loop_add(a->loop, &a->listen, a->config.fd, EPOLLIN) < 0)
        log_error("cannot watch the listening socket; no connection will be taken");
}

static void on_listen(struct watch *w, uint32_t events)
{
    struct acceptor *a = container_of(w, struct acceptor, listen);
    for (int i = 0; i < ROUND_MAX; i++) {
        struct sockaddr_storage peer;
        socklen_t n = sizeof(peer);
        size_t seen = 0;
        int fd = accept4(a->config.fd, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
            log_warn("no descriptor is left for a connection; waiting for one");
            loop_remove(a->loop, &a->listen);
            loop_deadline(a->loop, &a->pause, clock_mono_ms() + PAUSE_MS, on_paused);
            return;
        }
        if (fd < 0)
            return;
        enum look l = look(a, fd, (struct sockaddr *)&peer, n, &seen);
        if (l == LOOK_GONE || (l == LOOK_MORE && wait_for_more(a, fd, &peer, n, seen) < 0))
            (void)close(fd);
    }
}

/* ---- life ---- */

static void on_stop(struct watch *w, uint32_t events)
{
    loop_stop(container_of(w, struct acceptor, stop)->loop);
}

static void *run(void *arg)
{
    struct acceptor *a = arg;
    int r = loop_run(a->loop, 0, NULL, NULL);
    if (r < 0)
        log_error("the acceptor failed; no connection will be taken err=%d", -r);
    return NULL;
}

static int start(struct acceptor *a, struct err *err)
{
    const int defer_s = DEFER_S;
    pthread_attr_t attr;
    /* The acceptor wakes up once a connection, when there is something to look at. */
    (void)setsockopt(a->config.fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof(defer_s));
    int r = fd_set_nonblock(a->config.fd, true);
    if (r >= 0)
        r = loop_new(&a->loop);
    a->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (r >= 0 && a->stop_fd < 0)
        r = -errno;
    if (r >= 0)
        r = loop_add(a->loop, &a->stop, a->stop_fd, EPOLLIN);
    if (r >= 0)
        r = loop_add(a->loop, &a->listen, a->config.fd, EPOLLIN);
    if (r < 0)
        return err_set(err, -r, "cannot wait for connections");
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    r = pthread_create(&a->thread, &attr, run, a);
    (void)pthread_attr_destroy(&attr);
    return r ? err_set(err, r, "cannot start a thread for connections") : 0;
}

int acceptor_new(const struct acceptor_config *config, struct acceptor **ret_a, struct err *err)
{
    struct acceptor *a = calloc(1, sizeof(*a));
    if (!a) {
        (void)close(config->fd);
        return err_set(err, ENOMEM, "cannot allocate the acceptor");
    }
    a->config = *config;
    a->listen = (struct watch){ -1, on_listen };
    a->stop = (struct watch){ -1, on_stop };
    a->stop_fd = -1;
    int r = start(a, err);
    if (r < 0) {
        loop_free(a->loop);
        cleanup_close(&a->stop_fd);
        (void)close(a->config.fd);
        free(a);
        return r;
    }
    *ret_a = a;
    return 0;
}

void acceptor_free(struct acceptor *a)
{
    if (!a)
        return;
    const uint64_t one = 1;
    (void)fd_write_full(a->stop_fd, &one, sizeof(one));
    (void)pthread_join(a->thread, NULL);
    while (a->waiting)
        drop(a->waiting);
    loop_free(a->loop);
    (void)close(a->stop_fd);
    (void)close(a->config.fd);
    free(a);
}

#include "front/http/acceptor.h"

#include <errno.h>
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
#define ROUND_MAX 64              /* connections taken before others get their turn */
#define LOOK_BYTES (HEAD_MAX + 1) /* a longer head is refused at once */
#define SILENT_MS 60000           /* a browser opens connections ahead of its needs */
#define AGAIN_MS 60000            /* a client with a key, between two requests */
#define AGAIN_STRANGER_MS 15000   /* a client without one */
#define HEAD_MS 15000             /* a head, from its first byte */
#define PAUSE_MS 100              /* out of descriptors: until the next try */
#define STACK_BYTES (256 * 1024)  /* nothing here is deep */

struct acceptor {
    struct acceptor_config config;
    struct loop *loop;
    pthread_t thread;
    struct watch listen, wake;
    struct deadline pause;
    struct conn *waiting;
    int wake_fd;
    pthread_mutex_t lock; /* guards the rest */
    struct conn *given;   /* handed in by acceptor_take */
    bool stop;
    char look[LOOK_BYTES];
};

enum look { LOOK_MORE, LOOK_ENOUGH, LOOK_GONE };

static bool begins_a_method(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static void discard(struct conn *c)
{
    connections_leave(c->acceptor->config.connections, &c->seat);
    conn_free(c);
}

static bool divert(struct acceptor *a, struct conn *c, size_t n)
{
    if (c->served || !a->config.divert || !a->config.divert(a->config.arg, c->fd, a->look, n))
        return false;
    c->fd = -1;
    discard(c);
    return true;
}

static void serve(struct acceptor *a, struct conn *c)
{
    c->served = true;
    connections_wake(a->config.connections, &c->seat);
    if (a->config.serve(a->config.arg, c) < 0) {
        conn_turn_away(c);
        discard(c);
    }
}

/* Peek at the socket: *ret_n is the length of the head, or of what has come so far. */
static enum look look(struct acceptor *a, struct conn *c, size_t *ret_n)
{
    ssize_t n;
    do
        n = recv(c->fd, a->look, sizeof(a->look), MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return LOOK_MORE;
    if (n <= 0)
        return LOOK_GONE;
    size_t end = head_end(a->look, (size_t)n, c->seen);
    c->seen = (size_t)n;
    *ret_n = end ? end : (size_t)n;
    /* What is no HTTP gets the server's own answer to that. */
    return end == 0 && (size_t)n < sizeof(a->look) && begins_a_method(a->look[0]) ? LOOK_MORE
                                                                                  : LOOK_ENOUGH;
}

/* Divert or serve a connection that has left the loop. `look` holds its head. */
static void hand_on(struct acceptor *a, struct conn *c, enum look l, size_t n)
{
    if (l != LOOK_ENOUGH)
        discard(c);
    else if (!divert(a, c, n))
        serve(a, c);
}

/* ---- waiting connections ---- */

static void free_conn(struct later *later)
{
    conn_free(container_of(later, struct conn, later));
}

static void remember(struct conn *c)
{
    struct acceptor *a = c->acceptor;
    c->next = a->waiting;
    c->at = &a->waiting;
    if (c->next)
        c->next->at = &c->next;
    a->waiting = c;
}

static void forget(struct conn *c)
{
    loop_no_deadline(c->acceptor->loop, &c->deadline);
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
}

static void drop(struct conn *c)
{
    struct acceptor *a = c->acceptor;
    loop_remove(a->loop, &c->watch);
    forget(c);
    (void)close(c->fd);
    c->fd = -1;
    connections_leave(a->config.connections, &c->seat);
    loop_defer(a->loop, &c->later, free_conn);
}

static void on_deadline(struct deadline *d)
{
    drop(container_of(d, struct conn, deadline));
}

static void set_deadline(struct acceptor *a, struct conn *c)
{
    int64_t ms = SILENT_MS;
    if (c->seen > 0)
        ms = HEAD_MS;
    else if (c->served)
        ms = connections_known(&c->seat) ? AGAIN_MS : AGAIN_STRANGER_MS;
    c->spoken = c->seen > 0;
    loop_deadline(a->loop, &c->deadline, clock_mono_ms() + ms, on_deadline);
}

/* Edge-triggered: peeked bytes stay in the socket and must not wake us again. */
static void on_bytes(struct watch *watch, uint32_t events)
{
    struct conn *c = container_of(watch, struct conn, watch);
    struct acceptor *a = c->acceptor;
    size_t n = 0;
    enum look l = look(a, c, &n);
    if (l == LOOK_MORE && !(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))) {
        if (!c->spoken && c->seen > 0)
            set_deadline(a, c);
        return;
    }
    loop_remove(a->loop, &c->watch); /* before another thread has it */
    forget(c);
    hand_on(a, c, l, n);
}

static void on_lease_end(struct watch *watch, uint32_t events)
{
    drop(container_of(watch, struct conn, watch));
}

static void begin_lent(struct acceptor *a, struct conn *c)
{
    c->watch.fn = on_lease_end;
    if (loop_add(a->loop, &c->watch, c->fd, EPOLLRDHUP) < 0)
        discard(c);
    else
        remember(c);
}

/* Start a connection that has a seat: wait for its head, or hand it on. */
static void begin(struct acceptor *a, struct conn *c)
{
    c->acceptor = a;
    if (c->lent) {
        begin_lent(a, c);
        return;
    }
    c->seen = 0;
    c->watch.fn = on_bytes;
    size_t n = 0;
    enum look l = look(a, c, &n);
    if (l != LOOK_MORE || loop_add(a->loop, &c->watch, c->fd, EPOLLIN | EPOLLRDHUP | EPOLLET) < 0) {
        hand_on(a, c, l, n);
        return;
    }
    remember(c);
    connections_wait(a->config.connections, &c->seat);
    set_deadline(a, c);
}

/* ---- new ones ---- */

static void admit(struct acceptor *a, struct conn *c)
{
    struct seat *victim = NULL;
    int r =
        connections_enter(a->config.connections, &c->seat, (struct sockaddr *)&c->peer, &victim);
    c->acceptor = a;
    if (victim)
        drop(container_of(victim, struct conn, seat));
    if (r >= 0) {
        begin(a, c);
        return;
    }
    conn_turn_away(c);
    conn_free(c);
}

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
        struct sockaddr_storage peer = { 0 };
        socklen_t n = sizeof(peer);
        int fd = accept4(a->config.fd, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
            log_warn("no descriptor is left for a connection; waiting for one");
            loop_remove(a->loop, &a->listen);
            loop_deadline(a->loop, &a->pause, clock_mono_ms() + PAUSE_MS, on_paused);
            return;
        }
        if (fd < 0)
            return;
        struct conn *c = conn_new(fd, (struct sockaddr *)&peer, n);
        if (c)
            admit(a, c);
    }
}

void acceptor_take(struct acceptor *a, struct conn *c)
{
    const uint64_t one = 1;
    (void)pthread_mutex_lock(&a->lock);
    c->next = a->given;
    a->given = c;
    (void)pthread_mutex_unlock(&a->lock);
    (void)fd_write_full(a->wake_fd, &one, sizeof(one));
}

static void on_wake(struct watch *w, uint32_t events)
{
    struct acceptor *a = container_of(w, struct acceptor, wake);
    uint64_t n;
    (void)fd_read_full(a->wake_fd, &n, sizeof(n));
    (void)pthread_mutex_lock(&a->lock);
    struct conn *given = a->given;
    bool stop = a->stop;
    a->given = NULL;
    (void)pthread_mutex_unlock(&a->lock);
    while (given) {
        struct conn *c = given;
        given = c->next;
        if (c->seat.taken)
            begin(a, c);
        else
            admit(a, c);
    }
    if (stop)
        loop_stop(a->loop);
}

/* ---- life ---- */

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
    pthread_attr_t attr;
    int r = fd_set_nonblock(a->config.fd, true);
    if (r >= 0)
        r = loop_new(&a->loop);
    a->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (r >= 0 && a->wake_fd < 0)
        r = -errno;
    if (r >= 0)
        r = loop_add(a->loop, &a->wake, a->wake_fd, EPOLLIN);
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

static void release(struct acceptor *a)
{
    loop_free(a->loop);
    cleanup_close(&a->wake_fd);
    (void)close(a->config.fd);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
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
    a->wake = (struct watch){ -1, on_wake };
    a->wake_fd = -1;
    (void)pthread_mutex_init(&a->lock, NULL);
    int r = start(a, err);
    if (r < 0) {
        release(a);
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
    (void)pthread_mutex_lock(&a->lock);
    a->stop = true;
    (void)pthread_mutex_unlock(&a->lock);
    (void)fd_write_full(a->wake_fd, &one, sizeof(one));
    (void)pthread_join(a->thread, NULL);
    while (a->waiting)
        drop(a->waiting);
    release(a);
}

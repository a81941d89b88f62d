#include "broker/link.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/share.h"
#include "wire/broker.h"

#define LOG_MODULE "broker"
#define WAITING_MAX 4096 /* as many questions as there may be connections asking at once */
#define OFFERS_MAX (WAITING_MAX / 4)
#define OFFERERS 256 /* counted apart; sandboxes whose ids fall together share their part */
#define NO_OFFERER OFFERERS
#define FDS_MAX BROKER_FORWARD_FDS
#define ROUND_MAX 64 /* messages read before others get their turn */

struct waiting {
    struct waiting *next;
    int fd;
    unsigned offerer; /* NO_OFFERER: it is no offer */
    size_t size;
    unsigned char msg[];
};

struct link {
    struct loop *loop;
    struct watch watch;
    int fd;
    const struct link_handler *handlers;
    void *arg;
    struct waiting *first, **last;
    size_t nwaiting, n_offers;
    unsigned offers[OFFERERS]; /* that wait */
};

static void waiting_free(struct waiting *w)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    free(w);
}

/* 1: it is with the kernel. */
static int try_send(struct link *l, const void *msg, size_t size, int fd)
{
    int r = fd_try_send_msg(l->fd, msg, size, &fd, fd >= 0 ? 1 : 0);
    return r == -EAGAIN ? 0 : r < 0 ? r : 1;
}

static void flush(struct link *l)
{
    while (l->first) {
        struct waiting *w = l->first;
        if (try_send(l, w->msg, w->size, w->fd) == 0)
            return;
        l->first = w->next;
        l->nwaiting--;
        if (w->offerer != NO_OFFERER) {
            l->offers[w->offerer]--;
            l->n_offers--;
        }
        waiting_free(w);
    }
    l->last = &l->first;
    (void)loop_change(l->loop, &l->watch, EPOLLIN);
}

static void handle(struct link *l, const void *msg, size_t size, const int *fds, size_t nfds)
{
    uint32_t type = 0;
    if (size >= sizeof(type))
        memcpy(&type, msg, sizeof(type));
    for (const struct link_handler *h = l->handlers; h->type; h++)
        if (h->type == type && h->size == size && nfds <= 1 && h->fn) {
            h->fn(l->arg, msg, nfds ? fds[0] : -1);
            return;
        } else if (h->type == type && h->size == size && h->many && h->nfds == nfds) {
            h->many(l->arg, msg, fds);
            return;
        }
    log_warn("a message that is not understood type=%u size=%zu", type, size);
    fd_close_all(fds, nfds);
}

static void fill(struct link *l)
{
    _Alignas(16) unsigned char msg[BROKER_MSG_MAX];
    for (int i = 0; i < ROUND_MAX; i++) {
        int fds[FDS_MAX];
        size_t nfds = 0;
        ssize_t n = fd_recv_msg(l->fd, msg, sizeof(msg), fds, FDS_MAX, &nfds);
        if (n == -EAGAIN)
            return;
        if (n == 0 || (n < 0 && n != -EMSGSIZE)) {
            loop_stop(l->loop); /* warrend is gone, and so are we */
            return;
        }
        if (n > 0)
            handle(l, msg, (size_t)n, fds, nfds);
    }
}

static void on_link(struct watch *w, uint32_t events)
{
    struct link *l = container_of(w, struct link, watch);
    if (events & EPOLLOUT)
        flush(l);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        fill(l);
}

int link_new(struct loop *loop, int fd, const struct link_handler *handlers, void *arg,
             struct link **ret_link, struct err *err)
{
    _cleanup_fd_ int own = fd;
    struct link *l = calloc(1, sizeof(*l));
    if (!l)
        return err_set(err, ENOMEM, "cannot allocate the link to warrend");
    *l = (struct link){ .loop = loop, .watch = { -1, on_link }, .handlers = handlers, .arg = arg };
    l->last = &l->first;
    int r = fd_set_nonblock(own, true);
    if (r >= 0)
        r = loop_add(loop, &l->watch, own, EPOLLIN);
    if (r < 0) {
        free(l);
        return err_set(err, -r, "cannot watch the link to warrend");
    }
    l->fd = take_fd(own);
    *ret_link = l;
    return 0;
}

void link_free(struct link *l)
{
    if (!l)
        return;
    while (l->first) {
        struct waiting *w = l->first;
        l->first = w->next;
        waiting_free(w);
    }
    loop_remove(l->loop, &l->watch);
    (void)close(l->fd);
    free(l);
}

/* 1: it waits. */
static int enqueue(struct link *l, const void *msg, size_t size, int fd, unsigned offerer)
{
    _cleanup_fd_ int own = fd;
    int r = l->first ? 0 : try_send(l, msg, size, own);
    if (r != 0)
        return r < 0 ? r : 0;
    if (l->nwaiting >= WAITING_MAX)
        return -ENOBUFS;
    struct waiting *w = malloc(sizeof(*w) + size);
    if (!w)
        return -ENOMEM;
    *w = (struct waiting){ .fd = take_fd(own), .offerer = offerer, .size = size };
    memcpy(w->msg, msg, size);
    if (!l->first)
        (void)loop_change(l->loop, &l->watch, EPOLLIN | EPOLLOUT);
    *l->last = w;
    l->last = &w->next;
    l->nwaiting++;
    return 1;
}

int link_send(struct link *l, const void *msg, size_t size, int fd)
{
    int r = enqueue(l, msg, size, fd, NO_OFFERER);
    return r < 0 ? r : 0;
}

int link_offer(struct link *l, const char *sandbox, const void *msg, size_t size)
{
    unsigned offerer = (unsigned)(hash_text(sandbox) % OFFERERS);
    if (l->first && l->offers[offerer] >= share(OFFERS_MAX, l->n_offers, OFFERS_MAX))
        return -ENOBUFS;
    int r = enqueue(l, msg, size, -1, offerer);
    if (r > 0) {
        l->offers[offerer]++;
        l->n_offers++;
    }
    return r < 0 ? r : 0;
}

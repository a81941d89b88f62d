#include "broker/link.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fd.h"
#include "base/log.h"
#include "wire/broker.h"

#define LOG_MODULE "broker"
#define WAITING_MAX 4096 /* as many questions as there may be connections asking at once */
#define ROUND_MAX 64     /* messages read before others get their turn */

struct waiting {
    struct waiting *next;
    int fd;
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
    size_t nwaiting;
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
        waiting_free(w);
    }
    l->last = &l->first;
    (void)loop_change(l->loop, &l->watch, EPOLLIN);
}

static void handle(struct link *l, const void *msg, size_t size, int fd)
{
    uint32_t type = 0;
    if (size >= sizeof(type))
        memcpy(&type, msg, sizeof(type));
    for (const struct link_handler *h = l->handlers; h->type; h++)
        if (h->type == type && h->size == size) {
            h->fn(l->arg, msg, fd);
            return;
        }
    log_warn("a message that is not understood type=%u size=%zu", type, size);
    if (fd >= 0)
        (void)close(fd);
}

static void fill(struct link *l)
{
    _Alignas(16) unsigned char msg[BROKER_MSG_MAX];
    for (int i = 0; i < ROUND_MAX; i++) {
        int fd = -1;
        size_t nfds = 0;
        ssize_t n = fd_recv_msg(l->fd, msg, sizeof(msg), &fd, 1, &nfds);
        if (n == -EAGAIN)
            return;
        if (n == 0 || (n < 0 && n != -EMSGSIZE)) {
            loop_stop(l->loop); /* warrend is gone, and so are we */
            return;
        }
        if (n > 0)
            handle(l, msg, (size_t)n, nfds ? fd : -1);
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

int link_send(struct link *l, const void *msg, size_t size, int fd)
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
    *w = (struct waiting){ .fd = take_fd(own), .size = size };
    memcpy(w->msg, msg, size);
    if (!l->first)
        (void)loop_change(l->loop, &l->watch, EPOLLIN | EPOLLOUT);
    *l->last = w;
    l->last = &w->next;
    l->nwaiting++;
    return 0;
}

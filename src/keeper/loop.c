#include "keeper/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ROUND_EVENTS 64

struct loop {
    int epoll;
    bool stop, ticking;
    struct epoll_event round[ROUND_EVENTS];
    int nround;
    void **later;
    size_t nlater, cap_later;
};

int loop_new(struct loop **ret_loop)
{
    struct loop *l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0) {
        int r = -errno;
        free(l);
        return r;
    }
    *ret_loop = l;
    return 0;
}

static void free_later(struct loop *l)
{
    for (size_t i = 0; i < l->nlater; i++)
        free(l->later[i]);
    l->nlater = 0;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    free_later(l);
    free(l->later);
    (void)close(l->epoll);
    free(l);
}

int loop_add(struct loop *l, struct watch *w, int fd, uint32_t events)
{
    struct epoll_event ev = { .events = events, .data.ptr = w };
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
        return -errno;
    w->fd = fd;
    return 0;
}

void loop_remove(struct loop *l, struct watch *w)
{
    if (w->fd < 0)
        return;
    (void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    w->fd = -1;
    for (int i = 0; i < l->nround; i++) /* it may have an event waiting in this very round */
        if (l->round[i].data.ptr == w)
            l->round[i].data.ptr = NULL;
}

void loop_later(struct loop *l, void *p)
{
    if (l->nlater == l->cap_later) {
        size_t cap = l->cap_later ? l->cap_later * 2 : 16;
        void **grown = realloc(l->later, cap * sizeof(*grown));
        if (!grown)
            return; /* out of memory: a leak is the lesser harm than a use after free */
        l->later = grown;
        l->cap_later = cap;
    }
    l->later[l->nlater++] = p;
}

int loop_run(struct loop *l, int tick_ms, void (*tick)(void *arg), void *arg)
{
    while (!l->stop) {
        int n = epoll_wait(l->epoll, l->round, ROUND_EVENTS, l->ticking ? tick_ms : -1);
        if (n < 0 && errno != EINTR)
            return -errno;
        l->nround = n < 0 ? 0 : n;
        for (int i = 0; i < l->nround; i++) {
            struct watch *w = l->round[i].data.ptr;
            if (w)
                w->fn(w, l->round[i].events);
        }
        l->nround = 0;
        if (l->ticking)
            tick(arg);
        free_later(l);
    }
    return 0;
}

void loop_want_tick(struct loop *l, bool on)
{
    l->ticking = on;
}

void loop_stop(struct loop *l)
{
    l->stop = true;
}

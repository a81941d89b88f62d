#include "base/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

#define ROUND_EVENTS 64
#define SLOT_MS 100
#define SLOTS 1024 /* of the wheel; a later deadline waits for another turn of it */

struct loop {
    int epoll;
    bool stop, ticking;
    struct epoll_event round[ROUND_EVENTS];
    int nround;
    void **later;
    size_t nlater, cap_later;
    struct later *deferred;
    struct deadline *wheel[SLOTS];
    size_t ndeadlines;
    int64_t turned;  /* the last slot, counted from the clock's zero, that was looked through */
    int64_t soonest; /* no deadline is in a slot before this one */
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
    l->turned = clock_mono_ms() / SLOT_MS;
    *ret_loop = l;
    return 0;
}

static void free_later(struct loop *l)
{
    for (size_t i = 0; i < l->nlater; i++)
        free(l->later[i]);
    l->nlater = 0;
    while (l->deferred) {
        struct later *d = l->deferred;
        l->deferred = d->next;
        d->fn(d);
    }
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

int loop_change(struct loop *l, struct watch *w, uint32_t events)
{
    struct epoll_event ev = { .events = events, .data.ptr = w };
    return epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &ev) < 0 ? -errno : 0;
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

void loop_defer(struct loop *l, struct later *later, void (*fn)(struct later *later))
{
    later->fn = fn;
    later->next = l->deferred;
    l->deferred = later;
}

/* ---- deadlines ---- */

static void link_deadline(struct deadline **list, struct deadline *d)
{
    d->next = *list;
    d->at = list;
    if (d->next)
        d->next->at = &d->next;
    *list = d;
}

static void unlink_deadline(struct deadline *d)
{
    *d->at = d->next;
    if (d->next)
        d->next->at = d->at;
    d->at = NULL;
}

/* Its slot is the one that ends after it, so that it is never early. */
static int64_t slot_of(const struct deadline *d)
{
    return d->mono_ms / SLOT_MS + 1;
}

void loop_deadline(struct loop *l, struct deadline *d, int64_t mono_ms,
                   void (*fn)(struct deadline *d))
{
    loop_no_deadline(l, d);
    d->mono_ms = mono_ms;
    d->fn = fn;
    int64_t slot = slot_of(d);
    if (slot <= l->turned)
        slot = l->turned + 1;
    link_deadline(&l->wheel[slot % SLOTS], d);
    if (l->ndeadlines++ == 0 || slot < l->soonest)
        l->soonest = slot;
}

void loop_no_deadline(struct loop *l, struct deadline *d)
{
    if (!d->at)
        return;
    unlink_deadline(d);
    l->ndeadlines--;
}

/* A callback may set and clear any deadline, so the due ones are taken off first. */
static void fire_slot(struct loop *l, int64_t slot, int64_t now_slot)
{
    struct deadline *due = NULL, *next;
    for (struct deadline *d = l->wheel[slot % SLOTS]; d; d = next) {
        next = d->next;
        if (slot_of(d) > now_slot)
            continue; /* of a later turn */
        unlink_deadline(d);
        link_deadline(&due, d);
    }
    while (due) {
        struct deadline *d = due;
        loop_no_deadline(l, d);
        d->fn(d);
    }
}

static void turn(struct loop *l)
{
    int64_t now = clock_mono_ms() / SLOT_MS, from = l->turned + 1;
    if (l->ndeadlines == 0 || now < l->soonest) {
        if (now > l->turned && l->ndeadlines == 0)
            l->turned = now;
        return;
    }
    if (from < l->soonest)
        from = l->soonest;
    if (now - from >= SLOTS)
        from = now - SLOTS + 1;
    l->turned = now; /* what a callback sets for now fires in the next round */
    for (int64_t slot = from; slot <= now; slot++)
        fire_slot(l, slot, now);
    l->soonest = now + 1;
    for (int64_t i = 0; i < SLOTS && !l->wheel[l->soonest % SLOTS]; i++)
        l->soonest++;
}

static int wait_ms(const struct loop *l, int tick_ms)
{
    int64_t ms = l->ticking ? tick_ms : -1;
    if (l->ndeadlines > 0) {
        int64_t left = l->soonest * SLOT_MS - clock_mono_ms();
        left = left < 0 ? 0 : left + 1;
        if (ms < 0 || left < ms)
            ms = left;
    }
    return (int)ms;
}

int loop_run(struct loop *l, int tick_ms, void (*tick)(void *arg), void *arg)
{
    while (!l->stop) {
        int n = epoll_wait(l->epoll, l->round, ROUND_EVENTS, wait_ms(l, tick_ms));
        if (n < 0 && errno != EINTR)
            return -errno;
        l->nround = n < 0 ? 0 : n;
        for (int i = 0; i < l->nround; i++) {
            struct watch *w = l->round[i].data.ptr;
            if (w)
                w->fn(w, l->round[i].events);
        }
        l->nround = 0;
        turn(l);
        if (l->ticking)
            tick(arg);
        free_later(l);
    }
    l->stop = false; /* it may be run again */
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

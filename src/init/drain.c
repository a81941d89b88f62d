#include "init/drain.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "init/proc.h"

#define RINGS_MAX (32u * 1024 * 1024) /* of all processes: 128 ended ones with a full ring each */
#define READ_MAX (64u * 1024)         /* a full pipe */
#define SCRATCH_BYTES 4096
#define HUNG_MS 100 /* between two looks at a terminal that nobody has open */

static size_t rings_total;

static void recount(struct proc *p)
{
    size_t now = ring_memory(&p->drain.ring);
    rings_total = rings_total - p->drain.counted + now;
    p->drain.counted = now;
}

static int resize(struct proc *p, size_t cap)
{
    int r = ring_resize(&p->drain.ring, cap);
    recount(p);
    return r;
}

void drain_init(struct proc *p, size_t ring_max)
{
    struct drain *d = &p->drain;
    TAILQ_INIT(&d->viewers);
    ring_init(&d->ring, ring_max);
    for (size_t i = 0; i < ARRAY_LEN(d->streams); i++) {
        d->streams[i].watch.fd = -1;
        d->streams[i].proc = p;
    }
}

void drain_done(struct proc *p)
{
    for (size_t i = 0; i < ARRAY_LEN(p->drain.streams); i++)
        poller_close(&p->drain.streams[i].watch);
    (void)resize(p, 0);
}

bool drain_is_open(const struct proc *p)
{
    return p->drain.streams[0].watch.fd >= 0 || p->drain.streams[1].watch.fd >= 0;
}

void drain_note_owed(struct proc *p)
{
    for (size_t i = 0; i < ARRAY_LEN(p->drain.streams); i++) {
        struct drain_stream *s = &p->drain.streams[i];
        int n = 0;
        if (s->watch.fd >= 0 && ioctl(s->watch.fd, FIONREAD, &n) == 0 && n > 0)
            s->owed = (size_t)n;
    }
}

bool drain_is_settled(const struct proc *p)
{
    return p->drain.streams[0].owed == 0 && p->drain.streams[1].owed == 0;
}

void drain_compact(struct proc *p)
{
    size_t used = (size_t)(p->drain.ring.tail - p->drain.ring.head);
    if (used < p->drain.ring.cap)
        (void)resize(p, used);
}

bool drain_shed(struct proc *p)
{
    struct viewer *v;
    TAILQ_FOREACH(v, &p->drain.viewers, link)
        if (v->output)
            return false;
    if (p->drain.counted == 0)
        return false;
    (void)resize(p, 0);
    return true;
}

/* ---- from the pipes ---- */

void drain_listen(struct proc *p, bool writable)
{
    for (size_t i = 0; i < ARRAY_LEN(p->drain.streams); i++) {
        uint32_t events = p->drain.paused || p->drain.hung ? 0 : EPOLLIN;
        if (writable && i == 0 && !p->drain.hung)
            events |= EPOLLOUT;
        (void)poller_want(&p->drain.streams[i].watch, events);
    }
}

void drain_retry(struct proc *p)
{
    if (!p->drain.hung)
        return;
    p->drain.hung = false;
    drain_listen(p, feed_waits(p));
}

static uint64_t floor_of(const struct proc *p)
{
    uint64_t floor = RING_NO_FLOOR;
    struct viewer *v;
    TAILQ_FOREACH(v, &p->drain.viewers, link)
        if (v->output && v->cursor < floor)
            floor = v->cursor;
    return floor;
}

/* Grow towards what `want` more bytes need, before anything old is let go. */
static void grow(struct proc *p, size_t want)
{
    struct ring *r = &p->drain.ring;
    size_t need = (size_t)(r->tail - r->head) + want;
    size_t cap = r->cap < RING_FIRST ? RING_FIRST : r->cap;
    while (cap < need)
        cap *= 2;
    if (cap > r->max)
        cap = r->max;
    if (cap <= r->cap)
        return;
    size_t more = cap - r->cap;
    while (rings_total + more > RINGS_MAX && procs_shed(p))
        ;
    if (rings_total + more > RINGS_MAX) {
        if (r->cap > 0)
            return;
        cap = RING_FIRST; /* everyone has a page */
    }
    (void)resize(p, cap);
}

static void stream_end(struct drain_stream *s)
{
    struct proc *p = s->proc;
    if (p->terminal) {
        feed_break(p);
        /* Nobody has the terminal open at the moment, as when a program closes its files before it
         * exits. To close our side would send it SIGHUP: look again later, or when it has ended. */
        if (p->phase < PROC_DRAINING) {
            p->drain.hung = true;
            drain_listen(p, false);
            poller_wake_at(clock_mono_ms() + HUNG_MS);
            return;
        }
    }
    poller_close(&s->watch);
    s->owed = 0;
    proc_step(p);
}

static void stream_read(struct drain_stream *s)
{
    struct proc *p = s->proc;
    struct ring *ring = &p->drain.ring;
    uint64_t floor = floor_of(p);
    struct iovec iov[2];
    int avail = 0;

    /* Ask how much there is: room is made by forgetting, and must not be made in vain. */
    (void)ioctl(s->watch.fd, FIONREAD, &avail);
    size_t want = avail < 1 ? 1 : (size_t)avail < READ_MAX ? (size_t)avail : READ_MAX;
    grow(p, want);
    size_t room = ring_room(ring, s->kind, floor);
    if (room == 0 && floor != RING_NO_FLOOR && ring->cap > 0) {
        p->drain.paused = true;
        drain_listen(p, feed_waits(p));
        return;
    }
    char scratch[SCRATCH_BYTES]; /* with no memory for a ring: lost, but the writer goes on */
    int pieces = 1;
    if (room > 0)
        pieces = ring_reserve(ring, s->kind, want < room ? want : room, iov);
    else
        iov[0] = (struct iovec){ scratch, sizeof(scratch) };
    ssize_t n = readv(s->watch.fd, iov, pieces);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        s->owed = 0; /* someone inside took it: a pipe can be opened again through /proc */
        proc_step(p);
        return;
    }
    if (n <= 0) {
        stream_end(s); /* a terminal's end is EIO */
        return;
    }
    if (room > 0)
        (void)ring_commit(ring, s->kind, (size_t)n);
    recount(p);
    s->owed -= s->owed < (size_t)n ? s->owed : (size_t)n;
    viewers_wake(p);
    proc_heard(p);
}

static void stream_on_ready(struct watch *w, uint32_t events)
{
    struct drain_stream *s = container_of(w, struct drain_stream, watch);
    struct proc *p = s->proc;
    if (events & EPOLLOUT)
        feed_step(p);
    if (w->events == 0)
        return;
    if (events & EPOLLIN) {
        stream_read(s);
    } else if (events & (EPOLLHUP | EPOLLERR)) {
        if (p->drain.paused) { /* heard only for its input: its output waits for its reader */
            feed_break(p);
            drain_listen(p, false);
        } else {
            stream_end(s);
        }
    }
}

int drain_open(struct proc *p, int fd, unsigned kind)
{
    for (size_t i = 0; i < ARRAY_LEN(p->drain.streams); i++) {
        struct drain_stream *s = &p->drain.streams[i];
        if (s->watch.fd >= 0)
            continue;
        s->watch = (struct watch){ .fd = fd, .fn = stream_on_ready };
        s->kind = kind;
        return 0;
    }
    return -ENFILE;
}

/* ---- viewers ---- */

/* Read on once a quarter of the ring is free: not for every byte a viewer takes. */
static void resume(struct proc *p)
{
    struct ring *r = &p->drain.ring;
    if (!p->drain.paused)
        return;
    uint64_t floor = floor_of(p);
    if (floor < r->tail && r->cap - (size_t)(r->tail - floor) < r->cap / 4)
        return;
    p->drain.paused = false;
    drain_listen(p, feed_waits(p));
}

void viewer_add(struct viewer *v, struct proc *p, uint64_t since)
{
    v->proc = p;
    v->cursor = since < p->drain.ring.tail ? since : p->drain.ring.tail;
    TAILQ_INSERT_TAIL(&p->drain.viewers, v, link);
}

void viewer_remove(struct viewer *v)
{
    struct proc *p = v->proc;
    if (!p)
        return;
    TAILQ_REMOVE(&p->drain.viewers, v, link);
    v->proc = NULL;
    resume(p);
}

void viewer_moved(struct viewer *v)
{
    resume(v->proc);
}

void viewers_wake(struct proc *p)
{
    struct viewer *v;
    TAILQ_FOREACH(v, &p->drain.viewers, link)
        v->wake(v);
}

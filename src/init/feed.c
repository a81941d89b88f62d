#include "init/feed.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "init/proc.h"

#define BROKEN_MS 20 /* between a process closing its files and our hearing of its end */

static const char end_of_transmission[] = "\x04"; /* what a terminal's user types to end input */

void feed_init(struct proc *p)
{
    p->feed.watch.fd = -1;
    TAILQ_INIT(&p->feed.line);
}

static void on_ready(struct watch *w, uint32_t events)
{
    feed_step(container_of(w, struct proc, feed.watch));
}

void feed_open(struct proc *p, int fd)
{
    p->feed.watch = (struct watch){ .fd = fd, .fn = on_ready };
}

static int input_fd(const struct proc *p)
{
    return p->terminal ? p->drain.streams[0].watch.fd : p->feed.watch.fd;
}

bool feed_waits(const struct proc *p)
{
    return !TAILQ_EMPTY(&p->feed.line);
}

static void finish(struct feeder *f, int r)
{
    feed_remove(f);
    f->done(f, r);
}

/* Hear of room only while someone waits for it: a pipe nobody reads any more would never stop
 * reporting that. */
static void listen_for_room(struct proc *p)
{
    if (p->terminal)
        drain_listen(p, feed_waits(p));
    else
        (void)poller_want(&p->feed.watch, feed_waits(p) ? EPOLLOUT : 0);
}

void feed_add(struct proc *p, struct feeder *f)
{
    if (f->eof && p->terminal) {
        f->p = end_of_transmission;
        f->n = 1;
        f->eof = false;
    }
    f->proc = p;
    TAILQ_INSERT_TAIL(&p->feed.line, f, link);
    if (p->phase >= PROC_DRAINING)
        finish(f, -ESRCH);
    else if (input_fd(p) < 0)
        finish(f, -EPIPE);
    else if (TAILQ_FIRST(&p->feed.line) == f)
        feed_step(p);
}

void feed_remove(struct feeder *f)
{
    struct proc *p = f->proc;
    if (!p)
        return;
    TAILQ_REMOVE(&p->feed.line, f, link);
    f->proc = NULL;
    listen_for_room(p);
}

void feed_step(struct proc *p)
{
    struct feeder *f;
    while ((f = TAILQ_FIRST(&p->feed.line)) && p->feed.broken_at == 0) {
        while (f->n > 0) {
            ssize_t n = write(input_fd(p), f->p, f->n);
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0 && errno == EAGAIN) {
                listen_for_room(p);
                return;
            }
            if (n < 0) {
                feed_break(p);
                return;
            }
            f->p += n;
            f->n -= (size_t)n;
        }
        if (f->eof)
            poller_close(&p->feed.watch);
        bool closed = f->eof;
        finish(f, 0);
        if (closed)
            feed_end(p, -EPIPE);
    }
}

void feed_break(struct proc *p)
{
    poller_close(&p->feed.watch);
    if (!feed_waits(p) || p->feed.broken_at != 0)
        return;
    p->feed.broken_at = clock_mono_ms() + BROKEN_MS;
    poller_wake_at(p->feed.broken_at);
}

void feed_tick(struct proc *p, int64_t now)
{
    if (p->feed.broken_at == 0)
        return;
    if (now >= p->feed.broken_at)
        feed_end(p, -EPIPE);
    else
        poller_wake_at(p->feed.broken_at);
}

void feed_end(struct proc *p, int r)
{
    p->feed.broken_at = 0;
    struct feeder *f;
    poller_close(&p->feed.watch);
    while ((f = TAILQ_FIRST(&p->feed.line)))
        finish(f, r);
}

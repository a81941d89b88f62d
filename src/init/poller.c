#include "init/poller.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

#define EVENTS_MAX 64 /* of one round; the rest is heard in the next */

static struct {
    int epoll_fd;
    int64_t wake_at; /* INT64_MAX: nothing is due */
    bool again;
} poller = { .epoll_fd = -1, .wake_at = INT64_MAX };

int poller_open(void)
{
    poller.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return poller.epoll_fd < 0 ? -errno : 0;
}

int poller_want(struct watch *w, uint32_t events)
{
    if (w->fd < 0 || w->events == events)
        return 0;
    struct epoll_event ev = { .events = events, .data.ptr = w };
    int op = events == 0 ? EPOLL_CTL_DEL : w->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(poller.epoll_fd, op, w->fd, &ev) < 0)
        return -errno;
    w->events = events;
    return 0;
}

void poller_close(struct watch *w)
{
    if (w->fd < 0)
        return;
    (void)poller_want(w, 0);
    (void)close(w->fd);
    w->fd = -1;
    w->events = 0;
}

void poller_wake_at(int64_t mono_ms)
{
    if (mono_ms < poller.wake_at)
        poller.wake_at = mono_ms;
}

void poller_again(void)
{
    poller.again = true;
}

static int sleep_ms(void)
{
    if (poller.again)
        return 0;
    if (poller.wake_at == INT64_MAX)
        return -1;
    int64_t left = poller.wake_at - clock_mono_ms();
    return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

bool poller_round(void)
{
    struct epoll_event evs[EVENTS_MAX];
    int n = epoll_wait(poller.epoll_fd, evs, EVENTS_MAX, sleep_ms());
    poller.again = false;
    for (int i = 0; i < n; i++) {
        struct watch *w = evs[i].data.ptr;
        /* Dropped by an earlier one of this round: its object still lives, until the round ends. */
        if (w->events != 0)
            w->fn(w, evs[i].events);
    }
    if (poller.wake_at == INT64_MAX || clock_mono_ms() < poller.wake_at)
        return false;
    poller.wake_at = INT64_MAX;
    return true;
}

/* poller - the event loop's ears: descriptors, and the next moment something is due.
 *
 * One epoll, level-triggered. A watch lives in the object it serves. Dropping a watch takes it
 * out of the kernel's set before the descriptor is closed: a child between fork and exec holds
 * copies of our descriptors, and would keep a closed one reporting. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct watch {
    int fd;          /* -1: closed */
    uint32_t events; /* what epoll was asked for; 0: not in its set */
    void (*fn)(struct watch *w, uint32_t events);
};

#define WATCH_INIT \
    {              \
        .fd = -1   \
    }

int poller_open(void);

/* Ask for these events from now on; 0 takes it out of the set, so that not even a hang-up is
 * heard. The watch keeps its descriptor. */
int poller_want(struct watch *w, uint32_t events);
void poller_close(struct watch *w); /* out of the set, and the descriptor closed; twice is fine */

/* Be awake at this monotonic moment at the latest. */
void poller_wake_at(int64_t mono_ms);
void poller_again(void); /* do not sleep before the next round */

/* Sleep, then call the watches that have something. True when a moment asked for has come:
 * those who asked look at their clocks and ask again. */
bool poller_round(void);

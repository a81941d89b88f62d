/* sweep - ending every process of the sandbox but ourselves: asked first, then killed.
 *
 * Those who wait for it are told once nobody is left, or once the kill has had its time. As
 * pid 1 we reach all of the namespace; otherwise (in a test) only what was started here. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct sweep_waiter {
    TAILQ_ENTRY(sweep_waiter) link;
    bool waiting;
    void (*done)(struct sweep_waiter *w);
};

bool sweep_is_on(void);
void sweep_begin(struct sweep_waiter *w, uint64_t grace_ms); /* joins the one that is on */
void sweep_cancel(struct sweep_waiter *w);                   /* the sweep itself goes on */
void sweep_tick(int64_t now);

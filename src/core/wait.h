/* wait - condition variables on the monotonic clock, so that setting the wall clock wakes and
 * delays nobody. */
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <time.h>

static inline void wait_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
}

/* ETIMEDOUT once clock_mono_ms() has reached until_ms; wakes early as any condition does. */
static inline int wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ms)
{
    struct timespec at = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };
    return pthread_cond_timedwait(cond, lock, &at);
}

/* budget - work per second for callers who have not shown a key yet, all of them together.
 *
 * Unspent work is kept for one second. A call is a few lines under a lock; the caller brings the
 * clock. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
    pthread_mutex_t lock;
    uint64_t per_s;
    uint64_t left;
    int64_t at_us; /* when `left` was right; 0: never */
};
#define BUDGET_INIT(per_s_)                                                    \
    {                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER, .per_s = (per_s_), .left = (per_s_) \
    }

/* False, and nothing is spent, if less is left. A cost above a second's worth counts as a
 * second's worth. */
bool budget_spend(struct budget *b, uint64_t cost, int64_t mono_us);

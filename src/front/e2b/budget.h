/* budget - how much work may be done for callers who have shown nothing yet: so much a second, all of
 * them together. What is not spent is kept for one second. A call is a few lines under a lock; the
 * clock comes from outside. */
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

/* False, and nothing is spent, where there is not as much left. What costs more than a second's worth
 * costs that. */
bool budget_spend(struct budget *b, uint64_t cost, int64_t mono_us);

#include "front/e2b/budget.h"

#define SECOND_US 1000000

bool budget_spend(struct budget *b, uint64_t cost, int64_t mono_us)
{
    (void)pthread_mutex_lock(&b->lock);
    uint64_t past = b->at_us && mono_us > b->at_us ? (uint64_t)(mono_us - b->at_us) : 0;
    uint64_t more = past >= SECOND_US ? b->per_s : b->per_s * past / SECOND_US;
    if (more || !b->at_us) { /* no unit yet: keep at_us, so that no fraction is lost */
        b->left = more < b->per_s - b->left ? b->left + more : b->per_s;
        b->at_us = mono_us;
    }
    cost = cost < b->per_s ? cost : b->per_s;
    bool fits = cost <= b->left;
    if (fits)
        b->left -= cost;
    (void)pthread_mutex_unlock(&b->lock);
    return fits;
}

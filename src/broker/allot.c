#include "broker/allot.h"

#define BURST_MS 250 /* of bytes: more than the loop's clock is coarse */
#define BURST_MIN (64 * 1024)

void allot_init(struct allot *a)
{
    *a = (struct allot){ 0 };
    a->last = &a->first;
}

/* ---- buckets ---- */

static void fill(struct bucket *b, uint64_t rate, int64_t most, int64_t now_ms)
{
    int64_t span = now_ms - b->at_ms;
    b->at_ms = now_ms;
    if (span <= 0)
        return;
    if (span > 60000)
        span = 60000; /* fills any: and no product overflows */
    int64_t more = (int64_t)(rate / 1000) * span + (int64_t)(rate % 1000) * span / 1000;
    b->level = b->level + more > most ? most : b->level + more;
}

static int64_t burst(uint64_t bytes_per_s)
{
    int64_t n = (int64_t)(bytes_per_s / 1000 * BURST_MS);
    return n > BURST_MIN ? n : BURST_MIN;
}

void allot_set(struct allot *a, const struct allot_limits *limits, uint64_t spent, int64_t now_ms)
{
    a->limits = *limits;
    if (spent > a->spent)
        a->spent = spent;
    a->begun = (struct bucket){ (int64_t)limits->connections_per_s * 1000, now_ms };
    for (int i = 0; i < ALLOT_WAYS; i++)
        a->bytes[i] = (struct bucket){ burst(limits->bytes_per_s), now_ms };
}

bool allot_is_spent(const struct allot *a)
{
    return a->limits.bytes && a->spent >= a->limits.bytes;
}

bool allot_admit(struct allot *a, size_t open, int64_t now_ms, enum policy_why *ret_why)
{
    const struct allot_limits *l = &a->limits;
    if (allot_is_spent(a)) {
        *ret_why = POLICY_BY_BYTES;
        return false;
    }
    if (l->connections && open >= l->connections) {
        *ret_why = POLICY_BY_CONNECTIONS;
        return false;
    }
    if (l->connections_per_s == 0)
        return true;
    /* In thousandths, so that a few a second come evenly. */
    fill(&a->begun, (uint64_t)l->connections_per_s * 1000, (int64_t)l->connections_per_s * 1000,
         now_ms);
    if (a->begun.level < 1000) {
        *ret_why = POLICY_BY_PACE;
        return false;
    }
    a->begun.level -= 1000;
    return true;
}

size_t allot_may(struct allot *a, enum allot_way way, int64_t now_ms)
{
    struct bucket *b = &a->bytes[way];
    size_t left = a->limits.bytes == 0 ? SIZE_MAX
                  : allot_is_spent(a)  ? 0
                                       : (size_t)(a->limits.bytes - a->spent);
    if (a->limits.bytes_per_s == 0 || left == 0)
        return left;
    fill(b, a->limits.bytes_per_s, burst(a->limits.bytes_per_s), now_ms);
    if (b->level <= 0)
        return 0;
    /* One does not take what the others wait for. */
    size_t share = (size_t)b->level / (a->n_waiting + 1);
    share = share > ALLOT_SHARE_MIN ? share : ALLOT_SHARE_MIN;
    return share < left ? share : left;
}

void allot_spend(struct allot *a, enum allot_way way, uint64_t bytes)
{
    a->spent += bytes;
    if (a->limits.bytes_per_s)
        a->bytes[way].level -= (int64_t)bytes;
}

/* ---- those that wait ---- */

void allot_wait(struct allot *a, struct allot_wait *w, void (*fn)(struct allot_wait *wait))
{
    if (w->at)
        return;
    w->fn = fn;
    w->next = NULL;
    w->at = a->last;
    *a->last = w;
    a->last = &w->next;
    a->n_waiting++;
}

void allot_wait_end(struct allot *a, struct allot_wait *w)
{
    if (!w->at)
        return;
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    else
        a->last = w->at;
    w->at = NULL;
    a->n_waiting--;
}

void allot_wake(struct allot *a)
{
    for (size_t n = a->n_waiting; n > 0 && a->first; n--) {
        struct allot_wait *w = a->first;
        allot_wait_end(a, w);
        w->fn(w);
    }
}

#include "front/http/limiter.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/id.h"

#define SLOTS 4096
#define NEIGHBOURS 8      /* places that a key may have */
#define SECRET_LEN_MIN 16 /* as for comparing keys */

struct slot {
    uint64_t who; /* 0: free */
    int64_t seen_us;
    double tokens;
};

struct limiter {
    pthread_mutex_t lock;
    double rate, burst;
    uint64_t seed;
    struct slot slots[SLOTS];
};

int limiter_new(unsigned rate, unsigned burst, struct limiter **ret_l, struct err *err)
{
    *ret_l = NULL;
    if (rate == 0)
        return 0;
    _cleanup_(limiter_freep) struct limiter *l = calloc(1, sizeof(*l));
    if (!l)
        return err_set(err, ENOMEM, "cannot allocate the rate limits");
    (void)pthread_mutex_init(&l->lock, NULL);
    l->rate = rate;
    l->burst = burst > 0 ? burst : 1;
    int r = random_bytes(&l->seed, sizeof(l->seed));
    if (r < 0)
        return err_set(err, -r, "cannot get random bytes");
    *ret_l = take_ptr(l);
    return 0;
}

void limiter_free(struct limiter *l)
{
    if (!l)
        return;
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}

uint64_t limiter_who(const struct limiter *l, const char *key)
{
    const char *mark = strrchr(key, '_');
    if (mark && strlen(mark + 1) >= SECRET_LEN_MIN)
        key = mark + 1;
    uint64_t hash = hash_more(HASH_SEED ^ l->seed, key, strlen(key));
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

/* Its bucket, full if it is new. */
static struct slot *find(struct limiter *l, uint64_t who, int64_t mono_us)
{
    struct slot *oldest = NULL;
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        struct slot *s = &l->slots[(who + i) % SLOTS];
        if (s->who == who)
            return s;
        if (!oldest || !s->who || (oldest->who && s->seen_us < oldest->seen_us))
            oldest = s;
    }
    *oldest = (struct slot){ .who = who, .seen_us = mono_us, .tokens = l->burst };
    return oldest;
}

static unsigned seconds_for(double tokens, double rate)
{
    double s = tokens / rate;
    unsigned whole = (unsigned)s;
    return whole + (s > whole);
}

bool limiter_take(struct limiter *l, uint64_t who, int64_t mono_us, struct limiter_state *ret_s)
{
    (void)pthread_mutex_lock(&l->lock);
    struct slot *s = find(l, who, mono_us);
    if (mono_us > s->seen_us) {
        s->tokens += (double)(mono_us - s->seen_us) / 1e6 * l->rate;
        s->seen_us = mono_us;
    }
    if (s->tokens > l->burst)
        s->tokens = l->burst;
    bool ok = s->tokens >= 1;
    if (ok)
        s->tokens -= 1;
    double left = s->tokens;
    (void)pthread_mutex_unlock(&l->lock);
    *ret_s = (struct limiter_state){ .limit = (unsigned)l->burst,
                                     .remaining = (unsigned)left,
                                     .reset_s = seconds_for(l->burst - left, l->rate),
                                     .retry_s = ok ? 0 : seconds_for(1 - left, l->rate) };
    return ok;
}

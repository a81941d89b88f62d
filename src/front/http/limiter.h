/* limiter - how many requests a key may make: a bucket of tokens each, filled at a steady rate.
 *
 * The table has a fixed number of places; where a new key needs one, the bucket that was left
 * alone for longest gives its place away, so many keys can make the limit softer, never wrong.
 * A call is a few lines under a lock; the clock comes from outside. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct limiter;

struct limiter_state {
    unsigned limit, remaining;
    unsigned reset_s; /* until the bucket is full again */
    unsigned retry_s; /* after a refusal: until there is a token */
};

/* `rate` tokens a second, at most `burst` of them; rate 0: *ret_l is NULL, nothing is limited. */
int limiter_new(unsigned rate, unsigned burst, struct limiter **ret_l, struct err *err);
void limiter_free(struct limiter *l);
DEFINE_FREEP(struct limiter *, limiter_free)

/* The number that stands for a key. Its prefix is decoration and does not count. */
uint64_t limiter_who(const struct limiter *l, const char *key);
/* Takes a token: false if there is none. */
bool limiter_take(struct limiter *l, uint64_t who, int64_t mono_us, struct limiter_state *ret_s);

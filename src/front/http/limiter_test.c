#include "front/http/limiter.h"

#include "base/check.h"

TEST(a_bucket_empties_and_fills_again)
{
    _cleanup_(limiter_freep) struct limiter *l = NULL;
    struct limiter_state s;
    int64_t now = 1000000;

    CHECK_OK(limiter_new(10, 3, &l, NULL));
    for (unsigned i = 0; i < 3; i++) {
        CHECK(limiter_take(l, 1, now, &s));
        CHECK_EQ(s.remaining, 2 - i);
        CHECK_EQ(s.limit, 3);
    }
    CHECK(!limiter_take(l, 1, now, &s));
    CHECK_EQ(s.retry_s, 1);
    CHECK_EQ(s.reset_s, 1);
    CHECK(limiter_take(l, 2, now, &s)); /* another key has its own */
    CHECK(!limiter_take(l, 1, now + 99000, &s));
    CHECK(limiter_take(l, 1, now + 101000, &s));
    CHECK(!limiter_take(l, 1, now + 102000, &s));
    CHECK(limiter_take(l, 1, now + 60000000, &s));
    CHECK_EQ(s.remaining, 2); /* never more than the burst */
    CHECK(
        limiter_take(l, 1, now, &s)); /* a clock that goes back gives nothing and breaks nothing */
}

TEST(keys_are_told_apart_without_their_prefix)
{
    _cleanup_(limiter_freep) struct limiter *l = NULL;
    CHECK_OK(limiter_new(1, 1, &l, NULL));
    CHECK(limiter_who(l, "warren_0123456789abcdef0") == limiter_who(l, "e2b_0123456789abcdef0"));
    CHECK(limiter_who(l, "warren_0123456789abcdef0") != limiter_who(l, "warren_0123456789abcdef1"));
    CHECK(limiter_who(l, "my_key") != limiter_who(l, "your_key"));
}

TEST(more_keys_than_places_are_all_served)
{
    _cleanup_(limiter_freep) struct limiter *l = NULL;
    struct limiter_state s;
    CHECK_OK(limiter_new(1, 1, &l, NULL));
    for (uint64_t who = 1; who < 20000; who++)
        CHECK(limiter_take(l, who, (int64_t)who, &s));
}

TEST(no_rate_is_no_limit)
{
    struct limiter *l = NULL;
    CHECK_OK(limiter_new(0, 5, &l, NULL));
    CHECK(l == NULL);
}

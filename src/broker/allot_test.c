#include "broker/allot.h"

#include "base/check.h"
#include "base/cleanup.h"

TEST(without_limits_everything_may_be)
{
    struct allot a;
    enum policy_why why;
    allot_init(&a);
    CHECK(allot_admit(&a, 100000, 1, &why));
    CHECK_EQ(allot_may(&a, ALLOT_SENT, 1), SIZE_MAX);
    allot_spend(&a, ALLOT_SENT, 1ull << 50);
    CHECK(!allot_is_spent(&a));
    CHECK(allot_admit(&a, 0, 1, &why));
}

TEST(connections_are_counted_and_paced)
{
    const struct allot_limits l = { .connections = 3, .connections_per_s = 2 };
    struct allot a;
    enum policy_why why = POLICY_BY_RULE;
    allot_init(&a);
    allot_set(&a, &l, 0, 1000);
    CHECK(!allot_admit(&a, 3, 1000, &why));
    CHECK_EQ(why, POLICY_BY_CONNECTIONS);
    CHECK(allot_admit(&a, 0, 1000, &why));
    CHECK(allot_admit(&a, 1, 1000, &why));
    CHECK(!allot_admit(&a, 2, 1499, &why));
    CHECK_EQ(why, POLICY_BY_PACE);
    CHECK(allot_admit(&a, 2, 1500, &why));
    CHECK(!allot_admit(&a, 2, 1500, &why));
    CHECK(allot_admit(&a, 2, 900000, &why)); /* a long pause saves up no more than a second's */
    CHECK(allot_admit(&a, 2, 900000, &why));
    CHECK(!allot_admit(&a, 2, 900000, &why));
}

TEST(the_sum_of_bytes_ends_it)
{
    const struct allot_limits l = { .bytes = 1000 };
    struct allot a;
    enum policy_why why;
    allot_init(&a);
    allot_set(&a, &l, 400, 1000);
    allot_spend(&a, ALLOT_SENT, 599);
    CHECK(!allot_is_spent(&a));
    CHECK(allot_admit(&a, 0, 1000, &why));
    CHECK_EQ(allot_may(&a, ALLOT_RECEIVED, 1000), 1);
    allot_spend(&a, ALLOT_RECEIVED, 1);
    CHECK_EQ(allot_may(&a, ALLOT_RECEIVED, 1000), 0);
    CHECK(allot_is_spent(&a));
    CHECK(!allot_admit(&a, 0, 1000, &why));
    CHECK_EQ(why, POLICY_BY_BYTES);
    allot_set(&a, &l, 0, 1000); /* what it knows is more */
    CHECK(allot_is_spent(&a));
}

TEST(bytes_come_at_the_rate_that_was_said)
{
    const struct allot_limits l = { .bytes_per_s = 1000000 };
    struct allot a;
    uint64_t passed = 0;
    allot_init(&a);
    allot_set(&a, &l, 0, 0);
    for (int64_t now = 0; now <= 10000; now += 100) {
        size_t n = allot_may(&a, ALLOT_RECEIVED, now);
        passed += n;
        allot_spend(&a, ALLOT_RECEIVED, n);
    }
    CHECK(passed >= 10000000);
    CHECK(passed <= 10000000 + 250000 + ALLOT_SHARE_MIN);
    CHECK(allot_may(&a, ALLOT_SENT, 10000) > 0); /* the other way is another bucket */
}

static unsigned called[3];
static struct allot shared;
static struct allot_wait waits[3];

static void again(struct allot_wait *w)
{
    called[w - waits]++;
    allot_wait(&shared, w, again);
}

TEST(those_that_wait_are_called_once_in_their_order_and_may_leave)
{
    allot_init(&shared);
    for (int i = 0; i < 3; i++)
        allot_wait(&shared, &waits[i], again);
    allot_wake(&shared);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(called[i], 1);
    allot_wait_end(&shared, &waits[2]);
    allot_wait_end(&shared, &waits[2]);
    allot_wait_end(&shared, &waits[0]);
    allot_wake(&shared);
    CHECK_EQ(called[0], 1);
    CHECK_EQ(called[1], 2);
    CHECK_EQ(shared.n_waiting, 1);
    allot_wait_end(&shared, &waits[1]);
    CHECK(shared.first == NULL);
    CHECK(shared.last == &shared.first);
}

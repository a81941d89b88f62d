#include "front/e2b/budget.h"

#include "base/check.h"

TEST(a_budget_is_spent_and_comes_back_with_time)
{
    struct budget b = BUDGET_INIT(1000);
    CHECK(budget_spend(&b, 600, 1));
    CHECK(budget_spend(&b, 400, 1));
    CHECK(!budget_spend(&b, 1, 1));
    CHECK(!budget_spend(&b, 101, 100001)); /* a tenth of a second later */
    CHECK(budget_spend(&b, 100, 100001));
    CHECK(!budget_spend(&b, 1, 100001));
}

TEST(no_more_than_a_second_is_kept)
{
    struct budget b = BUDGET_INIT(1000);
    CHECK(budget_spend(&b, 1, 1));
    CHECK(budget_spend(&b, 1000, 3600ll * 1000000));
    CHECK(!budget_spend(&b, 1, 3600ll * 1000000));
    CHECK(budget_spend(&b, UINT64_MAX, 3602ll * 1000000)); /* costs a second's worth at most */
}

TEST(many_small_steps_of_time_are_not_lost)
{
    struct budget b = BUDGET_INIT(1000);
    CHECK(budget_spend(&b, 1000, 1));
    for (int64_t t = 2; t < 1001; t++)
        CHECK(!budget_spend(&b, 1, t));
    CHECK(budget_spend(&b, 1, 1001));
}

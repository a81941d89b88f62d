#include "core/autosave.h"

#include "base/check.h"

#define HOUR (3600 * 1000ll)

static size_t kept(const struct autosave *a, const int64_t *at, size_t n, int64_t now, bool *keep)
{
    size_t left = 0;
    autosave_thin(a, at, n, now, keep);
    for (size_t i = 0; i < n; i++)
        left += keep[i];
    return left;
}

TEST(without_a_rule_the_last_ten_stay)
{
    struct autosave a = { .every_ms = 1000 };
    int64_t at[25];
    bool keep[25];
    for (int i = 0; i < 25; i++)
        at[i] = i * 1000;
    CHECK_EQ(kept(&a, at, 25, 25000, keep), 10);
    CHECK(!keep[14]);
    CHECK(keep[15]);
    CHECK(keep[24]);
}

TEST(any_rule_keeps_one)
{
    struct autosave a = { .keep_last = 2, .keep_hourly = 3, .keep_ms = 5000 };
    /* three hours ago: two; an hour ago: two; now: three within some seconds */
    const int64_t at[] = { 10 * HOUR, 10 * HOUR + 1, 12 * HOUR,         12 * HOUR + 5,
                           13 * HOUR, 13 * HOUR + 1, 13 * HOUR + 10000, 13 * HOUR + 10001 };
    bool keep[8];
    CHECK_EQ(kept(&a, at, 8, 13 * HOUR + 10002, keep), 4);
    CHECK(keep[1] && keep[3] && keep[6] && keep[7]);
    a.keep_hourly = 1;
    CHECK_EQ(kept(&a, at, 8, 13 * HOUR + 10002, keep), 2);
    a.keep_ms = 2 * HOUR;
    CHECK_EQ(kept(&a, at, 8, 13 * HOUR + 10002, keep), 6);
}

TEST(the_youngest_stays_however_old_it_is)
{
    struct autosave a = { .keep_ms = 1000 };
    const int64_t at[] = { 1, 2 };
    bool keep[2];
    CHECK_EQ(kept(&a, at, 2, 100 * HOUR, keep), 1);
    CHECK(keep[1]);
}

TEST(there_is_an_end_to_them)
{
    static int64_t at[AUTOSAVE_MOST + 50];
    static bool keep[AUTOSAVE_MOST + 50];
    struct autosave a = { .keep_ms = 100 * HOUR };
    CHECK_EQ(kept(&a, at, AUTOSAVE_MOST + 50, 1, keep), AUTOSAVE_MOST);
    CHECK(!keep[0]);
}

TEST(a_policy_survives_its_form_at_rest)
{
    struct autosave b, a = { .every_ms = 60000,
                             .before_command = true,
                             .on_stop = true,
                             .keep_last = 3,
                             .keep_hourly = 4,
                             .keep_daily = 5,
                             .keep_ms = 6 };
    json_t *o = autosave_to_json(&a);
    autosave_from_json(o, &b);
    json_decref(o);
    CHECK_EQ(b.every_ms, 60000);
    CHECK(b.before_command && b.on_stop);
    CHECK_EQ(b.keep_last + b.keep_hourly + b.keep_daily, 12);
    CHECK_EQ(b.keep_ms, 6);
    autosave_from_json(NULL, &b);
    CHECK(!autosave_any(&b));
}

TEST(one_that_is_late_is_due_at_once)
{
    struct autosave a = { .every_ms = 1000 };
    CHECK_EQ(autosave_next(&a, 5000, 5100), 6000);
    CHECK_EQ(autosave_next(&a, 5000, 9000), 9000);
    a.every_ms = 0;
    CHECK_EQ(autosave_next(&a, 5000, 9000), 0);
}

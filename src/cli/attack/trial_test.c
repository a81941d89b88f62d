#include "base/check.h"
#include "cli/attack/attack.h"

TEST(the_first_broke_stays)
{
    struct trial t = { 0 };
    trial_held(&t, "so far");
    trial_broke(&t, "a hole of %d", 7);
    trial_held(&t, "after all");
    trial_error(&t, "and could not");
    CHECK_EQ(t.verdict, TRIAL_BROKE);
    CHECK_STR(t.why, "a hole of 7");
}

TEST(one_hole_among_many_walls_is_the_exit_status)
{
    struct report r;
    struct trial held = { 0 }, broke = { 0 }, error = { 0 };
    trial_held(&held, "x");
    trial_broke(&broke, "x");
    trial_error(&error, "x");
    report_begin(&r, true, 2);
    report_add(&r, "a", "c", "t", &held);
    CHECK_EQ(report_end(&r), 0);
    report_begin(&r, true, 2);
    report_add(&r, "a", "c", "t", &error);
    report_add(&r, "b", "c", "t", &held);
    CHECK_EQ(report_end(&r), 2);
    report_begin(&r, true, 3);
    report_add(&r, "a", "c", "t", &error);
    report_add(&r, "b", "c", "t", &broke);
    report_add(&r, "c", "c", "t", &held);
    CHECK_EQ(report_end(&r), 1);
}

TEST(percentiles_of_a_few_are_among_them)
{
    double v[] = { 5, 1, 4, 2, 3 };
    qsort(v, ARRAY_LEN(v), sizeof(v[0]), latency_compare);
    CHECK(latency_of_sorted(v, ARRAY_LEN(v), 0.5) == 3);
    CHECK(latency_of_sorted(v, ARRAY_LEN(v), 0.99) == 5);
    CHECK(latency_of_sorted(v, 0, 0.5) == 0);
}

TEST(the_list_comes_from_the_program_inside)
{
    struct inside_list list = { NULL, 0 };
    struct err err = ERR_INIT;
    CHECK_OK(inside_list(&list, &err));
    CHECK(list.n > 120);
    for (size_t i = 0; i < list.n; i++)
        for (size_t k = i + 1; k < list.n; k++)
            CHECK(strcmp(list.rows[i].name, list.rows[k].name) != 0);
    inside_list_done(&list);
}

#include "core/meter.h"

#include "base/check.h"

#define GIB (1024ull * 1024 * 1024)
#define GAP 30000

static bool about(double a, double b)
{
    return a > b - 1e-6 && a < b + 1e-6;
}

TEST(cpu_is_the_difference_and_memory_the_mean)
{
    struct meter m = { 0 };
    meter_start(&m, 1000, 0);
    struct meter_reading r = { .cpu_us = 500, .memory_bytes = GIB, .disk_bytes = 2 * GIB };
    struct usage_amount a = meter_advance(&m, 2000, &r, GAP);
    CHECK_EQ(a.cpu_us, 500);
    CHECK(about(a.memory_gib_s, 1) && about(a.disk_gib_s, 2));
    r = (struct meter_reading){ .cpu_us = 700, .memory_bytes = 3 * GIB, .disk_bytes = 2 * GIB };
    a = meter_advance(&m, 3000, &r, GAP);
    CHECK_EQ(a.cpu_us, 200);
    CHECK(about(a.memory_gib_s, 2) && about(a.disk_gib_s, 2));
}

TEST(a_gap_is_filled_with_what_was_last_known)
{
    struct meter m = { 0 };
    meter_start(&m, 0, 0);
    struct meter_reading r = { .cpu_us = 1, .memory_bytes = GIB, .disk_bytes = GIB };
    (void)meter_advance(&m, 1000, &r, GAP);
    r = (struct meter_reading){ .cpu_us = 100, .memory_bytes = 9 * GIB, .disk_bytes = 9 * GIB };
    struct usage_amount a = meter_advance(&m, 101000, &r, GAP);
    CHECK_EQ(a.cpu_us, 99);
    CHECK(about(a.memory_gib_s, 100) && about(a.disk_gib_s, 100));
    a = meter_advance(&m, 100000, &r, GAP); /* the clock was set back: no time passed */
    CHECK(a.cpu_us == 0 && about(a.memory_gib_s, 0));
    CHECK_EQ(m.at_ms, 101000);
}

TEST(a_life_that_ended_counts_its_last_cpu_and_later_only_disk)
{
    struct meter m = { 0 };
    meter_start(&m, 1000, 40); /* handed out with 40 us used before */
    struct meter_reading r = { .cpu_us = 50, .memory_bytes = GIB, .disk_bytes = GIB };
    struct usage_amount a = meter_advance(&m, 2000, &r, GAP);
    CHECK_EQ(a.cpu_us, 10);
    r = (struct meter_reading){ .cpu_us = 80, .disk_bytes = GIB, .dead = true };
    a = meter_advance(&m, 3000, &r, GAP);
    CHECK_EQ(a.cpu_us, 30);
    CHECK(about(a.memory_gib_s, 1));
    meter_stop(&m);
    a = meter_advance(&m, 13000, NULL, GAP);
    CHECK_EQ(a.cpu_us, 0);
    CHECK(about(a.memory_gib_s, 0) && about(a.disk_gib_s, 10));
    meter_start(&m, 14000, 0); /* its counters begin anew */
    r = (struct meter_reading){ .cpu_us = 7, .memory_bytes = GIB, .disk_bytes = GIB };
    a = meter_advance(&m, 15000, &r, GAP);
    CHECK_EQ(a.cpu_us, 7);
    CHECK(about(a.memory_gib_s, 1));
    r.cpu_us = 3; /* and a counter that went back is new as a whole */
    CHECK_EQ(meter_advance(&m, 16000, &r, GAP).cpu_us, 3);
}

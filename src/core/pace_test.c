#include "core/pace.h"

#include "base/check.h"
#include "base/clock.h"

TEST(a_byte_a_minute_ends_and_a_kilobyte_a_second_goes_on)
{
    struct pace slow = { .grace_ms = 600000 }, steady = { .grace_ms = 600000 };
    int minutes = 0;
    for (; pace_left(&slow, 60000) == 60000 && minutes < 1000; minutes++)
        pace_note(&slow, clock_mono_ms() - 59000, 1);
    CHECK_EQ(minutes, 10);
    for (int s = 0; s < 100000; s++) {
        CHECK_EQ(pace_left(&steady, 60000), 60000);
        pace_note(&steady, clock_mono_ms() - 1000, 1024);
    }
}

TEST(a_pace_does_not_overflow)
{
    struct pace p = { .grace_ms = 1000 };
    pace_note(&p, clock_mono_ms(), UINT64_MAX / 2);
    pace_note(&p, clock_mono_ms(), UINT64_MAX / 2);
    CHECK_EQ(pace_left(&p, 60000), 60000);
}

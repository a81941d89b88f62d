#include "core/samples.h"

#include "base/check.h"

TEST(the_oldest_make_room)
{
    struct samples s = { 0 };
    for (int64_t i = 0; i < SAMPLES_MAX + 50; i++)
        samples_add(&s, &(struct sample){ .at_ms = i * SAMPLE_MIN_MS, .cpu_us = (uint64_t)i });
    CHECK_EQ(s.n, SAMPLES_MAX);
    CHECK_EQ(samples_at(&s, 0)->cpu_us, 50);
    CHECK_EQ(samples_at(&s, s.n - 1)->cpu_us, SAMPLES_MAX + 49);
    samples_done(&s);
}

TEST(close_readings_are_one_and_lose_nothing)
{
    struct samples s = { 0 };
    for (int64_t i = 0; i < 10; i++)
        samples_add(
            &s, &(struct sample){
                    .at_ms = 5000 + i, .span_ms = 1, .cpu_us = 7, .memory_bytes = (uint64_t)i });
    CHECK_EQ(s.n, 1);
    CHECK_EQ(samples_at(&s, 0)->cpu_us, 70);
    CHECK_EQ(samples_at(&s, 0)->span_ms, 10);
    CHECK_EQ(samples_at(&s, 0)->memory_bytes, 9);
    samples_done(&s);
}

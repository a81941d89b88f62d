#include "cli/units.h"

#include <errno.h>

#include "base/check.h"

TEST(sizes_are_read_as_powers_of_1024)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        { "512m", 512LL << 20 }, { "512", 512LL << 20 },  { "10g", 10LL << 30 },
        { "1.5G", 3LL << 29 },   { "64KiB", 64LL << 10 }, { "100b", 100 },
        { "2tb", 2LL << 40 },    { ".5g", 512LL << 20 },  { "0", 0 },
    };
    static const char *const bad[] = { "", "m", "-1m", "1x", "1 m", "1e3", "0x10", "inf", "1.2.3" };
    int64_t v;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CHECK_OK(size_parse(good[i].text, &v));
        CHECK_EQ(v, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_EQ(size_parse(bad[i], &v), -EINVAL);
    CHECK_EQ(size_parse("99999999999t", &v), -ERANGE);
}

TEST(durations_are_read_in_one_or_several_units)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        { "30", 30000 },     { "30s", 30000 },    { "1h30m", 5400000 }, { "500ms", 500 },
        { "1.5h", 5400000 }, { "2d", 172800000 }, { "none", 0 },        { "0", 0 },
        { "1m30s", 90000 },  { "0.25s", 250 },
    };
    static const char *const bad[] = { "", "s", "1h30", "-5s", "1 h", "5y", "1h-2m" };
    int64_t v;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CHECK_OK(duration_parse(good[i].text, &v));
        CHECK_EQ(v, good[i].ms);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_EQ(duration_parse(bad[i], &v), -EINVAL);
}

TEST(counts_do_not_overflow)
{
    int64_t v;
    CHECK_OK(count_parse("9223372036854775807", &v));
    CHECK_EQ(count_parse("9223372036854775808", &v), -ERANGE);
    CHECK_EQ(count_parse("12a", &v), -EINVAL);
    CHECK_EQ(count_parse("", &v), -EINVAL);
}

TEST(moments_are_read_with_and_without_a_fraction)
{
    int64_t v;
    CHECK_OK(moment_parse("1970-01-01T00:00:01Z", &v));
    CHECK_EQ(v, 1000);
    CHECK_OK(moment_parse("2026-01-31T12:04:05.123Z", &v));
    CHECK_EQ(v, 1769861045123);
    CHECK_EQ(moment_parse("2026-01-31", &v), -EINVAL);
    CHECK_EQ(moment_parse("2026-01-31T12:04:05+01:00", &v), -EINVAL);
}

TEST(values_are_printed_short)
{
    char t[UNIT_TEXT_MAX];
    CHECK_STR(size_text(0, t), "0 B");
    CHECK_STR(size_text(512LL << 20, t), "512 MiB");
    CHECK_STR(size_text(3LL << 29, t), "1.5 GiB");
    CHECK_STR(size_text(1048575, t), "1 MiB");
    CHECK_STR(duration_text(42000, t), "42 s");
    CHECK_STR(duration_text(180000, t), "3 m");
    CHECK_STR(duration_text(-5, t), "0 ms");
    CHECK_STR(cpu_time_text(40000, t), "0.04 s");
    CHECK_STR(cpu_time_text(127000000, t), "2:07");
    CHECK_STR(real_text(0.5, t), "0.5");
    CHECK_STR(real_text(2.0, t), "2");
}

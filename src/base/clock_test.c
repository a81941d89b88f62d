#include "base/clock.h"

#include <errno.h>

#include "base/check.h"

TEST(a_moment_is_read_as_it_is_written)
{
    char text[CLOCK_TEXT_MAX];
    int64_t now = clock_now_ms(), got;
    CHECK_OK(clock_parse(clock_text(now, text), &got));
    CHECK(got == now);
    CHECK_OK(clock_parse("2026-01-31T12:04:05+02:00", &got));
    CHECK_STR(clock_text(got, text), "2026-01-31T10:04:05.000Z");
    CHECK_OK(clock_parse("2026-01-31t12:04:05.123456z", &got));
    CHECK_STR(clock_text(got, text), "2026-01-31T12:04:05.123Z");
}

TEST(what_is_no_moment_is_refused)
{
    static const char *const bad[] = { "",
                                       "now",
                                       "2026-01-31",
                                       "2026-01-31T12:04:05",
                                       "2026-13-31T12:04:05Z",
                                       "2026-01-31T24:04:05Z",
                                       "2026-01-31T12:04:05Zx",
                                       "2026-01-31T12:04:05+0200",
                                       "1969-01-31T12:04:05Z" };
    int64_t got;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_EQ(clock_parse(bad[i], &got), -EINVAL);
}

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_now_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_mono_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_mono_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

const char *clock_text(int64_t wall_ms, char out[CLOCK_TEXT_MAX])
{
    time_t s = (time_t)(wall_ms / 1000);
    int ms = (int)(wall_ms % 1000);
    struct tm tm;
    if (!gmtime_r(&s, &tm)) {
        out[0] = '\0';
        return out;
    }
    int n = snprintf(out, CLOCK_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                     (tm.tm_year + 1900) % 100000, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                     tm.tm_sec, ms);
    if (n < 0 || n >= CLOCK_TEXT_MAX)
        out[0] = '\0';
    return out;
}

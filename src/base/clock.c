#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
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

/* Exactly n digits, from min to max. */
static int digits(const char **p, int n, int min, int max, int *ret_v)
{
    int v = 0;
    for (int i = 0; i < n; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return -EINVAL;
        v = v * 10 + (**p - '0');
    }
    *ret_v = v;
    return v >= min && v <= max ? 0 : -EINVAL;
}

static int expect(const char **p, const char *any)
{
    if (!**p || !strchr(any, **p))
        return -EINVAL;
    (*p)++;
    return 0;
}

static int offset_parse(const char **p, int *ret_minutes)
{
    int sign = **p == '-' ? -1 : 1, hours, minutes;
    if (expect(p, "Zz") == 0) {
        *ret_minutes = 0;
        return 0;
    }
    if (expect(p, "+-") < 0 || digits(p, 2, 0, 23, &hours) < 0 || expect(p, ":") < 0 ||
        digits(p, 2, 0, 59, &minutes) < 0)
        return -EINVAL;
    *ret_minutes = sign * (hours * 60 + minutes);
    return 0;
}

int clock_parse(const char *text, int64_t *ret_wall_ms)
{
    struct tm tm = { 0 };
    const char *p = text;
    int ms = 0, off = 0;
    if (digits(&p, 4, 1970, 9999, &tm.tm_year) < 0 || expect(&p, "-") < 0 ||
        digits(&p, 2, 1, 12, &tm.tm_mon) < 0 || expect(&p, "-") < 0 ||
        digits(&p, 2, 1, 31, &tm.tm_mday) < 0 || expect(&p, "Tt ") < 0 ||
        digits(&p, 2, 0, 23, &tm.tm_hour) < 0 || expect(&p, ":") < 0 ||
        digits(&p, 2, 0, 59, &tm.tm_min) < 0 || expect(&p, ":") < 0 ||
        digits(&p, 2, 0, 60, &tm.tm_sec) < 0)
        return -EINVAL;
    if (*p == '.') {
        int place = 100;
        for (p++; *p >= '0' && *p <= '9'; p++, place /= 10)
            ms += (*p - '0') * place;
    }
    if (offset_parse(&p, &off) < 0 || *p)
        return -EINVAL;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ret_wall_ms = ((int64_t)timegm(&tm) - off * INT64_C(60)) * 1000 + ms;
    return 0;
}

#include "cli/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <strings.h>
#include <time.h>

#define DAY_MS (24LL * 3600 * 1000)

struct unit {
    const char *name;
    double factor;
};

/* Digits, and a fraction if there is one. No sign, exponent, hex or "inf", which strtod takes. */
static int decimal(const char **p, double *ret_v)
{
    const char *s = *p;
    double v = 0, place = 1;
    bool any = false;
    for (; isdigit((unsigned char)*s); s++, any = true)
        v = v * 10 + (*s - '0');
    if (*s == '.') {
        for (s++; isdigit((unsigned char)*s); s++, any = true) {
            place /= 10;
            v += (*s - '0') * place;
        }
    }
    if (!any)
        return -EINVAL;
    *p = s;
    *ret_v = v;
    return 0;
}

static const struct unit *unit_find(const struct unit *units, size_t n, const char *p, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(units[i].name) == len && strncasecmp(units[i].name, p, len) == 0)
            return &units[i];
    return NULL;
}

static int to_int(double v, int64_t *ret)
{
    if (!(v < 9e15)) /* where a double still holds every whole number */
        return -ERANGE;
    *ret = (int64_t)(v + 0.5);
    return 0;
}

int size_parse(const char *text, int64_t *ret_bytes)
{
    static const struct unit units[] = {
        { "", 1048576.0 },         { "b", 1.0 },
        { "k", 1024.0 },           { "kb", 1024.0 },
        { "kib", 1024.0 },         { "m", 1048576.0 },
        { "mb", 1048576.0 },       { "mib", 1048576.0 },
        { "g", 1073741824.0 },     { "gb", 1073741824.0 },
        { "gib", 1073741824.0 },   { "t", 1099511627776.0 },
        { "tb", 1099511627776.0 }, { "tib", 1099511627776.0 },
    };
    double v;
    if (decimal(&text, &v) < 0)
        return -EINVAL;
    const struct unit *u = unit_find(units, sizeof(units) / sizeof(units[0]), text, strlen(text));
    if (!u)
        return -EINVAL;
    return to_int(v * u->factor, ret_bytes);
}

int duration_parse(const char *text, int64_t *ret_ms)
{
    static const struct unit units[] = {
        { "ms", 1.0 },   { "s", 1000.0 }, { "sec", 1000.0 },       { "m", 60e3 },
        { "min", 60e3 }, { "h", 3600e3 }, { "d", (double)DAY_MS },
    };
    double total = 0, v;
    if (strcmp(text, "none") == 0) {
        *ret_ms = 0;
        return 0;
    }
    do {
        if (decimal(&text, &v) < 0)
            return -EINVAL;
        size_t len = 0;
        while (isalpha((unsigned char)text[len]))
            len++;
        if (len == 0) {
            if (*text || total > 0) /* "1h30": minutes or seconds? */
                return -EINVAL;
            return to_int(v * 1000, ret_ms);
        }
        const struct unit *u = unit_find(units, sizeof(units) / sizeof(units[0]), text, len);
        if (!u)
            return -EINVAL;
        total += v * u->factor;
        text += len;
    } while (*text);
    return to_int(total, ret_ms);
}

int count_parse(const char *text, int64_t *ret_n)
{
    int64_t n = 0;
    if (!*text)
        return -EINVAL;
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text))
            return -EINVAL;
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *text - '0', &n))
            return -ERANGE;
    }
    *ret_n = n;
    return 0;
}

int real_parse(const char *text, double *ret_v)
{
    double v;
    if (decimal(&text, &v) < 0 || *text)
        return -EINVAL;
    *ret_v = v;
    return 0;
}

static int digits(const char **p, int n, int *ret)
{
    int v = 0;
    for (int i = 0; i < n; i++, (*p)++) {
        if (!isdigit((unsigned char)**p))
            return -EINVAL;
        v = v * 10 + (**p - '0');
    }
    *ret = v;
    return 0;
}

static int expect(const char **p, const char *set)
{
    if (!**p || !strchr(set, **p))
        return -EINVAL;
    (*p)++;
    return 0;
}

int moment_parse(const char *text, int64_t *ret_wall_ms)
{
    struct tm tm = { 0 };
    const char *p = text;
    int ms = 0;
    if (digits(&p, 4, &tm.tm_year) < 0 || expect(&p, "-") < 0 || digits(&p, 2, &tm.tm_mon) < 0 ||
        expect(&p, "-") < 0 || digits(&p, 2, &tm.tm_mday) < 0 || expect(&p, "Tt ") < 0 ||
        digits(&p, 2, &tm.tm_hour) < 0 || expect(&p, ":") < 0 || digits(&p, 2, &tm.tm_min) < 0 ||
        expect(&p, ":") < 0 || digits(&p, 2, &tm.tm_sec) < 0)
        return -EINVAL;
    if (*p == '.') {
        int place = 100;
        for (p++; isdigit((unsigned char)*p); p++, place /= 10)
            ms += (*p - '0') * place;
    }
    if (expect(&p, "Zz") < 0 || *p)
        return -EINVAL;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ret_wall_ms = (int64_t)timegm(&tm) * 1000 + ms;
    return 0;
}

/* A fixed buffer that holds every number and unit we print: cut rather than complain. */
static const char *put(char out[UNIT_TEXT_MAX], int n)
{
    if (n < 0)
        out[0] = '\0';
    return out;
}

/* Would "%.1f" end in ".0"? */
static bool is_whole(double v)
{
    double off = v - (double)(int64_t)(v + 0.5);
    return off > -0.05 && off < 0.05;
}

const char *size_text(int64_t bytes, char out[UNIT_TEXT_MAX])
{
    static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double v = (double)bytes;
    size_t i = 0;
    while (v >= 1023.95 && i + 1 < sizeof(names) / sizeof(names[0])) {
        v /= 1024;
        i++;
    }
    bool whole = i == 0 || v >= 100 || is_whole(v);
    return put(out, snprintf(out, UNIT_TEXT_MAX, whole ? "%.0f %s" : "%.1f %s", v, names[i]));
}

const char *duration_text(int64_t ms, char out[UNIT_TEXT_MAX])
{
    if (ms < 0)
        ms = 0;
    if (ms < 1000)
        return put(out, snprintf(out, UNIT_TEXT_MAX, "%d ms", (int)ms));
    if (ms < 120LL * 1000)
        return put(out, snprintf(out, UNIT_TEXT_MAX, "%d s", (int)(ms / 1000)));
    if (ms < 120LL * 60 * 1000)
        return put(out, snprintf(out, UNIT_TEXT_MAX, "%d m", (int)(ms / 60000)));
    if (ms < 2 * DAY_MS)
        return put(out, snprintf(out, UNIT_TEXT_MAX, "%d h", (int)(ms / 3600000)));
    return put(out, snprintf(out, UNIT_TEXT_MAX, "%lld d", (long long)(ms / DAY_MS)));
}

const char *cpu_time_text(int64_t us, char out[UNIT_TEXT_MAX])
{
    int64_t s = us / 1000000;
    if (us < 0)
        us = s = 0;
    if (s < 60)
        return put(out, snprintf(out, UNIT_TEXT_MAX, "%.2f s", (double)us / 1e6));
    if (s < 3600)
        return put(out, snprintf(out, UNIT_TEXT_MAX, "%d:%02d", (int)(s / 60), (int)(s % 60)));
    return put(out, snprintf(out, UNIT_TEXT_MAX, "%lld:%02d:%02d", (long long)(s / 3600),
                             (int)(s / 60 % 60), (int)(s % 60)));
}

const char *real_text(double v, char out[UNIT_TEXT_MAX])
{
    return put(out, snprintf(out, UNIT_TEXT_MAX, "%.6g", v));
}

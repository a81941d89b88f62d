#include "core/autosave.h"

#include <errno.h>
#include <string.h>

#define EVERY_MIN_MS 1000
#define SPAN_MAX_MS (10ll * 366 * 86400 * 1000)
#define HOUR_MS (3600 * 1000ll)
#define DAY_MS (24 * HOUR_MS)

static const char *const reasons[] = { "interval", "command", "stop", "timeout", "idle" };

bool autosave_is(const char *reason)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        if (strcmp(reason, reasons[i]) == 0)
            return true;
    return false;
}

bool autosave_any(const struct autosave *a)
{
    return a->every_ms || a->before_command || a->on_stop || a->keep_last || a->keep_hourly ||
           a->keep_daily || a->keep_ms;
}

static int bad(struct err *err, const char *member, long long min, long long max)
{
    return err_fail(err, FAIL_INVALID_FIELD, "'checkpoints.%s' must be from %lld to %lld", member,
                    min, max);
}

int autosave_check(const struct autosave *a, struct err *err)
{
    if (a->every_ms && (a->every_ms < EVERY_MIN_MS || a->every_ms > SPAN_MAX_MS))
        return bad(err, "every_s", EVERY_MIN_MS / 1000, SPAN_MAX_MS / 1000);
    if (a->keep_ms < 0 || a->keep_ms > SPAN_MAX_MS)
        return bad(err, "keep.for_s", 0, SPAN_MAX_MS / 1000);
    if (a->keep_last > AUTOSAVE_MOST)
        return bad(err, "keep.last", 1, AUTOSAVE_MOST);
    if (a->keep_hourly > AUTOSAVE_MOST)
        return bad(err, "keep.hourly", 1, AUTOSAVE_MOST);
    if (a->keep_daily > AUTOSAVE_MOST)
        return bad(err, "keep.daily", 1, AUTOSAVE_MOST);
    return 0;
}

json_t *autosave_to_json(const struct autosave *a)
{
    return json_pack("{s:I, s:b, s:b, s:I, s:I, s:I, s:I}", "every_ms", (json_int_t)a->every_ms,
                     "command", a->before_command, "stop", a->on_stop, "last",
                     (json_int_t)a->keep_last, "hourly", (json_int_t)a->keep_hourly, "daily",
                     (json_int_t)a->keep_daily, "for_ms", (json_int_t)a->keep_ms);
}

static int64_t number(const json_t *o, const char *name, int64_t max)
{
    int64_t v = json_integer_value(json_object_get(o, name));
    return v < 0 ? 0 : v > max ? max : v;
}

void autosave_from_json(const json_t *o, struct autosave *ret_a)
{
    *ret_a = (struct autosave){ .every_ms = number(o, "every_ms", SPAN_MAX_MS),
                                .before_command = json_is_true(json_object_get(o, "command")),
                                .on_stop = json_is_true(json_object_get(o, "stop")),
                                .keep_last = (uint32_t)number(o, "last", AUTOSAVE_MOST),
                                .keep_hourly = (uint32_t)number(o, "hourly", AUTOSAVE_MOST),
                                .keep_daily = (uint32_t)number(o, "daily", AUTOSAVE_MOST),
                                .keep_ms = number(o, "for_ms", SPAN_MAX_MS) };
}

int64_t autosave_next(const struct autosave *a, int64_t last_ms, int64_t now_ms)
{
    if (a->every_ms == 0)
        return 0;
    int64_t next = last_ms + a->every_ms;
    return next > now_ms ? next : now_ms;
}

/* Of each of the latest `spans` spans that have one, the youngest. */
static void keep_of_spans(const int64_t *created_ms, size_t n, int64_t span_ms, uint32_t spans,
                          bool *keep)
{
    int64_t last = -1;
    for (size_t i = n; i-- > 0 && spans > 0;) {
        int64_t span = created_ms[i] / span_ms;
        if (span == last)
            continue;
        keep[i] = true;
        last = span;
        spans--;
    }
}

void autosave_thin(const struct autosave *a, const int64_t *created_ms, size_t n, int64_t now_ms,
                   bool *ret_keep)
{
    bool ruled = a->keep_last || a->keep_hourly || a->keep_daily || a->keep_ms;
    size_t last = ruled ? a->keep_last : AUTOSAVE_KEEP_LAST;
    if (last == 0)
        last = 1;
    for (size_t i = 0; i < n; i++)
        ret_keep[i] = n - i <= last || now_ms - created_ms[i] < a->keep_ms;
    keep_of_spans(created_ms, n, HOUR_MS, a->keep_hourly, ret_keep);
    keep_of_spans(created_ms, n, DAY_MS, a->keep_daily, ret_keep);
    for (size_t i = 0; i + AUTOSAVE_MOST < n; i++)
        ret_keep[i] = false;
}

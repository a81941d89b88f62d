/* Which checkpoints are taken by themselves, in JSON. */
#include <errno.h>

#include "core/sandbox.h"
#include "front/http/fields.h"
#include "front/native/native.h"

#define SPAN_MAX_S (10.0 * 366 * 86400) /* ten years */

#define ROW(member_, name_, ...) FIELD(struct autosave, member_, name_, __VA_ARGS__)
static const struct field keep_fields[] = {
    ROW(keep_last, "last", as_u32, .min = 1, .max = AUTOSAVE_MOST, .null_ok = true),
    ROW(keep_ms, "for_s", as_seconds, .min = 1, .max = SPAN_MAX_S, .null_ok = true),
    ROW(keep_hourly, "hourly", as_u32, .min = 1, .max = AUTOSAVE_MOST, .null_ok = true),
    ROW(keep_daily, "daily", as_u32, .min = 1, .max = AUTOSAVE_MOST, .null_ok = true),
};

/* `at` is the whole policy: its rules are members of it. */
static int as_keep(const json_t *v, const struct field *f, void *at, struct err *err)
{
    uint32_t seen;
    if (!json_is_object(v))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'keep' must be an object with last, for_s, hourly and daily, or some of "
                        "them");
    return fields_decode(v, keep_fields, ARRAY_LEN(keep_fields), at, &seen, err);
}

static const struct field fields[] = {
    ROW(every_ms, "every_s", as_seconds, .min = 1, .max = SPAN_MAX_S, .null_ok = true),
    ROW(before_command, "before_each_command", as_bool, .null_ok = true),
    ROW(on_stop, "on_stop", as_bool, .null_ok = true),
    { .name = "keep", .decode = as_keep, .offset = 0, .null_ok = true },
};

/* All of it at once: what is not said does not happen. */
int native_as_autosave(const json_t *v, const struct field *f, void *at, struct err *err)
{
    struct autosave a = { 0 };
    uint32_t seen;
    int r = 0;
    if (!json_is_null(v) && !json_is_object(v))
        return err_fail(
            err, FAIL_INVALID_FIELD,
            "'%s' must be null, or an object with every_s, before_each_command, on_stop "
            "and keep, or some of them",
            f->name);
    if (json_is_object(v))
        r = fields_decode(v, fields, ARRAY_LEN(fields), &a, &seen, err);
    if (r >= 0)
        *(struct autosave *)at = a;
    return r;
}

static void put_number(struct jout *j, const char *key, uint64_t v)
{
    if (v)
        jout_uint(j, key, v);
    else
        jout_null(j, key);
}

static void put_seconds(struct jout *j, const char *key, int64_t ms)
{
    if (ms > 0)
        jout_thousandths(j, key, (uint64_t)ms);
    else
        jout_null(j, key);
}

void native_put_autosave(struct jout *j, const struct sandbox_spec *spec)
{
    const struct autosave *a = &spec->autosave;
    if (!autosave_any(a)) {
        jout_null(j, "checkpoints");
        return;
    }
    bool ruled = a->keep_last || a->keep_hourly || a->keep_daily || a->keep_ms;
    jout_open(j, "checkpoints", '{');
    put_seconds(j, "every_s", a->every_ms);
    jout_bool(j, "before_each_command", a->before_command);
    jout_bool(j, "on_stop", a->on_stop);
    jout_open(j, "keep", '{');
    put_number(j, "last", ruled ? a->keep_last : AUTOSAVE_KEEP_LAST);
    put_seconds(j, "for_s", a->keep_ms);
    put_number(j, "hourly", a->keep_hourly);
    put_number(j, "daily", a->keep_daily);
    jout_close(j, '}');
    jout_close(j, '}');
}

#include "front/http/fields.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "core/sandbox.h"

#define SCAN_ABOVE (64 * 1024) /* smaller bodies cannot hold enough values to matter */
#define VALUES_MAX 200000      /* a value costs us up to 100 times its text */
#define NAME_SHOWN 64          /* of an unknown member, in the sentence about it */

/* How many values a document can hold at most, looked at before memory is spent on them. */
static size_t count_values(const char *p, size_t n)
{
    size_t count = 0;
    bool in_text = false;
    for (size_t i = 0; i < n; i++) {
        if (in_text && p[i] == '\\')
            i++;
        else if (p[i] == '"')
            in_text = !in_text;
        else if (!in_text && (p[i] == ',' || p[i] == '[' || p[i] == '{'))
            count++;
    }
    return count;
}

int fields_parse(const char *p, size_t n, json_t **ret_object, struct err *err)
{
    json_error_t at;

    if (n == 0) {
        *ret_object = json_object();
        return *ret_object ? 0 : err_set(err, ENOMEM, "cannot allocate an object");
    }
    if (n > SCAN_ABOVE && count_values(p, n) > VALUES_MAX)
        return err_fail_as(err, E2BIG, FAIL_INVALID_JSON, "the body has over %d values",
                           VALUES_MAX);
    if (!json_shallow(p, n))
        return err_fail_as(err, E2BIG, FAIL_INVALID_JSON, "the body is nested over %d deep",
                           JSON_SHALLOW_MAX);
    json_t *v = json_loadb(p, n, JSON_REJECT_DUPLICATES, &at);
    if (!v)
        return err_fail(err, FAIL_INVALID_JSON, "the body is not JSON: %s (line %d, column %d)",
                        at.text, at.line, at.column);
    if (!json_is_object(v)) {
        json_decref(v);
        return err_fail(err, FAIL_INVALID_JSON, "the body must be a JSON object");
    }
    *ret_object = v;
    return 0;
}

int fields_decode(const json_t *object, const struct field *fields, size_t n, void *target,
                  uint32_t *ret_seen, struct err *err)
{
    const char *name;
    json_t *v;
    uint32_t seen = 0;

    json_object_foreach((json_t *)(uintptr_t)object, name, v) {
        size_t i = 0;
        while (i < n && strcmp(fields[i].name, name) != 0)
            i++;
        if (i == n)
            return err_fail(err, FAIL_UNKNOWN_FIELD, "there is no member '%.*s' here", NAME_SHOWN,
                            name);
        seen |= UINT32_C(1) << i;
        if (json_is_null(v) && fields[i].null_ok)
            continue;
        int r = fields[i].decode(v, &fields[i], (char *)target + fields[i].offset, err);
        if (r < 0)
            return r;
    }
    *ret_seen = seen;
    return 0;
}

static int refuse(const struct field *f, struct err *err, const char *must)
{
    return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be %s", f->name, must);
}

static int number(const json_t *v, const struct field *f, double *ret_v, struct err *err)
{
    double d = json_is_number(v) ? json_number_value(v) : NAN;
    if (!(d >= f->min && d <= f->max)) /* NaN too */
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be a number from %g to %.15g", f->name,
                        f->min, f->max);
    *ret_v = d;
    return 0;
}

static int whole(const json_t *v, const struct field *f, uint64_t *ret_v, struct err *err)
{
    double d = 0;
    int r = number(v, f, &d, err);
    if (r < 0)
        return r;
    if (d < 0 || d != (double)(uint64_t)d)
        return refuse(f, err, "a whole number");
    *ret_v = (uint64_t)d;
    return 0;
}

int as_text(const json_t *v, const struct field *f, void *at, struct err *err)
{
    if (!json_is_string(v))
        return refuse(f, err, "text");
    size_t n = json_string_length(v);
    if (f->max > 0 && (double)n > f->max)
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' is over %.0f bytes", f->name, f->max);
    char *s = strdup(json_string_value(v));
    if (!s)
        return err_set(err, ENOMEM, "cannot allocate '%s'", f->name);
    free(*(char **)at);
    *(char **)at = s;
    return 0;
}

int as_bool(const json_t *v, const struct field *f, void *at, struct err *err)
{
    if (!json_is_boolean(v))
        return refuse(f, err, "true or false");
    *(bool *)at = json_is_true(v);
    return 0;
}

int as_u32(const json_t *v, const struct field *f, void *at, struct err *err)
{
    uint64_t n = 0;
    int r = whole(v, f, &n, err);
    if (r >= 0)
        *(uint32_t *)at = (uint32_t)n;
    return r;
}

int as_u64(const json_t *v, const struct field *f, void *at, struct err *err)
{
    return whole(v, f, at, err);
}

int as_mib(const json_t *v, const struct field *f, void *at, struct err *err)
{
    uint64_t n = 0;
    int r = whole(v, f, &n, err);
    if (r >= 0)
        *(uint64_t *)at = n * 1024 * 1024;
    return r;
}

int as_thousandths(const json_t *v, const struct field *f, void *at, struct err *err)
{
    double d = 0;
    int r = number(v, f, &d, err);
    if (r >= 0)
        *(uint32_t *)at = (uint32_t)(d * 1000 + 0.5);
    return r;
}

int as_seconds(const json_t *v, const struct field *f, void *at, struct err *err)
{
    double d = 0;
    int r = number(v, f, &d, err);
    if (r < 0)
        return r;
    /* A time-out that was asked for is never rounded to "none". */
    int64_t ms = (int64_t)(d * 1000 + 0.5);
    *(int64_t *)at = ms == 0 && d > 0 ? 1 : ms;
    return 0;
}

int as_choice(const json_t *v, const struct field *f, void *at, struct err *err)
{
    char list[128] = "";
    size_t len = 0;
    for (int i = 0; f->choices[i]; i++) {
        if (json_is_string(v) && strcmp(json_string_value(v), f->choices[i]) == 0) {
            *(int *)at = i;
            return 0;
        }
        int n = snprintf(list + len, sizeof(list) - len, "%s\"%s\"", i ? ", " : "", f->choices[i]);
        if (n > 0 && (size_t)n < sizeof(list) - len)
            len += (size_t)n;
    }
    return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be one of %s", f->name, list);
}

int as_texts(const json_t *v, const struct field *f, void *at, struct err *err)
{
    char ***ret = at;
    if (!json_is_array(v) || json_array_size(v) == 0 || *ret)
        return refuse(f, err, "a list of texts that is not empty");
    size_t n = json_array_size(v);
    char **list = calloc(n + 1, sizeof(*list));
    if (!list)
        return err_set(err, ENOMEM, "cannot allocate '%s'", f->name);
    *ret = list;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(v, i);
        if (!json_is_string(item))
            return refuse(f, err, "a list of texts");
        list[i] = strdup(json_string_value(item));
        if (!list[i])
            return err_set(err, ENOMEM, "cannot allocate '%s'", f->name);
    }
    return 0;
}

int as_pairs(const json_t *v, const struct field *f, void *at, struct err *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object(v))
        return refuse(f, err, "an object of texts");
    if (json_object_size(v) > FIELD_PAIRS_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' has over %d members", f->name,
                        FIELD_PAIRS_MAX);
    json_object_foreach((json_t *)(uintptr_t)v, name, value) {
        if (!json_is_string(value))
            return refuse(f, err, "an object of texts");
        int r = pairs_add(at, name, json_string_value(value));
        if (r < 0)
            return err_set(err, -r, "cannot allocate '%s'", f->name);
    }
    return 0;
}

int as_env(const json_t *v, const struct field *f, void *at, struct err *err)
{
    int r = as_pairs(v, f, at, err);
    const struct pairs *p = at;
    for (size_t i = 0; r >= 0 && i < p->n; i++)
        if (p->names[i][0] == '\0' || strchr(p->names[i], '='))
            r = refuse(f, err, "an object whose names are not empty and have no '='");
    return r;
}

void put_pairs(struct jout *j, const char *key, const struct pairs *p)
{
    jout_open(j, key, '{');
    for (size_t i = 0; i < p->n; i++)
        jout_member(j, p->names[i], p->values[i]);
    jout_close(j, '}');
}

#include "front/rpc/pbjson.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"

#define NAME_MAX_BYTES 64 /* of a member: ours are all shorter */
#define TIMESTAMP "google.protobuf.Timestamp"
#define NS_PER_S 1000000000

static void camel(const char *name, char out[NAME_MAX_BYTES])
{
    size_t n = 0;
    bool up = false;
    for (; *name && n + 1 < NAME_MAX_BYTES; name++) {
        if (*name == '_') {
            up = true;
            continue;
        }
        out[n++] = (char)(up && *name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
        up = false;
    }
    out[n] = '\0';
}

/* protobuf-c keeps a map as a list of messages that its compiler names XEntry. */
static bool is_map(const ProtobufCFieldDescriptor *f)
{
    if (f->label != PROTOBUF_C_LABEL_REPEATED || f->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    const ProtobufCMessageDescriptor *d = f->descriptor;
    size_t n = strlen(d->short_name);
    return d->n_fields == 2 && strcmp(d->fields[0].name, "key") == 0 &&
           strcmp(d->fields[1].name, "value") == 0 && n > 5 &&
           strcmp(d->short_name + n - 5, "Entry") == 0;
}

static size_t size_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM: return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return 8;
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    }
    return 0;
}

/* ---- writing ---- */

static void write_double(struct jout *j, const char *key, double v)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%.17g", v);
    jout_raw(j, key, n > 0 && strpbrk(text, "ni") ? "null" : text); /* nan, inf */
}

static void write_i64(struct jout *j, const char *key, int64_t v)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRId64, v);
    jout_str(j, key, text);
}

static void write_u64(struct jout *j, const char *key, uint64_t v)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRIu64, v);
    jout_str(j, key, text);
}

static void write_enum(struct jout *j, const char *key, const ProtobufCEnumDescriptor *d, int v)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(d, v);
    if (value)
        jout_str(j, key, value->name);
    else
        jout_int(j, key, v);
}

static void write_timestamp(struct jout *j, const char *key, const ProtobufCMessage *m)
{
    const char *at = (const char *)m;
    int64_t seconds = 0;
    int32_t nanos = 0;
    memcpy(&seconds, at + m->descriptor->fields[0].offset, sizeof(seconds));
    memcpy(&nanos, at + m->descriptor->fields[1].offset, sizeof(nanos));
    time_t t = (time_t)seconds;
    struct tm tm;
    char day[32], text[64];
    if (!gmtime_r(&t, &tm) || strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        jout_null(j, key);
        return;
    }
    (void)snprintf(text, sizeof(text), "%s.%09dZ", day, (int)nanos);
    jout_str(j, key, text);
}

/* `at` points to one value of the field's type. */
static void write_value(struct jout *j, const char *key, const ProtobufCFieldDescriptor *f,
                        const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32: jout_int(j, key, *(const int32_t *)at); break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32: jout_uint(j, key, *(const uint32_t *)at); break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64: write_i64(j, key, *(const int64_t *)at); break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: write_u64(j, key, *(const uint64_t *)at); break;
    case PROTOBUF_C_TYPE_FLOAT: write_double(j, key, (double)*(const float *)at); break;
    case PROTOBUF_C_TYPE_DOUBLE: write_double(j, key, *(const double *)at); break;
    case PROTOBUF_C_TYPE_BOOL: jout_bool(j, key, *(const protobuf_c_boolean *)at); break;
    case PROTOBUF_C_TYPE_ENUM: write_enum(j, key, f->descriptor, *(const int *)at); break;
    case PROTOBUF_C_TYPE_STRING: jout_str(j, key, *(char *const *)at); break;
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *b = at;
        jout_b64(j, key, b->data, b->len);
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE: pbjson_write(j, key, *(ProtobufCMessage *const *)at); break;
    }
}

static bool is_default(const ProtobufCFieldDescriptor *f, const void *at)
{
    static const char zeros[16];
    if (f->type == PROTOBUF_C_TYPE_STRING)
        return !*(char *const *)at || **(char *const *)at == '\0';
    if (f->type == PROTOBUF_C_TYPE_BYTES)
        return ((const ProtobufCBinaryData *)at)->len == 0;
    return memcmp(at, zeros, size_of(f->type)) == 0;
}

static void write_map(struct jout *j, const char *key, const ProtobufCFieldDescriptor *f,
                      ProtobufCMessage *const *items, size_t n)
{
    const ProtobufCMessageDescriptor *d = f->descriptor;
    jout_open(j, key, '{');
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)items[i];
        const char *name = *(char *const *)(const void *)(at + d->fields[0].offset);
        const char *value = *(char *const *)(const void *)(at + d->fields[1].offset);
        jout_member(j, name ? name : "", value ? value : "");
    }
    jout_close(j, '}');
}

static void write_repeated(struct jout *j, const char *key, const ProtobufCFieldDescriptor *f,
                           const char *m)
{
    size_t n = *(const size_t *)(const void *)(m + f->quantifier_offset);
    const char *items = *(char *const *)(const void *)(m + f->offset);
    if (n == 0)
        return;
    if (is_map(f)) {
        write_map(j, key, f, (ProtobufCMessage *const *)(const void *)items, n);
        return;
    }
    jout_open(j, key, '[');
    for (size_t i = 0; i < n; i++)
        write_value(j, NULL, f, items + i * size_of(f->type));
    jout_close(j, ']');
}

void pbjson_write(struct jout *j, const char *key, const ProtobufCMessage *m)
{
    const ProtobufCMessageDescriptor *d = m->descriptor;
    const char *base = (const char *)m;
    if (strcmp(d->name, TIMESTAMP) == 0) {
        write_timestamp(j, key, m);
        return;
    }
    jout_open(j, key, '{');
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        char name[NAME_MAX_BYTES];
        camel(f->name, name);
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            write_repeated(j, name, f, base);
        } else if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
            /* The case of a oneof is the number of the member that is set, whatever its value. */
            if (*(const uint32_t *)(const void *)(base + f->quantifier_offset) == f->id)
                write_value(j, name, f, base + f->offset);
        } else if (!is_default(f, base + f->offset)) {
            write_value(j, name, f, base + f->offset);
        }
    }
    jout_close(j, '}');
}

/* ---- reading ---- */

static int read_object(const json_t *v, const ProtobufCMessageDescriptor *d,
                       ProtobufCMessage **ret_m, struct err *err);

static int wrong(struct err *err, const ProtobufCFieldDescriptor *f)
{
    return err_fail(err, FAIL_INVALID_FIELD, "'%s' has the wrong type", f->name);
}

static int read_integer(const json_t *v, int64_t min, uint64_t max, int64_t *ret_v)
{
    if (json_is_integer(v)) {
        json_int_t n = json_integer_value(v);
        if (n < min || (n > 0 && (uint64_t)n > max))
            return -ERANGE;
        *ret_v = n;
        return 0;
    }
    if (!json_is_string(v) || json_string_length(v) == 0)
        return -EINVAL;
    const char *text = json_string_value(v);
    char *end;
    errno = 0;
    if (min < 0) {
        *ret_v = strtoll(text, &end, 10);
        return errno || *end || *ret_v < min || (*ret_v > 0 && (uint64_t)*ret_v > max) ? -EINVAL
                                                                                       : 0;
    }
    uint64_t u = strtoull(text, &end, 10);
    *ret_v = (int64_t)u;
    return errno || *end || *text == '-' || u > max ? -EINVAL : 0;
}

static int read_enum(const json_t *v, const ProtobufCEnumDescriptor *d, int *ret_v)
{
    if (json_is_integer(v)) {
        *ret_v = (int)json_integer_value(v);
        return 0;
    }
    const ProtobufCEnumValue *value =
        json_is_string(v) ? protobuf_c_enum_descriptor_get_value_by_name(d, json_string_value(v))
                          : NULL;
    if (!value)
        return -EINVAL;
    *ret_v = value->value;
    return 0;
}

static int read_bytes(const json_t *v, ProtobufCBinaryData *ret_b)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(json_string_length(v) + 4); /* text is longer */
    int r = json_is_string(v) ? base64_decode(json_string_value(v), json_string_length(v), &b)
                              : -EINVAL;
    if (r < 0)
        return r;
    ret_b->len = b.len;
    ret_b->data = (uint8_t *)buf_steal(&b);
    return 0;
}

/* Into `at`, which has room for one value of the field's type. */
static int read_value(const json_t *v, const ProtobufCFieldDescriptor *f, void *at, struct err *err)
{
    int64_t n = 0;
    int r = 0;
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        r = read_integer(v, INT32_MIN, INT32_MAX, &n);
        *(int32_t *)at = (int32_t)n;
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        r = read_integer(v, 0, UINT32_MAX, &n);
        *(uint32_t *)at = (uint32_t)n;
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64: r = read_integer(v, INT64_MIN, INT64_MAX, at); break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: r = read_integer(v, 0, UINT64_MAX, at); break;
    case PROTOBUF_C_TYPE_FLOAT:
        r = json_is_number(v) ? 0 : -EINVAL;
        *(float *)at = (float)json_number_value(v);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        r = json_is_number(v) ? 0 : -EINVAL;
        *(double *)at = json_number_value(v);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        r = json_is_boolean(v) ? 0 : -EINVAL;
        *(protobuf_c_boolean *)at = json_is_true(v);
        break;
    case PROTOBUF_C_TYPE_ENUM: r = read_enum(v, f->descriptor, at); break;
    case PROTOBUF_C_TYPE_STRING:
        if (!json_is_string(v))
            return wrong(err, f);
        *(char **)at = strdup(json_string_value(v));
        r = *(char **)at ? 0 : -ENOMEM;
        break;
    case PROTOBUF_C_TYPE_BYTES: r = read_bytes(v, at); break;
    case PROTOBUF_C_TYPE_MESSAGE: return read_object(v, f->descriptor, at, err);
    }
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate a message")
           : r < 0      ? wrong(err, f)
                        : 0;
}

/* One entry of a map: {key: value} as a message of its own. */
static int read_entry(const char *name, const json_t *value, const ProtobufCMessageDescriptor *d,
                      ProtobufCMessage **ret_m, struct err *err)
{
    json_t *both = json_pack("{s:s, s:O}", "key", name, "value", value);
    if (!both)
        return err_set(err, ENOMEM, "cannot allocate a message");
    int r = read_object(both, d, ret_m, err);
    json_decref(both);
    return r;
}

static int read_repeated(const json_t *v, const ProtobufCFieldDescriptor *f, char *m,
                         struct err *err)
{
    bool map = is_map(f);
    if (map ? !json_is_object(v) : !json_is_array(v))
        return wrong(err, f);
    size_t n = map ? json_object_size(v) : json_array_size(v), size = size_of(f->type);
    if (n == 0)
        return 0;
    char *items = calloc(n, size);
    if (!items)
        return err_set(err, ENOMEM, "cannot allocate a message");
    /* Counted one by one: what was read is the message's to free, also if the next one fails. */
    *(char **)(void *)(m + f->offset) = items;
    size_t *count = (size_t *)(void *)(m + f->quantifier_offset);
    int r = 0;
    if (map) {
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)v, name, value) {
            if (r == 0)
                r = read_entry(name, value, f->descriptor,
                               (ProtobufCMessage **)(void *)(items + *count * size), err);
            *count += r == 0;
        }
        return r;
    }
    for (size_t i = 0; i < n && r == 0; i++) {
        r = read_value(json_array_get(v, i), f, items + i * size, err);
        *count += r == 0;
    }
    return r;
}

static const json_t *member(const json_t *v, const ProtobufCFieldDescriptor *f)
{
    char name[NAME_MAX_BYTES];
    camel(f->name, name);
    const json_t *found = json_object_get(v, name);
    if (!found)
        found = json_object_get(v, f->name);
    return json_is_null(found) ? NULL : found;
}

static int read_member(const json_t *v, const ProtobufCFieldDescriptor *f, char *m, struct err *err)
{
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return read_repeated(v, f, m, err);
    if (!(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
        return read_value(v, f, m + f->offset, err);
    uint32_t *which = (uint32_t *)(void *)(m + f->quantifier_offset);
    if (*which)
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' and another member exclude each other",
                        f->name);
    int r = read_value(v, f, m + f->offset, err);
    if (r == 0)
        *which = f->id;
    return r;
}

static int read_timestamp(const json_t *v, const ProtobufCMessageDescriptor *d, char *m,
                          struct err *err)
{
    int64_t ms = 0;
    if (!json_is_string(v) || clock_parse(json_string_value(v), &ms) < 0)
        return err_fail(err, FAIL_INVALID_FIELD, "a time must be as 2026-01-31T12:04:05Z");
    int64_t seconds = ms / 1000;
    int32_t nanos = (int32_t)(ms % 1000) * (NS_PER_S / 1000);
    memcpy(m + d->fields[0].offset, &seconds, sizeof(seconds));
    memcpy(m + d->fields[1].offset, &nanos, sizeof(nanos));
    return 0;
}

static int read_object(const json_t *v, const ProtobufCMessageDescriptor *d,
                       ProtobufCMessage **ret_m, struct err *err)
{
    bool time = strcmp(d->name, TIMESTAMP) == 0;
    if (!time && !json_is_object(v))
        return err_fail(err, FAIL_INVALID_FIELD, "%s must be an object", d->short_name);
    ProtobufCMessage *m = calloc(1, d->sizeof_message);
    if (!m)
        return err_set(err, ENOMEM, "cannot allocate a message");
    d->message_init(m);
    int r = time ? read_timestamp(v, d, (char *)m, err) : 0;
    for (unsigned i = 0; !time && i < d->n_fields && r == 0; i++) {
        const json_t *found = member(v, &d->fields[i]);
        if (found)
            r = read_member(found, &d->fields[i], (char *)m, err);
    }
    if (r < 0) {
        protobuf_c_message_free_unpacked(m, NULL);
        return r;
    }
    *ret_m = m;
    return 0;
}

int pbjson_read(const char *p, size_t n, const ProtobufCMessageDescriptor *d,
                ProtobufCMessage **ret_m, struct err *err)
{
    json_error_t why = { .text = "it is nested too deep" };
    json_t *v = n == 0               ? json_object()
                : json_shallow(p, n) ? json_loadb(p, n, JSON_REJECT_DUPLICATES, &why)
                                     : NULL;
    if (!v)
        return err_fail(err, FAIL_INVALID_JSON, "the body is not JSON: %s", why.text);
    int r = read_object(v, d, ret_m, err);
    json_decref(v);
    return r;
}

#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"

#define NUMBER_MAX 32 /* 20 digits, a sign, a point */

static void put(struct jout *j, const void *p, size_t n)
{
    if (j->r >= 0)
        j->r = buf_append(j->b, p, n);
}

static void begin_value(struct jout *j, const char *key)
{
    if (j->comma)
        put(j, ",", 1);
    j->comma = true;
    if (key) {
        put(j, "\"", 1);
        put(j, key, strlen(key));
        put(j, "\":", 2);
    }
}

/* Length of the UTF-8 sequence at p, 0 if there is none that is well formed. */
static size_t sequence(const unsigned char *p, size_t n)
{
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    size_t len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n < len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90))
        return 0; /* overlong */
    if ((p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0; /* a surrogate; above U+10FFFF */
    return len;
}

static bool valid(const char *text, size_t n, bool nul_ok)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + n;
    while (p < end) {
        if (*p >= ' ' && *p < 0x80) {
            p++;
            continue;
        }
        size_t len = sequence(p, (size_t)(end - p));
        if (len == 0 || (*p == 0 && !nul_ok))
            return false;
        p += len;
    }
    return true;
}

bool utf8_valid(const char *p, size_t n)
{
    return valid(p, n, true);
}

bool text_valid(const char *p, size_t n)
{
    return valid(p, n, false);
}

bool json_shallow(const char *p, size_t n)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        if (quoted) {
            if (p[i] == '\\')
                i++; /* whatever it escapes */
            else
                quoted = p[i] != '"';
        } else if (p[i] == '"') {
            quoted = true;
        } else if (p[i] == '[' || p[i] == '{') {
            if (++depth > JSON_SHALLOW_MAX)
                return false;
        } else if ((p[i] == ']' || p[i] == '}') && depth > 0) {
            depth--;
        }
    }
    return true;
}

static void put_escaped(struct jout *j, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char out[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    const char *at = c ? strchr(from, c) : NULL;
    if (at) {
        out[1] = to[at - from];
        put(j, out, 2);
    } else {
        put(j, out, sizeof(out));
    }
}

static void put_string(struct jout *j, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + n, *run = p;

    put(j, "\"", 1);
    while (p < end && j->r >= 0) {
        if (*p >= ' ' && *p < 0x7f && *p != '"' && *p != '\\') {
            p++; /* nearly every byte of nearly every output */
            continue;
        }
        size_t len = sequence(p, (size_t)(end - p));
        if (len > 1) {
            p += len;
            continue;
        }
        put(j, run, (size_t)(p - run));
        if (len == 0)
            put(j, "\\ufffd", 6);
        else
            put_escaped(j, *p);
        run = ++p;
    }
    put(j, run, (size_t)(end - run));
    put(j, "\"", 1);
}

void jout_open(struct jout *j, const char *key, char bracket)
{
    begin_value(j, key);
    put(j, &bracket, 1);
    j->comma = false;
}

void jout_close(struct jout *j, char bracket)
{
    put(j, &bracket, 1);
    j->comma = true;
}

void jout_strn(struct jout *j, const char *key, const char *p, size_t n)
{
    begin_value(j, key);
    put_string(j, p, n);
}

void jout_str(struct jout *j, const char *key, const char *s)
{
    if (s)
        jout_strn(j, key, s, strlen(s));
    else
        jout_null(j, key);
}

void jout_member(struct jout *j, const char *name, const char *value)
{
    begin_value(j, NULL);
    put_string(j, name, strlen(name));
    put(j, ":", 1);
    put_string(j, value, strlen(value));
}

static void put_b64(struct jout *j, const void *bytes, size_t n)
{
    put(j, "\"", 1);
    if (j->r >= 0)
        j->r = base64_encode(bytes, n, j->b);
    put(j, "\"", 1);
}

void jout_b64(struct jout *j, const char *key, const void *bytes, size_t n)
{
    begin_value(j, key);
    put_b64(j, bytes, n);
}

void jout_member_b64(struct jout *j, const char *name, const void *bytes, size_t n)
{
    begin_value(j, NULL);
    put_string(j, name, strlen(name));
    put(j, ":", 1);
    put_b64(j, bytes, n);
}

static void put_number(struct jout *j, const char *key, const char *text, int n)
{
    begin_value(j, key);
    if (n > 0 && n < NUMBER_MAX)
        put(j, text, (size_t)n);
    else if (j->r >= 0)
        j->r = -EINVAL;
}

void jout_int(struct jout *j, const char *key, int64_t v)
{
    char text[NUMBER_MAX];
    put_number(j, key, text, snprintf(text, sizeof(text), "%" PRId64, v));
}

void jout_uint(struct jout *j, const char *key, uint64_t v)
{
    char text[NUMBER_MAX];
    put_number(j, key, text, snprintf(text, sizeof(text), "%" PRIu64, v));
}

void jout_thousandths(struct jout *j, const char *key, uint64_t v)
{
    char text[NUMBER_MAX];
    int n = snprintf(text, sizeof(text), "%" PRIu64 ".%03u", v / 1000, (unsigned)(v % 1000));
    while (n > 0 && n < NUMBER_MAX && text[n - 1] == '0')
        n--; /* 1.500 is 1.5 */
    if (n > 0 && n < NUMBER_MAX && text[n - 1] == '.')
        n--;
    put_number(j, key, text, n);
}

void jout_raw(struct jout *j, const char *key, const char *json)
{
    begin_value(j, key);
    put(j, json, strlen(json));
}

void jout_bool(struct jout *j, const char *key, bool v)
{
    jout_raw(j, key, v ? "true" : "false");
}

void jout_null(struct jout *j, const char *key)
{
    jout_raw(j, key, "null");
}

void jout_time(struct jout *j, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_MAX];
    if (wall_ms == 0)
        jout_null(j, key);
    else
        jout_str(j, key, clock_text(wall_ms, text));
}

int jout_done(struct jout *j)
{
    return j->r;
}

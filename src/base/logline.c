#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"

#define FIELDS_MAX 24 /* names that are told apart; a line has a handful */
#define NAME_SIZE 40

/* The length of "name=" at p, or 0. */
static size_t name_at(const char *p)
{
    size_t n = 0;
    while ((p[n] >= 'a' && p[n] <= 'z') || p[n] == '_' || (n && p[n] >= '0' && p[n] <= '9'))
        n++;
    return n > 0 && n < NAME_SIZE && p[n] == '=' ? n + 1 : 0;
}

/* Where the value at p ends: a quoted one at its quote, another one before the next name. */
static const char *value_end(const char *p)
{
    if (*p == '"') {
        for (p++; *p && *p != '"'; p++)
            if (*p == '\\' && p[1])
                p++;
        return *p ? p + 1 : p;
    }
    for (; *p; p++)
        if (*p == ' ' && name_at(p + 1))
            break;
    return p;
}

size_t log_sentence(const char *text)
{
    const char *p = text;
    while (*p && !((p == text || p[-1] == ' ') && name_at(p)))
        p++;
    while (p > text && p[-1] == ' ')
        p--;
    return (size_t)(p - text);
}

bool log_field_next(const char **at, struct log_field *ret_f)
{
    const char *p = *at;
    while (*p && !(*p != ' ' && name_at(p)))
        p++; /* spaces, and what follows a quoted value without being a name */
    if (!*p)
        return false;
    size_t n = name_at(p);
    const char *end = value_end(p + n);
    *ret_f = (struct log_field){ p, p + n, n - 1, (size_t)(end - p - n) };
    *at = end;
    return true;
}

size_t log_field_value(const struct log_field *f, char *out, size_t size)
{
    const char *p = f->value, *end = p + f->value_len;
    bool quoted = f->value_len >= 1 && *p == '"';
    size_t o = 0;
    if (quoted) {
        p++;
        end -= end > p && end[-1] == '"';
    }
    while (p < end && o + 1 < size) {
        char c = *p++;
        if (quoted && c == '\\' && p < end) {
            c = *p++;
            /* A NUL is never written so, and many readers of JSON refuse one. */
            if (c == 'x' && end - p >= 2 && hex_digit(p[0]) >= 0 && hex_digit(p[1]) >= 0 &&
                (hex_digit(p[0]) | hex_digit(p[1])) != 0) {
                c = (char)(hex_digit(p[0]) << 4 | hex_digit(p[1]));
                p += 2;
            }
        }
        out[o++] = c;
    }
    if (size)
        out[o] = '\0';
    return o;
}

void log_put_json(struct jout *j, const struct log_record *rec)
{
    static const char *const own[] = { "time", "level", "module", "message" };
    char seen[FIELDS_MAX][NAME_SIZE], value[LOG_LINE_MAX];
    size_t nseen = 0, len = log_sentence(rec->text);
    const char *at = rec->text + len;
    struct log_field f;

    jout_open(j, NULL, '{');
    jout_time(j, "time", rec->time_ms);
    jout_str(j, "level", log_level_name(rec->level));
    jout_str(j, "module", rec->module);
    jout_strn(j, "message", rec->text, len);
    while (nseen < FIELDS_MAX && log_field_next(&at, &f)) {
        char *name = seen[nseen];
        bool taken = false;
        memcpy(name, f.name, f.name_len);
        name[f.name_len] = '\0';
        for (size_t i = 0; i < ARRAY_LEN(own); i++)
            taken |= strcmp(own[i], name) == 0;
        for (size_t i = 0; i < nseen; i++)
            taken |= strcmp(seen[i], name) == 0;
        if (taken)
            continue; /* a member twice would be no JSON; the first is our own */
        nseen++;
        size_t n = log_field_value(&f, value, sizeof(value));
        jout_strn(j, name, value, n);
    }
    jout_close(j, '}');
}

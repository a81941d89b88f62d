#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"

#define JSON_LINE_MAX (8 * LOG_LINE_MAX) /* every byte of it escaped, and the names */

static _Atomic int min_level = LOG_INFO;
static _Atomic int format = LOG_TEXT;
static void (*tap)(const struct log_record *rec);
static _Thread_local char request[LOG_REQUEST_MAX];

static const char *const names[] = { "debug", "info", "warn", "error" };
static const char *const formats[] = { [LOG_TEXT] = "text", [LOG_JSON] = "json" };

void log_set_level(enum log_level level)
{
    atomic_store(&min_level, (int)level);
}

int log_parse_level(const char *name, enum log_level *ret_level)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *ret_level = (enum log_level)i;
            return 0;
        }
    return -EINVAL;
}

const char *log_level_name(enum log_level level)
{
    return names[level];
}

void log_set_format(enum log_format wanted)
{
    atomic_store(&format, (int)wanted);
}

int log_parse_format(const char *name, enum log_format *ret_format)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (strcmp(name, formats[i]) == 0) {
            *ret_format = (enum log_format)i;
            return 0;
        }
    return -EINVAL;
}

void log_set_request(const char *id)
{
    int n = snprintf(request, sizeof(request), "%s", id ? id : "");
    if (n < 0)
        request[0] = '\0';
}

void log_set_tap(void (*to)(const struct log_record *rec))
{
    tap = to;
}

/* One write, so that lines of several threads and processes do not mix. */
static void write_text(const struct log_record *rec)
{
    char line[LOG_LINE_MAX + 64], when[CLOCK_TEXT_MAX];
    int n = snprintf(line, sizeof(line), "%s %-5s %-9s %s\n", clock_text(rec->time_ms, when),
                     names[rec->level], rec->module, rec->text);
    if (n > 0 && (size_t)n < sizeof(line) && write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}

static void write_json(const struct log_record *rec)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(JSON_LINE_MAX);
    struct jout j = JOUT_INIT(&b);
    log_put_json(&j, rec);
    if (jout_done(&j) < 0 || buf_append(&b, "\n", 1) < 0)
        write_text(rec);
    else if (write(STDERR_FILENO, b.data, b.len) < 0)
        return;
}

void log_line(enum log_level level, const char *module, const char *fmt, ...)
{
    if ((int)level < atomic_load(&min_level))
        return;
    char text[LOG_LINE_MAX];
    size_t room = request[0] ? sizeof(text) - sizeof(" req=") - LOG_REQUEST_MAX : sizeof(text);
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(text, room, fmt, ap);
    va_end(ap);
    if (m < 0)
        return;
    size_t len = strlen(text);
    if (request[0])
        (void)snprintf(text + len, sizeof(text) - len, " req=%s", request);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?'; /* the last guard of "one record, one line" */
    struct log_record rec = { clock_now_ms(), level, module, text };
    if (atomic_load(&format) == LOG_JSON)
        write_json(&rec);
    else
        write_text(&rec);
    if (tap)
        tap(&rec);
}

const char *log_quote(char *out, size_t size, const char *value)
{
    size_t o = 0;
    if (size < 8) {
        if (size)
            out[0] = '\0';
        return out;
    }
    out[o++] = '"';
    for (const unsigned char *p = (const unsigned char *)(value ? value : ""); *p; p++) {
        if (o + 6 >= size)
            break;
        if (*p == '"' || *p == '\\') {
            out[o++] = '\\';
            out[o++] = (char)*p;
        } else if (*p < ' ' || *p >= 0x7f) {
            o += (size_t)snprintf(out + o, size - o, "\\x%02x", *p);
        } else {
            out[o++] = (char)*p;
        }
    }
    out[o++] = '"';
    out[o] = '\0';
    return out;
}

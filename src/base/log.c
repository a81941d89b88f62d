#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"

#define LOG_LINE_MAX 2048

static _Atomic int min_level = LOG_INFO;

static const char *const names[] = { "debug", "info", "warn", "error" };

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

void log_line(enum log_level level, const char *module, const char *fmt, ...)
{
    if ((int)level < atomic_load(&min_level))
        return;
    char line[LOG_LINE_MAX], when[CLOCK_TEXT_MAX];
    int n = snprintf(line, sizeof(line), "%s %-5s %-9s ", clock_text(clock_now_ms(), when),
                     names[level], module);
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (m < 0)
        return;
    size_t len = strlen(line);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?'; /* the last guard of "one record, one line" */
    line[len++] = '\n';
    /* One write, so that lines of several threads and processes do not mix. */
    if (write(STDERR_FILENO, line, len) < 0)
        return;
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

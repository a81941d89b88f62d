#include "core/build_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LINES_MAX 10000
#define BYTES_MAX (1024 * 1024)
#define NOTES_MAX 3000 /* more than steps can make */

static int put(struct build_log *log, enum build_log_level level, const char *p, size_t n)
{
    if (log->n == log->cap) {
        size_t cap = log->cap ? log->cap * 2 : 64;
        struct build_log_line *lines = reallocarray(log->lines, cap, sizeof(*lines));
        if (!lines)
            return -ENOMEM;
        log->lines = lines;
        log->cap = cap;
    }
    struct build_log_line *line = &log->lines[log->n];
    *line = (struct build_log_line){ .time_ms = clock_now_ms(), .level = level };
    memcpy(line->step, log->step, sizeof(line->step));
    line->text = strndup(p, n);
    if (!line->text)
        return -ENOMEM;
    log->n++;
    log->bytes += n;
    return 0;
}

static void flush(struct build_log *log, int stream)
{
    size_t n = log->n_partial[stream];
    log->n_partial[stream] = 0;
    if (n && log->partial[stream][n - 1] == '\r')
        n--;
    if (n == 0)
        return;
    if (log->n >= LINES_MAX || log->bytes + n > BYTES_MAX ||
        put(log, stream ? LOG_LINE_WARN : LOG_LINE_INFO, log->partial[stream], n) < 0)
        log->left_out++;
}

void build_log_output(struct build_log *log, enum wire_stream stream, const char *p, size_t n)
{
    int at = stream == WIRE_STDERR;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\n' || log->n_partial[at] == sizeof(log->partial[at]))
            flush(log, at);
        if (p[i] != '\n' && p[i] != '\0')
            log->partial[at][log->n_partial[at]++] = p[i];
    }
}

void build_log_step(struct build_log *log, const char *step)
{
    flush(log, 0);
    flush(log, 1);
    (void)snprintf(log->step, sizeof(log->step), "%s", step);
}

void build_log_note(struct build_log *log, enum build_log_level level, const char *text)
{
    flush(log, 0);
    flush(log, 1);
    if (log->n >= LINES_MAX + NOTES_MAX || put(log, level, text, strlen(text)) < 0)
        log->left_out++;
}

void build_log_end(struct build_log *log)
{
    char text[80];
    flush(log, 0);
    flush(log, 1);
    if (log->left_out == 0)
        return;
    (void)snprintf(text, sizeof(text), "%llu lines of output are left out: the log was full",
                   (unsigned long long)log->left_out);
    (void)put(log, LOG_LINE_WARN, text, strlen(text));
}

void build_log_done(struct build_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        free(log->lines[i].text);
    free(log->lines);
    log->lines = NULL;
    log->n = log->cap = log->bytes = 0;
}

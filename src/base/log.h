/* log - one event, one line on stderr: time, level, module, sentence, key=value.
 *
 * Values that came from outside go through LOG_STR ("%s" with log_quote), so a
 * record stays one line whatever they hold. Secrets never appear. Thread-safe.
 * A thread that works on a request says so once, and each of its lines then ends in req=. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/json.h"

#define LOG_LINE_MAX 2048
#define LOG_REQUEST_MAX 65

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

void log_set_level(enum log_level level);
int log_parse_level(const char *name, enum log_level *ret_level); /* -EINVAL if unknown */
const char *log_level_name(enum log_level level);
void log_set_format(enum log_format format);
int log_parse_format(const char *name, enum log_format *ret_format); /* -EINVAL */
/* The request this thread works on from now on; NULL: none. Copied. */
void log_set_request(const char *id);
void log_line(enum log_level level, const char *module, const char *fmt, ...) _printf_(3, 4);

/* Quote and escape an outside value into out; always terminated. Returns out. */
const char *log_quote(char *out, size_t size, const char *value);

/* ---- a line taken apart ---- */

struct log_record {
    int64_t time_ms;
    enum log_level level;
    const char *module;
    const char *text; /* the sentence and its key=value pairs */
};

struct log_field {
    const char *name, *value; /* into the text; the value still quoted */
    size_t name_len, value_len;
};

/* How long the sentence at the beginning of the text is. */
size_t log_sentence(const char *text);
/* The next key=value from *at on, which starts behind the sentence; false: no more. */
bool log_field_next(const char **at, struct log_field *ret_f);
/* The value as it was before it was quoted. Always terminated; returns its length. */
size_t log_field_value(const struct log_field *f, char *out, size_t size);
/* {"time", "level", "module", "message", and each pair as a text}. */
void log_put_json(struct jout *j, const struct log_record *rec);

/* Where each line goes besides stderr: called in the thread that logs. Set once, early. */
void log_set_tap(void (*tap)(const struct log_record *rec));

#define log_debug(...) log_line(LOG_DEBUG, LOG_MODULE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, LOG_MODULE, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, LOG_MODULE, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, LOG_MODULE, __VA_ARGS__)

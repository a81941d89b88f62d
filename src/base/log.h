/* log - one event, one line on stderr: time, level, module, sentence, key=value.
 *
 * Values that came from outside go through LOG_STR ("%s" with log_quote), so a
 * record stays one line whatever they hold. Secrets never appear. Thread-safe. */
#pragma once
#include <stddef.h>
#include "base/cleanup.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_set_level(enum log_level level);
int log_parse_level(const char *name, enum log_level *ret_level); /* -EINVAL if unknown */
void log_line(enum log_level level, const char *module, const char *fmt, ...) _printf_(3, 4);

/* Quote and escape an outside value into out; always terminated. Returns out. */
const char *log_quote(char *out, size_t size, const char *value);

#define log_debug(...) log_line(LOG_DEBUG, LOG_MODULE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, LOG_MODULE, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, LOG_MODULE, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, LOG_MODULE, __VA_ARGS__)

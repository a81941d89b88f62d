/* build_log - what a build said, line by line, for clients that come back for more.
 *
 * Bounded: what comes when it is full is counted and left out, but for notes (build_log_note), for which
 * there is always room. Not locked, never blocks. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

#define BUILD_LOG_STEP_MAX 16

enum build_log_level { LOG_LINE_DEBUG, LOG_LINE_INFO, LOG_LINE_WARN, LOG_LINE_ERROR };

struct build_log_line {
    int64_t time_ms;
    enum build_log_level level;
    char step[BUILD_LOG_STEP_MAX]; /* "base", "1", ... */
    char *text;
};

struct build_log {
    struct build_log_line *lines;
    size_t n, cap, bytes;
    uint64_t left_out;
    char step[BUILD_LOG_STEP_MAX]; /* of what comes next */
    char partial[2][4096];         /* stdout and stderr: a line that has not ended */
    size_t n_partial[2];
};

void build_log_step(struct build_log *log, const char *step); /* also ends what has not ended */
void build_log_output(struct build_log *log, enum wire_stream stream, const char *p, size_t n);
void build_log_note(struct build_log *log, enum build_log_level level, const char *text);
void build_log_end(struct build_log *log); /* the last line: what was left out */
void build_log_done(struct build_log *log);

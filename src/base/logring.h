/* logring - the newest lines of this process's log, kept in memory for those who ask later.
 *
 * A ring with a limit on lines and one on bytes: the oldest go. Readers go on from a sequence
 * number and may wait for the next line; one that is too slow misses lines, the log never waits.
 * Thread-safe. One for the process. */
#pragma once
#include "base/log.h"

#define LOGRING_LINES 8192
#define LOGRING_BYTES (4u * 1024 * 1024)
#define LOGRING_MODULE_MAX 16

struct logring_line {
    uint64_t seq; /* counts from 1 */
    int64_t time_ms;
    enum log_level level;
    char module[LOGRING_MODULE_MAX];
    char text[LOG_LINE_MAX];
};

void logring_start(void); /* from now on lines are kept */
/* The first line with a greater number than `since`, waiting up to wait_ms for one: 1, or 0. */
int logring_next(uint64_t since, int wait_ms, struct logring_line *ret_line);

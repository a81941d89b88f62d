/* child - warren-keeper, started and watched by warrend.
 *
 * It holds the read end of a pipe whose write end is ours: when this process is gone, however
 * it went, the keeper sees the end of that pipe and goes too. It tells on a second pipe that it
 * is ready. */
#pragma once
#include <sys/types.h>

#include "base/err.h"

struct child_config {
    const char *data, *run, *cgroup, *log_level;
    uid_t client_uid;
};

struct child {
    pid_t pid;
    int alive_fd; /* closing it ends the keeper */
};

/* Starts it and waits until it is ready. */
int child_start(const struct child_config *config, struct child *ret_child, struct err *err);
/* Ends it, waiting up to timeout_ms. */
void child_stop(struct child *child, int timeout_ms);

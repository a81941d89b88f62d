/* sweeper - a process beside the keeper that takes out what is slow to let go of.
 *
 * Dropping the last reference to a sandbox's root writes the filesystem out, and deleting a
 * subvolume takes its time; neither may hold the keeper up. The trash directory is the truth: a
 * sweeper that dies is started again and finds its work there. */
#pragma once
#include <sys/types.h>

#include "base/err.h"

struct storage;

struct sweeper {
    struct storage *storage;
    pid_t pid;
    int fd; /* -1 while it does not run */
};
#define SWEEPER_INIT \
    {                \
        NULL, -1, -1 \
    }

int sweeper_start(struct sweeper *s, struct storage *storage, struct err *err);
/* Takes root_fd (-1: none): closes it over there, then empties the trash. Never blocks. */
void sweeper_sweep(struct sweeper *s, int root_fd);

/* sweeper - a process beside the keeper that takes out what is slow to let go of, and writes out what
 * nobody waits for.
 *
 * Dropping the last reference to a sandbox's root writes the whole pool out, and deleting a
 * subvolume takes its time; neither may hold the keeper up, nor may 1 GiB of memory on its way to the
 * disk. The roots of sandboxes that were deleted within a second go together: that is one writing for
 * all of them. The trash directory is the truth: a sweeper that dies is started again and finds its work there. */
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
/* The same with the root of a sandbox that is deleted: some time soon, with others. */
void sweeper_bury(struct sweeper *s, int root_fd);
/* Takes a subvolume's descriptor: what is in it is on disk some time soon, and so are the names that were given until
 * then. Never blocks. */
void sweeper_flush(struct sweeper *s, int subvolume_fd);

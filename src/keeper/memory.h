/* memory - a cell's memory written down by CRIU, and brought back from that.
 *
 * dump and restore are stories told by a process of their own (points.c, cells_revive.c start it),
 * which talks to the keeper where the keeper has to act. What a story leaves behind when it is cut
 * is in the cell's run directory (park.h) and in storage under an unfinished name. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "keeper/keeper.h"

struct cgroup_fds;

/* In the process: the memory and files of a running cell, of one moment. `rest` has the cell's work frozen
 * and returns; it stays so until this returns, when the cell is as it was, or stopped for good
 * (KEEPER_POINT_END). */
struct memory_dump {
    const struct keeper_request *req;
    pid_t pid; /* of its init */
    int (*rest)(void *arg, struct err *err);
    void (*back)(void *arg); /* it may go on: told as soon as it can, unless it ended or failed */
    void *arg;
    bool keep_shm;  /* even an empty /dev/shm */
    uint64_t bytes; /* told: what it takes */
    bool adrift;    /* told: it could not be brought back, and is still at rest */
};
int memory_dump(struct keeper *k, struct memory_dump *d, struct err *err);

/* In the process: a cell from a checkpoint's memory, in groups and with ids of its own. It is whole when
 * `born` is called, with its work frozen, and stays so. */
struct memory_restore {
    const struct keeper_request *req;
    uint32_t uid_base;
    int run_dir, listener;
    const struct cgroup_fds *fds;
    int (*born)(void *arg, pid_t pid, struct err *err); /* below zero: it is not to live */
    void *arg;
};
int memory_restore(struct keeper *k, const struct memory_restore *m, struct err *err);

/* ---- memory_desk.c, in the process ---- */
/* A mount namespace as CRIU wants it. The working directory is entered again there. */
int memory_own_mounts(struct err *err);
/* Where a cell's memory is written to while the cell stands still: in memory, if there is plenty of it, which takes
 * a third of the time; else `kept` itself. Owned unless it is `kept`. */
int memory_desk(struct keeper *k, const char *id, int kept, int *ret_fd, struct err *err);
int memory_desk_clear(int desk, int kept, struct err *err); /* all of it to where it is kept */

/* As criu_find; memory_unsupported. */
struct criu;
int memory_find_criu(struct criu *ret, struct err *err);

/* In the process: bring a cell back that was left parked; 0 as well if it was not. */
int memory_rescue(struct keeper *k, const char *id, pid_t pid, struct err *err);

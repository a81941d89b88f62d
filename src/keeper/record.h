/* record - what the run directory remembers of a running cell, for a keeper that comes later.
 *
 * <run>/cells/<id>/record holds its pid, that process's start time (so that a reused pid is not
 * taken for it), its id range, its image and the root of its control groups. Written before the cell's first process may go on. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "kernel/cgroup.h"
#include "wire/keeper.h"

struct record {
    pid_t pid;
    uint64_t start_time; /* field 22 of /proc/<pid>/stat */
    uint32_t uid_base;
    char image[KEEPER_IMAGE_SIZE];
    char cgroup[CGROUP_NAME_SIZE]; /* "": an earlier version wrote the record */
};

int record_start_time(pid_t pid, uint64_t *ret_time); /* -ESRCH */
int record_write(int cell_dir, const struct record *r, struct err *err);
int record_read(int cell_dir, struct record *ret_r);
/* A pidfd of the recorded process if it still is that process; -ESRCH if not. */
int record_open_pid(const struct record *r);

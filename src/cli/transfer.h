/* transfer - bytes between a descriptor here and a file or a directory of a sandbox.
 *
 * Directories go as tar, packed and unpacked by the system's own tar while they pass. Shows how
 * far it is on a terminal. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/cli.h"

struct transfer {
    struct cli *cli;
    const char *user; /* NULL: the sandbox's */
    bool quiet;
};

/* Of what fd gives, to its end; total -1: unknown. `query` is NULL or "name=value". */
int transfer_put(const struct transfer *t, const char *sandbox, const char *path, int fd,
                 int64_t total, const char *mode, bool append, struct err *err);
int transfer_get(const struct transfer *t, const char *sandbox, const char *path, int fd,
                 int64_t total, struct err *err);
/* The directory as a tar to fd; a tar from fd, unpacked under path. */
int transfer_get_tar(const struct transfer *t, const char *sandbox, const char *path, int fd,
                     struct err *err);
int transfer_put_tar(const struct transfer *t, const char *sandbox, const char *path, int fd,
                     struct err *err);

/* A file or a directory here, with all it holds, becomes `path` there; a directory that is there already
 * keeps what else it has. */
int transfer_put_path(const struct transfer *t, const char *from, const char *sandbox,
                      const char *path, struct err *err);

/* The system's tar at work on a directory here: pack (*ret_fd is read) or unpack (*ret_fd is
 * written). tar_wait closes nothing; it fails if tar did. */
int tar_start(bool unpack, const char *dir, int *ret_fd, pid_t *ret_pid, struct err *err);
int tar_wait(pid_t pid, struct err *err);

/* unpack - a root filesystem tar into an empty directory, by a process that can reach nothing else.
 *
 * The archive is hostile. A child with a mount namespace of its own, whose root is the directory,
 * with no network and few capabilities, reads it with libarchive; what it could be talked into is
 * bounded by that directory and its quota. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct unpack_report {
    int code; /* 0: done */
    char what[40];
    char msg[ERR_MSG_MAX];
};

/* Starts the child. It reads tar_fd and fills dir_fd (both borrowed), sends one struct
 * unpack_report on *ret_report_fd and exits; end of file without one means it was killed. */
int unpack_start(int tar_fd, int dir_fd, pid_t *ret_pid, int *ret_report_fd, struct err *err);

/* child - a launcher: a process of a few lines that stays root, starts one program of ours and starts
 * it again whenever it dies.
 *
 * Both hold the read end of a pipe whose write end is ours: when this process is gone, however
 * it went, they see the end of that pipe and go too. The program tells on a second pipe that it is
 * ready. A Ctrl-C meant for us reaches neither. */
#pragma once
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define CHILD_FDS_MAX 4
#define CHILD_ARGS_MAX 64

/* A descriptor that each life of the program gets, as "--NAME N". */
struct child_fd {
    const char *option;
    int fd;
};

struct child_config {
    const char *program;     /* "warren-keeper" */
    const char *const *args; /* NULL-terminated; --parent-fd and --ready-fd are added */
    const struct child_fd *fds;
    size_t nfds;
    const int *rights; /* the program's capabilities; its launcher has none */
    size_t nrights;
};

struct child {
    pid_t pid;
    int alive_fd;               /* closing it ends the launcher and the program */
    _Atomic uint64_t *restarts; /* of the program; a page shared with the launcher, or NULL */
};

/* Where a program of ours is: beside this one, or where WARREN_LIBEXEC says. */
int child_program(const char *name, char path[PATH_MAX], struct err *err);
/* Starts both and waits until the program is ready; the descriptors stay the caller's. */
int child_start(const struct child_config *config, struct child *ret_child, struct err *err);
/* Ends both, waiting up to timeout_ms. */
void child_stop(struct child *child, int timeout_ms);

/* launch - fork, become what the caller asked for, exec.
 *
 * A plain copy of ourselves, not vfork: whoever is root inside can stop the child between fork
 * and exec, or its cpu quota can be used up, and a vfork parent would wait with it, which would
 * take the API away. We are small, so the copy costs little. Between fork and exec the child
 * makes system calls on what was prepared before and allocates nothing; if it fails, it says at
 * which step through a close-on-exec pipe whose end of file means that exec happened. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "init/account.h"
#include "init/family.h"

#define LAUNCH_PROCS_MAX 16 /* v1 hierarchies on one host */

enum launch_step {
    LAUNCH_STDIO = 1,
    LAUNCH_FAMILY,
    LAUNCH_LIMITS,
    LAUNCH_TERMINAL,
    LAUNCH_IDS,
    LAUNCH_WORKDIR,
    LAUNCH_EXEC,
};

struct launch_report {
    int32_t step; /* enum launch_step */
    int32_t code; /* errno */
};

struct launch {
    char **argv, **envp;
    const char *cwd;  /* absolute */
    bool cwd_or_root; /* the caller named none: where it cannot be entered, "/" will do */
    const struct account *who;
    int stdio[3]; /* a terminal is all three */
    bool terminal;
    bool own[3];     /* ours to give: the user becomes the owner, so /dev/stdout opens for him */
    uint64_t nofile; /* 0: as it is */
    const struct family *family;
};

/* Read what the process was started with: once, before it raises its own limits. `cookie` is what
 * the seccomp filter wants to see with clone3; NULL: nothing. */
void launch_forget(void); /* in a child that starts nothing: what it could start things with */
/* While we are parked (park.h) none of procs_fds is open. */
void launch_let_go(void);
void launch_take_back(const int *procs_fds, size_t n); /* takes them; -1 is none */
void launch_setup(const int *procs_fds, size_t n, const uint64_t cookie[2]);

/* The child's pid; *ret_report is the pipe's reading end, non-blocking, the caller's. */
pid_t launch(const struct launch *l, int *ret_report);

/* A copy of ourselves that goes on in `family` without exec: 0 in the copy, whose *ret_r says
 * whether it got there; the number clone3 needs is wiped from its memory. Async-signal-safe. */
pid_t launch_fork(const struct family *f, int *ret_r);
/* Take on the ids for good and look whether they were given. Async-signal-safe. */
int launch_become(const struct account *a);
/* Keep root's rights, and have what is made in files belong to the account. */
int launch_act_for(const struct account *a);

/* What to tell the caller of a report; always negative. */
int launch_explain(struct launch_report report, const char *program, const char *cwd,
                   struct err *err);

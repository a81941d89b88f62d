/* criurpc - one dump or restore by CRIU, as a conversation with it.
 *
 * CRIU runs as `criu swrk`: a process for one request, over a socket pair, in its own message format. It
 * stops at named moments (hooks) and goes on when it is told to. Knows nothing of cells: what is to
 * be kept, where, and what happens at a hook is the caller's. Blocks until it is done: callers are
 * processes made for it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "kernel/starter.h"

#define CRIURPC_LOG "criu.log"
#define CRIURPC_KEYS STARTER_GIVEN_MAX

struct criurpc {
    int starter;                /* starts CRIU (kernel/starter.h) */
    struct starter_place place; /* where it is to be */
    /* At a hook; `pid` is of the first process where there is one. Below zero: it gives up. */
    int (*hook)(void *arg, const char *name, pid_t pid, struct err *err);
    void *arg;

    int images_fd, work_fd;    /* directories: images; logs and figures */
    pid_t pid;                 /* dump: the first process of the tree */
    bool leave_running;        /* dump: else what was dumped stays stopped */
    const char *freeze_cgroup; /* dump: the group that holds the tree; or NULL */
    const char *root;          /* restore: a mount point, the new root */
    int inherit_fd;            /* restore: what has one of inherit_keys is this */
    const char *inherit_keys[CRIURPC_KEYS];
    const char *const *external; /* what is the caller's: "mnt[/dev]:dev" and the like */
    size_t nexternal;
};

/* Both return when CRIU has ended. -errno with CRIU's own words: the first that matter of its log.
 * started, when not NULL, is told CRIU's pid before it is asked anything. */
int criurpc_dump(const struct criurpc *c, void (*started)(void *arg, pid_t pid), struct err *err);
int criurpc_restore(const struct criurpc *c, void (*started)(void *arg, pid_t pid), pid_t *ret_pid,
                    struct err *err);

/* ---- criurpc_words.c ---- */
/* What a log says went wrong: the first complaint that is one, without place and time, and the
 * process it is about (0: none is named). Pure; -ENOENT: no complaint. */
int criurpc_complaint(const char *log, size_t n, char *out, size_t size, pid_t *ret_pid);
/* The same of the run's own log, as an error: about which process and what it holds, if that can be told. */
int criurpc_explain(const struct criurpc *c, int code, struct err *err);

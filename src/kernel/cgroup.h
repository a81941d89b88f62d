/* cgroup - the control groups of one daemon and of each cell, on v2 and on v1-hybrid hosts.
 *
 * In the unified hierarchy (kill, freeze, cpu time) a cell has `<root>/<id>/init` for its pid 1
 * and `<root>/<id>/work` for everything else. The limits sit on `work` where controllers are in
 * v2, and on `<root>/<id>` of each v1 hierarchy where they are not. Pid 1 has limits of its own,
 * on `init`, or on `<root>/<id>.init` in v1: the workload can neither starve it nor make it work
 * for more than the sandbox may use. Knows nothing of storage or namespaces. Each call is a few
 * short writes to the kernel. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

enum cgroup_controller { CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS, CGROUP_CONTROLLERS };

struct cgroup_host; /* what this host has, and our root group in each hierarchy */

/* Finds the hierarchies and makes our root group `name` in each. */
int cgroup_host_open(const char *name, struct cgroup_host **ret_host, struct err *err);
void cgroup_host_free(struct cgroup_host *host); /* the kernel's directories stay */
DEFINE_FREEP(struct cgroup_host *, cgroup_host_free)
int cgroup_host_remove(struct cgroup_host *host); /* our root groups, if they are empty */

/* A former root: a daemon that was started with another name made cells below it. All calls
 * below find those cells there; new ones are made below our own root. A former root goes with
 * its last cell. */
#define CGROUP_NAME_SIZE 64
const char *cgroup_host_name(const struct cgroup_host *host);
int cgroup_host_add_former(struct cgroup_host *host, const char *name, struct err *err);
struct cgroup_host *cgroup_host_next(const struct cgroup_host *host); /* former root; NULL */
/* The name of the root above a cell's process, from the unified hierarchy; -ENOENT. */
int cgroup_root_of(pid_t pid, const char *id, char ret_name[CGROUP_NAME_SIZE]);

/* Limit all cells together, for as long as the root group exists; 0: no limit. If more memory is
 * in use, v1 answers -EBUSY and keeps the old limit, v2 kills processes. */
int cgroup_host_limit(struct cgroup_host *host, uint64_t memory_bytes, uint64_t pids,
                      struct err *err);

/* The memory that all cells use, and may use; limit 0: none, or none that is known. */
void cgroup_host_memory(struct cgroup_host *host, uint64_t *ret_bytes, uint64_t *ret_limit);

bool cgroup_host_has(const struct cgroup_host *host, enum cgroup_controller c);
bool cgroup_host_is_v2(const struct cgroup_host *host, enum cgroup_controller c);
bool cgroup_host_has_unified(const struct cgroup_host *host);
int cgroup_host_group(const struct cgroup_host *host); /* our unified root, borrowed; -1 */

struct cgroup_limits {
    uint64_t memory_bytes; /* 0 leaves a limit as it is */
    uint32_t cpu_millis;
    uint32_t pids;
};

/* What a cell's pid 1 needs, opened by us because it could not: all owned by the holder. */
struct cgroup_fds {
    int init_group;                /* for CLONE_INTO_CGROUP; -1 without a unified hierarchy */
    int work_group;                /* likewise, for the workload */
    int oom;                       /* the file that counts OOM kills; -1 without memory */
    int procs[CGROUP_CONTROLLERS]; /* to join the workload's v1 groups: write "0"; -1 if none */
    int init_procs[CGROUP_CONTROLLERS]; /* likewise, of pid 1 */
    int ns; /* a cgroup namespace that pid 1 must be born in; -1 where one of its own making does */
};
#define CGROUP_FDS_INIT                                \
    {                                                  \
        -1, -1, -1, { -1, -1, -1 }, { -1, -1, -1 }, -1 \
    }
void cgroup_fds_close(struct cgroup_fds *fds);

/* Make the groups of a cell, in two steps: first what its pid 1 is born in, then what holds the
 * limits (and the rest of *fds), so that the second can be done while pid 1 comes up. `owner` is the
 * host uid of root inside: it may make groups below `work`. The first leaves nothing behind on
 * failure; after the second, cgroup_remove. */
int cgroup_make(struct cgroup_host *host, const char *id, uint32_t owner,
                struct cgroup_fds *ret_fds, struct err *err);
int cgroup_make_limits(struct cgroup_host *host, const char *id, const struct cgroup_limits *limits,
                       struct cgroup_fds *fds, struct err *err);
int cgroup_limit(struct cgroup_host *host, const char *id, const struct cgroup_limits *limits,
                 struct err *err);
int cgroup_freeze(struct cgroup_host *host, const char *id, bool on, struct err *err);
/* Until all of it stands still: 0; -ETIMEDOUT: some of it does not yet, being busy in the kernel. */
int cgroup_wait_frozen(struct cgroup_host *h, const char *id, int timeout_ms);
int cgroup_kill(struct cgroup_host *host, const char *id); /* all of it; -ENOSYS before 5.14 */

/* What cgroup_make and cgroup_make_limits gave, of groups that are there. */
int cgroup_reopen(struct cgroup_host *host, const char *id, struct cgroup_fds *ret_fds,
                  struct err *err);
/* A cell's group in the unified hierarchy, which holds "init" and "work"; owned. */
int cgroup_open(struct cgroup_host *host, const char *id);
/* Move a pid 1 that was restored among the work out of the work's v1 groups into its own. */
void cgroup_leave_v1(struct cgroup_host *host, const char *id, pid_t pid);

struct cgroup_usage {
    uint64_t memory_bytes, memory_peak_bytes, cpu_us, oom_kills;
    uint32_t pids;
};
int cgroup_usage(struct cgroup_host *host, const char *id, struct cgroup_usage *ret_usage,
                 struct err *err);

/* The two that are wanted when a cell ends: each one file. */
uint64_t cgroup_cpu_us(struct cgroup_host *host, const char *id);
uint64_t cgroup_memory_bytes(struct cgroup_host *host, const char *id);
/* How much of it are files that the kernel drops when the cell needs the room. */
uint64_t cgroup_cache_bytes(struct cgroup_host *host, const char *id);

/* Remove a dead cell's groups. -EBUSY while a process is still on its way out. */
int cgroup_remove(struct cgroup_host *host, const char *id);

/* Call fn for each cell that has a group below our own root. */
int cgroup_each(struct cgroup_host *host, void (*fn)(const char *id, void *arg), void *arg);

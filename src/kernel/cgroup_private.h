/* cgroup_private - what the files of the control groups share. cgroup_host.c: what this host has;
 * cgroup_make.c: the groups of a new cell; cgroup.c: one cell's limits, figures and end. */
#pragma once
#include "kernel/cgroup.h"

/* Where delegation ends at namespaces, nobody inside one may write to its root's own files, not even CRIU, which has to
 * see groups as the cell does and freezes them. So the root is the cell's group, and all of the cell is below this. */
#define CGROUP_BOUNDED "cell"
#define CGROUP_INIT_SUFFIX ".init" /* ends the name of pid 1's group in v1: "<id>.init" */
#define CGROUP_INIT_NAME_SIZE 96   /* of id and suffix */
#define CGROUP_STAT_SIZE 16384     /* the longest file that we read, memory.stat, has 4 KiB */

extern const char *const cgroup_names[CGROUP_CONTROLLERS];

struct cgroup_host {
    int unified;                /* our root group in the unified hierarchy, or -1 */
    int v1[CGROUP_CONTROLLERS]; /* our root group in a v1 hierarchy, or -1 */
    bool in_v2[CGROUP_CONTROLLERS];
    bool ns_bounds; /* the unified hierarchy's delegation ends at cgroup namespaces */
    int parents[CGROUP_CONTROLLERS + 1]; /* the hierarchies' own roots, unified last */
    char unified_options[256];           /* that the unified hierarchy is mounted with */
    char name[CGROUP_NAME_SIZE];
    struct cgroup_host *former; /* a list of former roots */
};

void cgroup_drop_root(struct cgroup_host *h); /* its directories, if they are empty */
/* The root that this cell's groups are below: a former one, or our own. */
struct cgroup_host *cgroup_home(struct cgroup_host *h, const char *id);

/* Open (and with make: create) the directory `path` below dirfd; -errno. */
int cgroup_open_group(int dirfd, const char *path, bool make);
/* Whether pid 1 has its own group of this controller. Not for pids: it starts few processes, all
 * for the work. */
static inline bool cgroup_bounds_init(enum cgroup_controller c)
{
    return c != CGROUP_PIDS;
}
/* The name of pid 1's group in v1; -ENAMETOOLONG. */
int cgroup_init_name(const char *id, char out[CGROUP_INIT_NAME_SIZE]);
/* Pid 1's memory limit, whatever the sandbox's. Does nothing where pid 1 has no group. */
int cgroup_limit_init_memory(struct cgroup_host *h, const char *id);
/* Hand the v2 controllers down to the children of `dirfd` ('+'), or no longer ('-'). A controller
 * that is not there is found missing when its limit is set, so failures need no word here. */
void cgroup_hand_down(const struct cgroup_host *h, int dirfd, char sign);

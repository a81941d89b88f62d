/* oom - whom the kernel ends first when the whole machine is out of memory.
 *
 * The daemon's own processes last, what runs in sandboxes or works for one job first. A process inherits
 * this from its parent; anyone may raise their own, only root lower it. */
#pragma once
#include <sys/types.h>

#define OOM_DAEMON (-900) /* warrend, the keeper, the broker and their launchers */
#define OOM_JOB 300       /* a program started for one job, which can be done again */
#define OOM_SANDBOX 500   /* what a sandbox runs */

/* 0: this process. Needs /proc. A failure is no more than a host that protects less: -errno. */
int oom_set(pid_t pid, int adj);

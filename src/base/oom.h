/* oom - the order in which the kernel kills processes when the whole machine is out of memory.
 *
 * Sandboxes and programs started for one job go first, the daemon's own processes last. A
 * process inherits its score from its parent; it may raise its own, and only root may lower it. */
#pragma once
#include <sys/types.h>

#define OOM_DAEMON (-900) /* warrend, the keeper, the broker and their launchers */
#define OOM_JOB 300       /* a program started for one job, which can be done again */
#define OOM_SANDBOX 500   /* every process in a sandbox */

/* pid 0: this process. Needs /proc. Callers may ignore the -errno: the host then protects less. */
int oom_set(pid_t pid, int adj);

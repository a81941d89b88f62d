/* ns_size - the size of the machine that a cell sees: /proc/meminfo, its processors (ns_cpus.h), and /sys/fs/cgroup
 * as cgroup v2 has it.
 *
 * The kernel shows every cell the host's, and programs that size themselves by it are killed at the cell's
 * limit. So each cell has files of its own there, on v1 and on v2 hosts alike, with its limits as the machine's size. They are
 * written when the cell is made and rewritten in place when its limits change or its use is read: the kernel does not
 * fill them, so use is as of then. The host's root owns them, an id without a name inside: nobody there can write
 * them. Short calls on small files. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "cell/ns.h"
#include "cell/ns_cpus.h"

#define NS_MEMINFO_PATH "/proc/meminfo" /* inside */
#define NS_CGROUP_PATH "/sys/fs/cgroup"
#define NS_MEMINFO_SUFFIX ".meminfo" /* in NS_BOOT_DIR: behind the cell's id */
#define NS_CGROUP_SUFFIX ".cgroup"
#define NS_CPUINFO_SUFFIX ".cpuinfo"
#define NS_ONLINE_SUFFIX ".online"

/* What the name in NS_BOOT_DIR ends with of the stand-in for `path`; NULL: none. */
const char *ns_size_suffix(const char *path);

/* Write the files of cell `id`. A limit of 0 is none: the host's size is shown. */
int ns_size_put(const struct ns_host *host, const char *id, const struct cgroup_limits *limits,
                struct err *err);
void ns_size_drop(const struct ns_host *host, const char *id); /* it ended */

/* Rewrite the files that the cell of init `pid` sees, whichever keeper made it: its limits (0: as they are),
 * or what it uses. Does nothing in a cell of an older version, which has none. */
int ns_size_limit(pid_t pid, const struct cgroup_limits *limits);
int ns_size_use(pid_t pid, uint64_t used_bytes, uint64_t cache_bytes);

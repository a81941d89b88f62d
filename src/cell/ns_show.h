/* ns_show - files and trees that cells see in place of the kernel's.
 *
 * Parts of /proc and /sys count what the whole machine does, so a cell could watch its neighbours there. Programs
 * want them in their known form, so each has a stand-in: written once when the keeper starts,
 * shared by all cells, never changed. The host's settings, the shape of its processor and its loopback
 * interface (the only one that a cell has) are copied; whatever counts is zero. Short calls on small files. */
#pragma once
#include <sys/types.h>

#include "base/err.h"

#define NS_SHOW_DIR "masks"       /* of the shared directory */
#define NS_SHOW_SIZE "64m"        /* some 60 small files a cpu, a page each */
#define NS_SHOW_EMPTY "empty"     /* there: an empty directory, */
#define NS_SHOW_NOTHING "nothing" /* an empty file, */
#define NS_SHOW_SYS "sys"         /* all of /sys: a cell has no sysfs */

/* Fill the directory; what the host does not have is left out. */
int ns_show_fill(int dir, struct err *err);

/* The name in NS_SHOW_DIR of the stand-in for `path` ("/proc/loadavg"); NULL: it has none. */
const char *ns_show_name(const char *path);

/* Some files of /proc/PID/net count for the whole machine and are there for each process, out of any mount's
 * reach. They belong to the network namespace of `pid`: nobody inside may open them from now on. */
int ns_show_net(pid_t pid, struct err *err);

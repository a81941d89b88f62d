/* confine - the broker gives up what it does not need: root, and the filesystem.
 *
 * The broker reads what strangers and sandboxes send, so it must not be able to open a path:
 * neither the admin socket nor the state, though its user could. Afterwards it has its
 * descriptors and the network, nothing else: an empty root, no capability in any set, a list of
 * system calls, and Landlock without a path where the kernel has it. Whatever a library reads
 * from disk must be read before. */
#pragma once
#include <sys/types.h>

#include "base/err.h"

/* An empty directory in run_dir becomes its root. */
int confine_enter(const char *run_dir, uid_t uid, gid_t gid, struct err *err);

/* userns - a user namespace that counts for itself.
 *
 * The kernel charges what a namespace uses of inotify instances, queued signals, timers, message queues
 * and locked memory to whoever made it, too. If root makes them all, all sandboxes share root's
 * allowance and one can take it whole. So each is made as a host id of the sandbox's own. The limits
 * of that allowance are those of the maker (userns_bound_limits). Does not wait. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

struct clone_args;

/* clone3 with CLONE_NEWUSER among its flags, as `owner`. The caller has set SECBIT_NO_SETUID_FIXUP, so
 * that it keeps its capabilities. Returns as clone3 does, with -errno; in the child the ids are still
 * the owner's until it takes on others. */
pid_t userns_clone(struct clone_args *args, uint32_t owner);

/* As whom the user namespace of that process was made. 0 or -errno. */
int userns_owner(pid_t pid, uint32_t *ret_owner);

/* What one user namespace that this process makes from now on may use of those, and its own limits. */
void userns_bound_limits(void);

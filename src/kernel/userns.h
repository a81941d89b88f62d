/* userns - user namespaces whose use the kernel counts for each sandbox.
 *
 * The kernel charges inotify instances, queued signals, timers, message queues and locked memory
 * of a namespace also to the user who made it. If root makes them all, all sandboxes share
 * root's allowance and one can take it whole. So each is made as a host id of the sandbox's own.
 * The maker's limits bound that allowance (userns_bound_limits). Does not wait. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

struct clone_args;

/* clone3 with CLONE_NEWUSER among its flags, as `owner`. The caller has set
 * SECBIT_NO_SETUID_FIXUP, so that it keeps its capabilities. Returns as clone3 does, with
 * -errno; the child has the owner's ids until it takes on others. */
pid_t userns_clone(struct clone_args *args, uint32_t owner);

/* The user who made the user namespace of that process. 0 or -errno. */
int userns_owner(pid_t pid, uint32_t *ret_owner);

/* Set the limits of each user namespace that this process makes from now on, and its own. */
void userns_bound_limits(void);

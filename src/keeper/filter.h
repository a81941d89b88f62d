/* filter - the system calls that the keeper gives up.
 *
 * A list of refused calls: the keeper mounts, traces, loads BPF and makes namespaces, so what is left to refuse
 * are parts of the kernel and of the machine that it never touches. Its sandboxes are its children and inherit the
 * list, so nothing is on it that a sandbox may call (kernel/seccomp.h). */
#pragma once
#include <stddef.h>

#include "base/err.h"

int filter_enter(struct err *err); /* for good, and for whatever is started from now on */
const char *const *filter_refused(size_t *ret_n);

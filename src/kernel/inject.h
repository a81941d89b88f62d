/* inject - other user ids for a process that runs somebody else's program.
 *
 * CRIU insists on being root when it starts, but the user namespace that it makes, or reaches into, is of
 * the id that it acts as (kernel/userns.h). So it is stopped at its next system call, makes ours first,
 * and goes on with its own as if nothing had been. Blocks for as long as it is on its way to that call. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* `pid` has one thread and SECBIT_NO_SETUID_FIXUP, so that it keeps its capabilities. What it
 * makes in file systems stays root's. -ENOSYS on a processor that this is not written for. */
int inject_euid(pid_t pid, uint32_t euid, struct err *err);

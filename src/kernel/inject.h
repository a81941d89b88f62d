/* inject - changes the user ids of a process that runs somebody else's program.
 *
 * CRIU insists on being root when it starts, but the user namespace that it makes, or reaches
 * into, must belong to the cell's host id (kernel/userns.h). So CRIU is stopped at its next
 * system call, makes ours first, and goes on with its own as if nothing had happened. Blocks
 * until CRIU reaches that call, INJECT_MS at most: it works on what a sandbox prepared, and the
 * keeper has others to serve. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define INJECT_MS 5000

/* `pid` has one thread and SECBIT_NO_SETUID_FIXUP, so that it keeps its capabilities. Files that
 * it makes stay root's. -ETIMEDOUT: it made no system call, and was killed. -ENOSYS on processors
 * other than x86-64 and aarch64. */
int inject_euid(pid_t pid, uint32_t euid, struct err *err);

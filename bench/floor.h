/* floor - the kernel's own price of a sandbox, with nothing of ours in between.
 *
 * One round makes what a Warren cell is made of: user, mount, pid, ipc, uts, net and cgroup
 * namespaces; a fresh upper, id-mapped under an overlay on an id-mapped image; proc, sys, dev,
 * devpts, shm; pivot_root; exec of a program. The clock stops at that program's first line. No
 * cgroup limits, no seccomp filter, no pid 1 of our own, no HTTP: those are Warren's to add. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"

struct floor;

/* `pool` holds the image as pool/img; the caller is root in a mount namespace of its own,
 * entered before this call (a directory opened earlier cannot be cloned from). Threads that run
 * floors at once have one each, on lanes of their own. */
int floor_new(const char *pool, unsigned lane, struct floor **ret_floor, struct err *err);
void floor_free(struct floor *f);
DEFINE_FREEP(struct floor *, floor_free)

/* Storage and namespaces are gone again when this returns; that part is not timed. */
int floor_once(struct floor *f, char *const argv[], double *ret_us, struct err *err);

/* A whole life: until the program has ended, and its storage and namespaces are gone. */
int floor_life(struct floor *f, char *const argv[], double *ret_us, struct err *err);

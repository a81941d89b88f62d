/* sysctl - limits of the kernel's that everybody on the machine shares, raised out of the way.
 *
 * Some of what a sandbox can use up is counted once for the whole machine. Where each unit is charged to
 * the memory of whoever holds it, the shared count protects nothing and one sandbox could take it from
 * the others: it is raised so far that memory ends first. Nothing is ever lowered. */
#pragma once
#include <stdint.h>

/* The number that `name` ("kernel/pid_max") holds; UINT64_MAX where there is none. */
uint64_t sysctl_u64(const char *name);
/* Tells the log what was changed, and what could not be. */
void sysctl_raise_shared(void);

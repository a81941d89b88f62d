/* sysctl - raises kernel limits that everybody on the machine shares.
 *
 * Some of what a sandbox can use up is counted once for the whole machine. Where each unit is
 * also charged to the memory of its holder, the shared count protects nothing, and one sandbox
 * could take it from the others: it is raised so far that memory runs out first. Nothing is ever
 * lowered. */
#pragma once
#include <stdint.h>

/* The number in `name` ("kernel/pid_max"); UINT64_MAX if there is none. */
uint64_t sysctl_u64(const char *name);
/* Logs each change, and each that failed. */
void sysctl_raise_shared(void);

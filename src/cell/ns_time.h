/* ns_time - a time namespace for a cell: its uptime begins with it.
 *
 * CLOCK_MONOTONIC and CLOCK_BOOTTIME say how long the host has been up, and two cells that read the same there know that
 * they share a host. Called by the cell's first process in its user namespace, before its own /proc is in place. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* The clocks start here rather than at 0: programs take 0 for "never", and a process that is a little older than its
 * namespace must not have started before time did. */
#define NS_TIME_START_S 1

/* Make one and enter it. A kernel without time namespaces goes on without. */
int ns_time_enter(struct err *err);

/* How long ago the clocks of `pid` began, as its CLOCK_BOOTTIME says; -errno. */
int ns_time_uptime(pid_t pid, int64_t *ret_s);

/* seccomp_guard - refuses calls that act on pid 1 of a cell, warren-init.
 *
 * Root inside has init's user id, so the kernel lets it change init's limits, priority and cpus,
 * and signal it. This part of the filter refuses these calls where they name pid 1, or reach it
 * by its user. It compares the low half of an argument, which is all that the kernel looks at:
 * libseccomp compares all 64 bits, and a high bit would get past it. A cell has one pid
 * namespace for good, so init is 1 to everybody. */
#pragma once
#include <linux/filter.h>
#include <stddef.h>

#define SECCOMP_GUARD_MAX 128

/* Instructions to go in front of a filter; returns how many. They end with the call number loaded,
 * or with EPERM. */
size_t seccomp_guard(struct sock_filter out[SECCOMP_GUARD_MAX]);

/* seccomp_guard - what nobody inside may do to pid 1 of its cell, warren-init.
 *
 * Root inside has init's user id, so the kernel lets it change init's limits, priority and cpus, and signal
 * it. This is the part of the filter that refuses these calls where they name pid 1, or name it among
 * others by its user. It compares the low half of an argument, which is all that the kernel looks at:
 * libseccomp compares all 64 bits, and a caller could pass by with a bit set above them. A cell has one
 * pid namespace for good, so init is 1 to everybody. */
#pragma once
#include <linux/filter.h>
#include <stddef.h>

#define SECCOMP_GUARD_MAX 128

/* Instructions to go in front of a filter; returns how many. They end with the call number loaded,
 * or with EPERM. */
size_t seccomp_guard(struct sock_filter out[SECCOMP_GUARD_MAX]);

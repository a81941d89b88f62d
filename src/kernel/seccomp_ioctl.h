/* seccomp_ioctl - which requests a sandbox may make with ioctl.
 *
 * An allow list by number: terminals, sockets, the few that files have, copies that share extents. A filesystem's or a
 * device's own requests are not on it, whatever a sandbox manages to open: inside a volume they would make subvolumes that no
 * quota counts and no deletion finds. What is not on the list gets ENOTTY, a file's usual answer to what it does not
 * know, so programs go on without. Numbers are compared as the kernel takes them, 32 bits wide. */
#pragma once
#include <linux/filter.h>
#include <stddef.h>

#define SECCOMP_IOCTL_MAX 64

/* Instructions that end each ioctl and pass everything else on to what follows them. How many they are. */
size_t seccomp_ioctl_rules(struct sock_filter out[SECCOMP_IOCTL_MAX]);

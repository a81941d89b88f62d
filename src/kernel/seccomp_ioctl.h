/* seccomp_ioctl - the ioctl requests that a sandbox may make.
 *
 * An allow list by number: terminals, sockets, the few that files have, copies that share
 * extents. Requests of a filesystem or a device are not on it, whatever a sandbox manages to
 * open: inside a volume they would make subvolumes that no quota counts and no deletion finds.
 * Other requests get ENOTTY, a file's usual answer to an unknown request, so programs go on
 * without. Numbers are compared as the kernel reads them, 32 bits wide. */
#pragma once
#include <linux/filter.h>
#include <stddef.h>

#define SECCOMP_IOCTL_MAX 64

/* Instructions that decide every ioctl and pass all other calls on. Returns how many there are. */
size_t seccomp_ioctl_rules(struct sock_filter out[SECCOMP_IOCTL_MAX]);

/* confine - leave everything behind but the descriptors at hand and one directory.
 *
 * For a process about to read what somebody else wrote: its own mount, network and ipc namespaces,
 * a root that is the given directory or empty, the capabilities of its work and no more, an allow
 * list of system calls. There is no way back. */
#pragma once
#include <stddef.h>

#include "base/err.h"

enum confine_to {
    CONFINE_FILL,    /* the tree: make files of any owner in it */
    CONFINE_LAY,     /* the same, with overlayfs's marks */
    CONFINE_READ,    /* the tree: read anything in it, trusted.* marks too */
    CONFINE_NOTHING, /* no files at all; dir_fd is not looked at */
};
int confine(enum confine_to to, int dir_fd, struct err *err);

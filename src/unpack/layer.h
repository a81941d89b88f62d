/* layer - lays an image's layer on a tree, as the OCI image format has it.
 *
 * Files keep owner, mode, times, extended attributes, capabilities, holes and hard links;
 * ".wh.NAME" hides NAME of the layers below, ".wh..wh..opq" all that they have in its directory. Devices and
 * sockets are left out: a sandbox has a /dev of its own. Anything else that cannot be made as it is
 * written refuses the layer. */
#pragma once
#include "base/err.h"
#include "wire/unpack.h"

/* Reads fd to its end and fills root (both borrowed); *ret_report has the hash and the size.
 * Makes the directories and files that a sandbox needs and the tree lacks (/dev, /proc, /sys,
 * /tmp, /etc). -EFBIG, layer_too_large: the layer exceeds its bounds. */
int layer_apply(int fd, int root, const struct unpack_bounds *bounds,
                struct unpack_report *ret_report, struct err *err);
/* The same for what diff_write wrote as DIFF_WHOLE, into an empty directory: nothing in it is a mark for
 * layers below, overlayfs's own marks come back, and nothing is added. */
int layer_apply_whole(int fd, int root, struct unpack_report *ret_report, struct err *err);

/* changes - which files differ between two states of a sandbox, by name.
 *
 * A state is an overlay: an upper directory on the image's tree, or that tree alone. Both states have the
 * same image, so only what lies in an upper directory is looked at. A file is the same if both states share its very
 * inode, unchanged, or if its bytes are; the time that it claims proves nothing. Follows no link;
 * a tree that changes meanwhile gives an answer of its time. */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "unpack/wanted.h"

/* Writes struct change_head, its path and its text for each, then one of CHANGE_END (wire/unpack.h).
 * `before`: -1 is the image alone. Borrows all. -ETIMEDOUT: the monotonic clock passed until_ms. */
int changes_write(int before, int after, int image, const struct wanted *ask, int64_t until_ms,
                  int out, struct err *err);

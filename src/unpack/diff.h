/* diff - what a sandbox changed, as an OCI layer: its overlay's upper directory as a tar.
 *
 * Overlayfs keeps a removed file as a character device 0/0 and a replaced directory with a mark of
 * its own; in a layer these are ".wh.NAME" and ".wh..wh..opq". The same files give the same bytes: names
 * are sorted, times have whole seconds. Reads through descriptors only and follows no link. */
#pragma once
#include "base/err.h"

enum diff_form {
    DIFF_LAYER,
    DIFF_WHOLE, /* as it is, for `layer_apply_whole`: marks, sockets, odd names and the root's own attributes too */
};
int diff_write(int upper, int out, enum diff_form form, struct err *err); /* borrows both */

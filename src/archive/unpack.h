/* unpack - an archive, sent as a tree to a sandbox's init while it arrives. */
#pragma once
#include "base/err.h"

/* From in_fd to TREE_INIT_FD. `format`: auto, tar, tar.gz, tar.zst, zip. 0 when the report was
 * made; else the failure is the caller's to report. */
int unpack(const char *format, int in_fd, struct err *err);

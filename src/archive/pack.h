/* pack - a tree from a sandbox's init, written as an archive. */
#pragma once
#include "base/err.h"

/* From TREE_INIT_FD to out_fd, to its end. `format`: tar, tar.gz, tar.zst, zip. 0 when the report
 * was made; else the failure is the caller's to report. */
int pack(const char *format, int out_fd, struct err *err);

/* split - an image archive (docker save, OCI layout) taken apart into its members.
 *
 * Which of them mean something is for warrend to say; here the archive is only read, in a process
 * that has no files. A root filesystem is told by the first name that only such a thing has: it is
 * not read any further. */
#pragma once
#include <stdint.h>

#include "base/err.h"

/* Borrows both; writes frames of wire/unpack.h. ratio: see stream_open. */
int split_write(int archive, int out, uint64_t ratio, struct err *err);

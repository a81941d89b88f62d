/* stream - a tar, packed or not, read as entries, and the hash of the tar.
 *
 * Two readers of libarchive in a row: one takes the packing off (gzip, zstd, xz, bzip2 or none),
 * the bytes between them are hashed, the other reads the tar. A tar has TAR_MAX bytes at most,
 * and at most `ratio` times those of its packing. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/unpack.h"

struct archive;
struct archive_entry;
struct stream;

/* Borrows fd; ratio 0: no bound. */
int stream_open(int fd, uint64_t ratio, struct stream **ret_s, struct err *err);
void stream_free(struct stream *s);
DEFINE_FREEP(struct stream *, stream_free)

/* 1 and the next entry (valid until the next call), 0 at the end. */
int stream_next(struct stream *s, struct archive_entry **ret_entry, struct err *err);
/* 1 and a piece of its data at `offset`, 0 at its end. */
int stream_data(struct stream *s, const void **ret_p, size_t *ret_n, int64_t *ret_offset,
                struct err *err);
/* Reads what lies behind the last entry; then the hash of it all is known. */
int stream_finish(struct stream *s, char ret_hex[UNPACK_HEX_SIZE], struct err *err);

/* The entry's path without leading, doubled and trailing slashes and "." parts; "" for the root.
 * -EINVAL: none, too long, or with a part "..". */
int stream_path(const char *path, char *out, size_t size);

/* upload - files that a build will copy, sent ahead of it: one archive for each hash.
 *
 * The hash is the client's own word for what it sends: it only says that the same owner means
 * the same files. The bytes are kept as they came and opened only by warren-archive. When there
 * is too much, the least recently used go first; uploads that nobody used for a week go too. All
 * of them count for the owner's quota, also while they arrive (room.h). Calls block for as long
 * as the disk takes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/core.h"

#define UPLOAD_HASH_MAX 64
#define UPLOAD_BYTES_MAX (2ull * 1024 * 1024 * 1024) /* of one */

struct upload;

bool upload_hash_valid(const char *hash); /* lower-case hex, at most UPLOAD_HASH_MAX digits */
bool upload_exists(struct core *core, const char *owner, const char *hash);
/* The archive, open for reading: the caller's. -ENOENT, upload_not_found. */
int upload_open(struct core *core, const char *owner, const char *hash, struct err *err);

/* Write as it comes, then finish or abort; both free. Until it is finished nobody sees it. */
int upload_begin(struct core *core, const char *owner, const char *hash, struct upload **ret_up,
                 struct err *err);
int upload_write(struct upload *up, const void *p, size_t n, struct err *err);
int upload_finish(struct upload *up, struct err *err);
void upload_abort(struct upload *up); /* NULL is fine */

/* upload - files that a build will copy, sent ahead of it: one archive for each hash.
 *
 * The hash is the client's own word for what it sends: nothing is concluded from it but that the
 * same owner means the same files by it. The bytes are kept as they came and opened only by
 * warren-archive. What was used longest ago goes first when there is too much, and what nobody
 * asked for in a week. All of it is in the owner's quota, and what is on its way as it comes (room.h). Calls
 * block for as long as the disk takes. */
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

/* chunker - warren-archive at work on a stream, in pieces or out of them (wire/chunks.h).
 *
 * A process of its own, for what it reads is a sandbox's or a stranger's. Its ends are descriptors; calls block. */
#pragma once
#include "core/core.h"
#include "wire/chunks.h"

struct chunker;

/* Reads `in` (borrowed; to be closed by the caller right after) to its end. known: sorted digests of pieces that need not come
 * again. */
int chunker_split(struct core *core, int in, const uint8_t (*known)[CHUNK_DIGEST], size_t n,
                  struct chunker **ret_c, struct err *err);
/* The next head; packed (CHUNK_PACKED_MAX bytes) has what follows it. Below zero: it failed. */
int chunker_next(struct chunker *c, struct chunk_head *ret_head, void *packed, struct err *err);

/* Writes to `out` (as `in` above). */
int chunker_join(struct core *core, int out, struct chunker **ret_c, struct err *err);
int chunker_give(struct chunker *c, const struct chunk_head *head, const void *packed,
                 struct err *err);
/* After CHUNK_END, or a failure of chunker_give: what it found. -EBADMSG, archive_corrupt. */
int chunker_end(struct chunker *c, uint64_t *ret_pieces, struct err *err);
void chunker_free(struct chunker *c); /* ends it; NULL is fine */
DEFINE_FREEP(struct chunker *, chunker_free)

/* blob - bytes by their digest, in <data>/blobs/sha256/<hex>: layers as they came.
 *
 * A blob appears under its name only when it is whole and its digest is right. What is being
 * written has no name, or lies in <data>/blobs/partial/<hex> where a download may go on later.
 * A blob that no image needs is removed by image.c (see image_hold in image.h). Calls block for as
 * long as the disk takes. */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "core/core.h"
#include "core/digest.h"
#include "core/room.h"

struct blob_writer;

/* Takes each byte from the room before writing it; NULL: no team's quota counts the blob. */
int blob_begin(struct core *core, struct room *room, struct blob_writer **ret_w, struct err *err);
/* The same for a blob whose digest is known: goes on where an earlier one was aborted. *ret_offset
 * is how many bytes are there (they were hashed again). One writer a digest at a time:
 * -EBUSY, blob_busy, while another has it, or had it until now: look for the blob again. */
int blob_resume(struct core *core, struct room *room, const char *digest,
                struct blob_writer **ret_w, uint64_t *ret_offset, struct err *err);
int blob_write(struct blob_writer *w, const void *p, size_t n, struct err *err);
/* Start over: the bytes so far are dropped (a server that cannot resume). */
int blob_rewind(struct blob_writer *w, struct err *err);
/* Names it. expected NULL: whatever it is. A wrong digest is -EBADMSG, invalid_image, and the bytes
 * are dropped. Frees w in any case. */
int blob_finish(struct blob_writer *w, const char *expected, char ret_digest[DIGEST_SIZE],
                uint64_t *ret_size, struct err *err);
/* Frees w. The bytes of a resumable blob stay for later, unless a quota counts them: then nobody
 * would own them. NULL is fine. */
void blob_abort(struct blob_writer *w);

/* The caller closes *ret_fd. -ENOENT without a `what` where there is none. */
int blob_open(struct core *core, const char *digest, int *ret_fd, uint64_t *ret_size,
              struct err *err);
bool blob_exists(struct core *core, const char *digest, uint64_t *ret_size); /* size may be NULL */
/* A small one whole. -EMSGSIZE when it is larger than out takes. */
int blob_read(struct core *core, const char *digest, struct buf *out, struct err *err);
int blob_put(struct core *core, const void *p, size_t n, char ret_digest[DIGEST_SIZE],
             struct err *err);
void blob_remove(struct core *core, const char *digest); /* missing is fine */

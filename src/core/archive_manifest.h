/* archive_manifest - what an archived checkpoint consists of, as the one object that makes it an archive.
 *
 * JSON, with a number that says which form it has. Files (and memory, where there is any) are a stream each, a stream is a
 * list of pieces by their digests; so are the blobs of the image's layers below. What may be secret, the environment and the
 * bindings, stays at home. Pure functions over memory. */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "core/checkpoint.h"
#include "core/digest.h"
#include "core/oci.h"
#include "wire/chunks.h"

#define ARCHIVE_FORMAT 1
#define ARCHIVE_MANIFEST_MAX (64u * 1024 * 1024) /* some 700,000 pieces */
#define ARCHIVE_HEX (CHUNK_DIGEST * 2 + 1)

struct archive_piece {
    uint8_t digest[CHUNK_DIGEST];
    uint32_t raw, packed;
};

struct archive_stream {
    uint8_t digest[CHUNK_DIGEST]; /* of it all */
    uint64_t bytes;
    struct archive_piece *pieces;
    size_t n;
};
void archive_stream_done(struct archive_stream *s);
int archive_stream_add(struct archive_stream *s, const struct archive_piece *p); /* -ENOMEM */
uint64_t archive_stream_stored(const struct archive_stream *s);                  /* packed bytes */

struct archive_layer {
    char digest[DIGEST_SIZE], diff_id[DIGEST_SIZE], media_type[OCI_TYPE_MAX];
    struct archive_stream blob;
};

struct archive_manifest {
    struct checkpoint c;          /* its tree is this machine's own: not here */
    struct archive_layer *layers; /* lowest first */
    size_t n_layers;
    struct archive_stream files, memory;
    bool has_memory;
};
void archive_manifest_done(struct archive_manifest *m);

int archive_manifest_write(const struct archive_manifest *m, struct buf *out, struct err *err);
/* -EBADMSG, archive_corrupt: it is not one, or one of a later form. */
int archive_manifest_read(const char *p, size_t n, struct archive_manifest *ret_m, struct err *err);
/* A layer's stream alone, kept beside so that a layer is read once. */
int archive_stream_write(const struct archive_stream *s, struct buf *out, struct err *err);
int archive_stream_read(const char *p, size_t n, struct archive_stream *ret_s, struct err *err);

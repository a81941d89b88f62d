/* archive_private - the inside of archiving, for archive*.c only. */
#pragma once
#include "core/archive.h"
#include "core/archive_manifest.h"
#include "core/private.h"
#include "s3/s3.h"

#define ARCHIVE_KEY 128

/* One archiving or fetching, as far as it has got. */
struct archive_run {
    struct core *core;
    const struct archive_tell *tell; /* may be NULL */
    struct archive_progress at;
    int64_t told_ms;
    const char *lock; /* the checkpoint whose lock we hold; NULL: none */
    int64_t locked_ms;
};
/* -ECANCELED, cancelled: whoever is told said stop. */
int archive_told(struct archive_run *run, bool now, struct err *err);

/* What is known of one, first at rest, then in memory; archived_ms 0: it is not there any more. */
int archive_record(struct core *core, const struct checkpoint *c, struct err *err);

/* ---- archive_bucket.c ---- */
void archive_key_piece(const uint8_t digest[CHUNK_DIGEST], char out[ARCHIVE_KEY]);
void archive_key_manifest(const char *owner, const char *id, char out[ARCHIVE_KEY]);
void archive_key_layer(const char *digest, char out[ARCHIVE_KEY]);

struct archive_known { /* pieces that are there, sorted */
    uint8_t (*digests)[CHUNK_DIGEST];
    uint64_t *sizes; /* packed */
    size_t n, cap;
};
void archive_known_done(struct archive_known *k);
int archive_known_load(struct s3 *s3, struct archive_known *ret_k, struct err *err);
bool archive_known_has(const struct archive_known *k, const struct archive_piece *p);

/* Between these nobody collects; waits for one that does. */
int archive_lock(struct archive_run *run, const char *id, struct err *err);
int archive_lock_renew(struct archive_run *run, struct err *err); /* often enough */
void archive_unlock(struct archive_run *run);
/* 1: locked; 0: somebody archives, or collects. */
int archive_lock_collect(struct s3 *s3, int64_t *ret_locked_ms, struct err *err);
int archive_lock_collect_renew(struct s3 *s3, int64_t *locked_ms, struct err *err);
void archive_unlock_collect(struct s3 *s3);

/* ret_digest, if not NULL: of the bytes that were read. */
int archive_manifest_get(struct s3 *s3, const char *key, struct archive_manifest *ret_m,
                         char ret_digest[DIGEST_SIZE], struct err *err);
/* The one that we wrote; another is -EBADMSG, archive_corrupt. */
int archive_manifest_own(struct s3 *s3, const struct checkpoint *c, struct archive_manifest *ret_m,
                         struct err *err);

/* ---- archive_stream.c ---- */
/* Cuts what `in` (taken) gives into pieces and sends those that are not known. */
int archive_stream_send(struct archive_run *run, int in, const struct archive_known *known,
                        struct archive_stream *ret_s, struct err *err);
/* Fetches the pieces and writes what they are to `out` (taken). */
int archive_stream_fetch(struct archive_run *run, const struct archive_stream *s, int out,
                         struct err *err);

/* ---- archive_put.c, archive_get.c ---- */
int archive_write(struct archive_run *run, const struct checkpoint *c, uint64_t *ret_stored,
                  char ret_manifest[DIGEST_SIZE], struct err *err);
/* An archive of it is there, whole. */
int archive_verify(struct archive_run *run, const struct checkpoint *c, struct err *err);
int archive_read(struct archive_run *run, const struct checkpoint *c, struct err *err);
/* The image's layers, here again; the tree of the topmost. The caller holds (image_hold_begin). */
int archive_read_layers(struct archive_run *run, struct room *room,
                        const struct archive_manifest *m, char ret_tree[KEEPER_IMAGE_SIZE],
                        struct err *err);

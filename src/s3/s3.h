/* s3 - objects in one bucket of an S3-compatible service, under one prefix.
 *
 * Requests are signed by libcurl (version 4 of the signatures), with the payload's hash. What fails for a reason that may
 * pass (a broken connection, silence, 5xx, 429) is tried again, later each time; every operation here may be repeated. Only
 * https is spoken, but for loopback; redirects are not followed. Keys are relative to the prefix and of [A-Za-z0-9/._-]
 * only, so they need no quoting anywhere. Calls block; a client may be used by many threads. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "s3/listing.h"

struct s3;

struct s3_config {
    const char *endpoint; /* https://host[:port] */
    const char *region, *bucket;
    const char *prefix; /* "" or "a/b" */
    const char *key_id, *secret;
    const char *token;   /* of a session; NULL: none */
    const char *ca_file; /* authorities to trust instead of the system's; NULL */
    unsigned timeout_s;  /* of silence */
    unsigned tries;
    bool (*cancelled)(void *arg); /* NULL: never; asked now and then */
    void *arg;
};

/* Copies everything. -EINVAL: something is not what it should be; nothing is sent yet. */
int s3_new(const struct s3_config *config, struct s3 **ret_s3, struct err *err);
void s3_free(struct s3 *s3);
DEFINE_FREEP(struct s3 *, s3_free)

/* The operations fail with archive_failed, but for what they say. */
int s3_put(struct s3 *s3, const char *key, const void *p, size_t n, struct err *err);
/* Appends to ret (whose limit is the most that is taken). -ENOENT: it is not there. */
int s3_get(struct s3 *s3, const char *key, struct buf *ret, struct err *err);
int s3_delete(struct s3 *s3, const char *key, struct err *err); /* what is not there is fine */
/* Every object below `prefix` (relative), its key relative too; fn as of listing_read. *ret_now_ms (NULL is
 * fine): the service's own clock. */
int s3_list(struct s3 *s3, const char *prefix, s3_object_fn fn, void *ctx, int64_t *ret_now_ms,
            struct err *err);

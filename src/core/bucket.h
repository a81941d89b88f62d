/* bucket - a volume that is a bucket of an object store: which one, and whose key opens it.
 *
 * Its objects are shown as files by warren-bucket, outside of every sandbox; the key's secret half is a
 * secret of the team and goes from here to that program and nowhere else. Which hosts may be asked is judged
 * there, at each connection, as it is for what sandboxes reach. */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/id.h"
#include "core/core.h"
#include "core/sandbox.h"
#include "wire/bucket.h"

#define BUCKET_ENDPOINT_SIZE (BUCKET_HOST_SIZE + 16)

struct bucket {
    char endpoint[BUCKET_ENDPOINT_SIZE]; /* "" in a volume that is none; http[s]://host[:port] */
    char bucket[BUCKET_NAME_SIZE];
    char prefix[BUCKET_PREFIX_SIZE];
    char region[BUCKET_REGION_SIZE];
    char access_key[BUCKET_KEY_SIZE];
    char secret[NAME_MAX_LEN + 1]; /* the name of a secret */
    bool path_style, read_only;
};

/* -EINVAL, invalid_field; -ENOENT, secret_not_found. */
int bucket_check(struct core *core, const char *owner, const struct bucket *b, struct err *err);
char *bucket_text(const struct bucket *b);               /* for the database; free it */
int bucket_read(const char *text, struct bucket *ret_b); /* -EINVAL, -ENOMEM */
/* Shows it in a running cell; one that is shown there is left alone. -EHOSTUNREACH, bucket_unreachable. Takes as
 * long as the store takes, a minute at most. */
int bucket_attach(struct core *core, const char *owner, const struct bucket *b, const char *cell,
                  const char *volume, const char *path, bool read_only, struct err *err);

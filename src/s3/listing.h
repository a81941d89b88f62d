/* listing - what a bucket holds, read out of one page of an answer; and the name of a failure.
 *
 * The answer is a stranger's: bounded, and refused where it is not what was asked for. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define S3_KEY_MAX 1024
#define S3_TOKEN_MAX 2048
#define S3_CODE_MAX 64

struct s3_object {
    char key[S3_KEY_MAX + 1];
    uint64_t size;
    int64_t modified_ms;
};

typedef int (*s3_object_fn)(void *ctx, const struct s3_object *o, struct err *err);

struct listing_end {
    bool more;
    char token[S3_TOKEN_MAX + 1]; /* where the next page begins, if there is more */
};

/* Calls fn for each object, until it returns below zero. -EBADMSG, archive_failed: no such page. */
int listing_read(const char *p, size_t n, s3_object_fn fn, void *ctx, struct listing_end *ret_end,
                 struct err *err);
/* "NoSuchKey", …; "" where the answer does not say. */
void listing_code(const char *p, size_t n, char ret_code[S3_CODE_MAX]);

/* sigv4 - a request signed for AWS, and for those who speak like it (Signature Version 4).
 *
 * Makes the value of an Authorization field from the parts of a request as they will be sent. Pure but for
 * the hashes, which are OpenSSL's; knows no clock. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/head.h"

#define SIGV4_FIELDS_MAX 64
#define SIGV4_DATE_SIZE 17 /* 20260131T120405Z */
#define SIGV4_HASH_SIZE 65
#define SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"

struct sigv4_key {
    const char *id, *region, *service; /* id: the access key's, which is no secret */
    const char *secret;
    size_t n_secret;
};

struct sigv4_request {
    struct text method, target;
    const struct head_field *fields; /* those that are signed; Host and X-Amz-Date must be */
    size_t n_fields;
    const char *date;    /* as sigv4_date writes it */
    const char *payload; /* its hash in hex, or a word that stands for it */
};

/* Of S3 and those that are signed as it is: paths as they are meant, bodies that need not be read first. Others
 * whose names begin alike (s3tables) are as all the rest. */
bool sigv4_is_s3(const char *service);
void sigv4_date(int64_t unix_s, char out[SIGV4_DATE_SIZE]);
void sigv4_hash(const void *p, size_t n, char out[SIGV4_HASH_SIZE]);
/* Appends "AWS4-HMAC-SHA256 Credential=…". -E2BIG: too many fields. */
int sigv4_sign(const struct sigv4_key *key, const struct sigv4_request *q, struct buf *out);

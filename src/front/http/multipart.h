/* multipart - a body of several parts, read while it arrives (RFC 2046, RFC 7578).
 *
 * A state machine without I/O: bytes in, calls out. A boundary may lie across pieces of any size;
 * a part's bytes are handed on as they come, so a part may be of any size. The heads of parts are
 * what is kept, and they are bounded. Knows nothing of files. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define MULTIPART_BOUNDARY_MAX 70
#define MULTIPART_HEAD_MAX (16u * 1024) /* of one part; a path of 4096 bytes may be escaped */

struct multipart_part {
    const char *name, *filename; /* of Content-Disposition; NULL where not given */
    const char *headers;         /* "name\0value\0...\0": multipart_header finds one */
};

/* What is read from; each returns below zero to stop, which multipart_feed then returns. */
struct multipart_sink {
    int (*begin)(void *arg, const struct multipart_part *part, struct err *err);
    int (*data)(void *arg, const char *p, size_t n, struct err *err);
    int (*end)(void *arg, struct err *err);
};

struct multipart;
/* `type` is the request's Content-Type. Keeps sink and arg. -EINVAL: it is not multipart, or its
 * boundary is missing or bad. */
int multipart_new(const char *type, const struct multipart_sink *sink, void *arg,
                  struct multipart **ret_m, struct err *err);
int multipart_feed(struct multipart *m, const char *p, size_t n, struct err *err);
int multipart_end(const struct multipart *m, struct err *err); /* -EBADMSG: it was cut */
void multipart_free(struct multipart *m);
DEFINE_FREEP(struct multipart *, multipart_free)

const char *multipart_header(const struct multipart_part *part, const char *name);

/* requests - the HTTP/1.1 requests on one connection, each held until its host was looked at.
 *
 * A connection to one address may ask for several hosts, one after the other. Bytes go in as they come,
 * and come out unchanged once the head that they belong to is whole, names a host in a form that
 * can be compared, and was let through. What is not a request that everybody reads in the same way
 * ends it. Does not know answers: what follows an upgrade must still be requests. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "net/body.h"
#include "net/head.h"
#include "net/host.h"

struct requests {
    struct buf in;    /* a head that is not whole */
    size_t seen;      /* of it were looked at */
    struct body body; /* of the last request, while in_body */
    bool in_body;
    bool over;    /* nothing can be taken any more */
    size_t count; /* heads that were let through */
};

#define REQUESTS_INIT                                 \
    {                                                 \
        BUF_INIT(HEAD_MAX), 0, { 0 }, false, false, 0 \
    }

void requests_done(struct requests *q);

/* Appends to `out` what may pass, for which it needs room for HEAD_MAX bytes more than n. 0 while all is well;
 * -EACCES: `allow` said no, and nothing of that request came out; -EBADMSG, -EMSGSIZE: not to be
 * trusted. */
int requests_take(struct requests *q, const char *p, size_t n,
                  bool (*allow)(void *arg, const char host[HOST_SIZE]), void *arg, struct buf *out);

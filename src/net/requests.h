/* requests - the HTTP/1.1 requests on one connection, each held until its host was looked at.
 *
 * A connection to one address may ask for several hosts, one after the other. Bytes go in as they come,
 * and come out unchanged once the head that they belong to is whole, names a host in a form that
 * can be compared, and was let through. What is not a request that everybody reads in the same way
 * ends it. Of answers it knows one: where the first request asks for a WebSocket, what the client says next
 * is held until the server has agreed, and passes as it is from then on. Whatever follows another upgrade must
 * still be requests. Pure. */
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
    bool asking;  /* for a WebSocket: nothing passes until the answer was seen */
    size_t count; /* heads that were let through */
};

#define REQUESTS_INIT                                        \
    {                                                        \
        BUF_INIT(HEAD_MAX), 0, { 0 }, false, false, false, 0 \
    }

void requests_done(struct requests *q);

/* Appends to `out` what may pass, for which it needs room for HEAD_MAX bytes more than n. `allow` gets
 * "" where a request names an address, or nobody. 0 while all is well; -EACCES: `allow` said no, and
 * nothing of that request came out; -EBADMSG, -EMSGSIZE: not to be trusted. */
int requests_take(struct requests *q, const char *p, size_t n,
                  bool (*allow)(void *arg, const char host[HOST_SIZE]), void *arg, struct buf *out);

/* While it is asking: all that the server has said so far. 0: not enough; 1: no, requests go on; 2: yes, and
 * what is there passes as it is, as will all that follows; below zero as above. */
int requests_answered(struct requests *q, const char *p, size_t n,
                      bool (*allow)(void *arg, const char host[HOST_SIZE]), void *arg,
                      struct buf *out);

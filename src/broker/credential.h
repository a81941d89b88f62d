/* credential - a request's head as it goes to a bound host: written anew, with what its bindings put in.
 *
 * What a binding sets is set by it alone: a client's own field or parameter of that name stays behind.
 * So do fields with which a server could be told another method or path than the one that was
 * judged, and what would bring an answer in which a secret could not be found again. Pure functions. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/binding.h"
#include "net/head.h"

#define CREDENTIAL_HEAD_MAX (2 * HEAD_MAX + 64 * 1024) /* a head, and what is put in */

struct credential {
    const struct head *head;
    const struct binding *const *fits; /* may be none: then it goes as it is */
    size_t n_fits;
    const char *host;
    uint16_t port;
    bool hides;       /* answers of this host are looked through */
    int64_t unix_s;   /* for signatures */
    const char *hash; /* of the body that was gathered; NULL: it was not */
    uint64_t length;  /* of that body */
};

/* Does the i-th of those that fit put its value in? Of two that would set the same, the first does. */
bool credential_puts(const struct credential *c, size_t i);
/* Must the body be here as a whole before the head can be written? */
bool credential_gathers(const struct credential *c);
/* -ENODATA: a binding has no value. -EPROTONOSUPPORT: a body that was signed in pieces. */
int credential_write(const struct credential *c, struct buf *out);
/* Is it the last on its connection? A server may leave a body unread that it has no use for, and would take the
 * next head, with a secret in it, for whatever that body begins. */
bool credential_is_last(const struct head *h);
/* A value as it stands in a query. */
int credential_percent(struct buf *out, const char *p, size_t n);

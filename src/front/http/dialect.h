/* dialect - the interface of one family of clients: where it is, its routes, the shape of its errors.
 *
 * A server has a list of them. A request belongs to the first that has its path's first segment, else to the
 * last of the list: also one that cannot be read, so that every failure has a shape. */
#pragma once
#include <stddef.h>

#include "base/err.h"
#include "front/http/once.h"
#include "front/http/route.h"

struct request;

/* What people watch, and a route that does it. */
struct operation {
    const char *name, *method, *pattern;
};

struct dialect {
    const char *name;           /* in metrics */
    const char *const *mounts;  /* { "e2b", NULL }: all that is under /e2b; NULL: it is the last */
    const struct route *routes; /* whole patterns, the mounts included */
    size_t nroutes;
    /* A route for a request whatever its path and method, by what its head says. It returns NULL for none,
     * and may be NULL itself. */
    const struct route *(*claim)(const struct request *req);
    int (*error)(struct request *req, const struct err *err); /* answers with a failure */
    const char *cors_headers;      /* those that pages of other origins may send */
    const struct once_route *once; /* those that an Idempotency-Key may name */
    size_t nonce;
    const struct operation *operations; /* those of one name one after the other */
    size_t noperations;
};

const struct dialect *dialect_find(const struct dialect *const *list, const struct uri *uri);
const struct dialect *dialect_last(const struct dialect *const *list);

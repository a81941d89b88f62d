/* dialect - the interface of one family of clients: its routes and the shape of its errors.
 *
 * It has everything under its first path segments to itself. */
#pragma once
#include <stddef.h>

#include "base/err.h"
#include "front/http/once.h"
#include "front/http/route.h"

struct dialect {
    const char *const *mounts;  /* { "e2b", NULL }: all that is under /e2b */
    const struct route *routes; /* whole patterns, the mounts included */
    size_t nroutes;
    /* A route for a request whatever its path and method, by what its head says; NULL: none. */
    const struct route *(*claim)(const struct request *req);
    int (*error)(struct request *req, const struct err *err); /* answers with a failure */
    const struct once_route *once; /* those that an Idempotency-Key may name */
    size_t nonce;
};

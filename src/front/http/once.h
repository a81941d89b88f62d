/* once - requests that carry an Idempotency-Key: acted on once, answered as often as they come.
 *
 * The server asks before a handler and tells after it; core/replay.h remembers. A handler that
 * finds `req->made` set was cut by a crash: the thing is there, and it answers from it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct request;

/* Requests that may be named so. */
struct once_route {
    const char *method, *pattern;
    bool secret; /* its answer must not be written to disk */
    bool anew;   /* nor this one: it is made again from what there is */
};

/* 1: go on with the handler; 0: answered already; or why not. */
int once_begin(struct request *req, const struct once_route *routes, size_t n, struct err *err);
/* After the handler; fine where once_begin did nothing. */
void once_end(struct request *req);
/* The answer's body on its way out, before it is compressed. */
void once_keep(struct request *req, unsigned status, const char *type, const char *p, size_t n);

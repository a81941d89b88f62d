/* route - which handler a method and a path lead to.
 *
 * The table is the API: method, pattern, how the caller is known, what the body is. A pattern
 * part in braces takes any one segment that is not empty. A path that is there under other
 * methods only is told apart from one that is not there at all; HEAD goes where GET goes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "front/http/uri.h"

struct request;

#define ROUTE_ARGS_MAX 4
#define ROUTE_ALLOW_MAX 64

enum route_body { BODY_NONE, BODY_JSON, BODY_RAW, BODY_STREAM };

/* Where a body goes that is too large to be kept: begin before the first byte, then write; the
 * handler runs after the last one, and `end` always, whatever happened. `pass` (NULL: none) is for bodies that
 * nobody need look at: it takes up to n bytes from the socket itself and says how many. -ENODATA: the client
 * ended; -ETIME: it sent nothing for idle_ms; -EOPNOTSUPP: write them instead. */
struct route_sink {
    int (*begin)(struct request *req, struct err *err);
    int (*write)(struct request *req, const char *p, size_t n, struct err *err);
    void (*end)(struct request *req);
    int (*pass)(struct request *req, int fd, uint64_t n, int idle_ms, size_t *ret_taken,
                struct err *err);
};

struct route {
    const char *method;
    const char *pattern;
    /* Who asks, by the head alone, before any of the body is read: 0, or why that one may not. It also says under
     * which name the connection counts (request_known, request_stranger). */
    int (*auth)(struct request *req, struct err *err);
    enum route_body body;
    /* 0 when it replied; else the failure becomes the reply. -ECANCELED: the client is gone. */
    int (*handle)(struct request *req, struct err *err);
    const struct route_sink *sink; /* BODY_STREAM */
};

enum route_found { ROUTE_FOUND, ROUTE_OTHER_METHOD, ROUTE_UNKNOWN };

/* The two that every dialect may use; in server_admit.c. auth_key also fills req->owner and req->admin. */
int auth_key(struct request *req, struct err *err);
int auth_none(struct request *req, struct err *err);

/* On ROUTE_FOUND fills *ret_route and args (borrowed from uri); on ROUTE_OTHER_METHOD fills
 * `allow` as the header wants it. */
enum route_found route_find(const struct route *routes, size_t n, const char *method,
                            const struct uri *uri, const struct route **ret_route,
                            const char *args[ROUTE_ARGS_MAX], char allow[ROUTE_ALLOW_MAX]);

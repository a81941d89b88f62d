/* request - one HTTP request and its one answer.
 *
 * Handlers get a request whose path, key and body were checked, and answer with a reply_ call or
 * return a failure, which becomes the JSON error of the API. A handler may block: each request
 * has a thread of its own. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "core/core.h"
#include "front/http/dialect.h"
#include "core/replay.h"
#include "front/http/metrics.h"
#include "front/http/route.h"
#include "front/http/uri.h"

#define REQUEST_ID_MAX 65 /* a client may bring its own */
#define REQUEST_JSON_MAX (8u * 1024 * 1024)
#define REQUEST_RAW_MAX (16u * 1024 * 1024)
#define REQUEST_REPLY_HEADERS 16
#define REQUEST_REPLY_VALUE 256
#define REPLY_MAX (64u * 1024 * 1024) /* two escaped outputs of the default limit, and a list */

struct conn;
struct reply_reader;
struct endpoint;
struct server;

/* Gets an upgraded connection and a lease (reply_upgrade): the connection counts as open until the
 * lease is closed. */
typedef void (*reply_take_fn)(void *arg, int fd, int lease_fd);

struct request {
    struct core *core;
    struct metrics *metrics;
    const char *listen, *tls_listen; /* where the API is; NULL: it is not */
    const char *preview_domain;      /* as clients write it; NULL: none */
    bool preview_tls;                /* and they come by TLS */
    const char *method;
    const char *target; /* as it stood on the request line */
    struct uri uri;
    const struct dialect *dialect;
    const struct route *route;
    const char *args[ROUTE_ARGS_MAX]; /* what the braces of the route took */
    char owner[OWNER_MAX];            /* the team that it is for */
    char
        subject[ID_SIZE]; /* what a caller without a key proved to have the right to; "": nothing */
    bool admin;           /* by the operator: may look after every team */
    bool for_team;        /* an admin named the team (X-Warren-Team) */
    char id[REQUEST_ID_MAX];
    struct buf body;
    /* "sandbox ID" or "process N": an earlier try made it and was cut before it answered; empty
     * otherwise. The answer is about that one then. */
    char made[REPLAY_MADE_MAX];
    void *sink; /* the sink's own, BODY_STREAM */
    int fd;     /* the connection: to notice that the client went away */

    /* the server's own */
    struct server *server;
    struct endpoint *endpoint;
    struct conn *con;
    unsigned status;        /* 0: not answered yet */
    unsigned forced_status; /* fixed by the failure; 0: its code decides */
    bool refused, authorized, streaming, sink_open;
    bool unpassable; /* the sink cannot take the body from the socket */
    bool close;      /* the connection ends with this answer */
    bool crowded;    /* refused for want of room: read nothing more */
    bool until_end;  /* the end of the connection ends the body: HTTP/1.0 */
    /* the answer, until it is sent: one of content and reader, or neither */
    char type[REQUEST_REPLY_VALUE]; /* "": no Content-Type */
    bool negotiated, packed;
    struct buf content;
    const struct reply_reader *reader;
    void *reader_arg;
    uint64_t length; /* of the reader's bytes, or REPLY_UNKNOWN */
    unsigned retry_after_s;
    const char *cors_origin; /* NULL: no page of another origin asks, or it may not */
    uint64_t drained_bytes;
    int64_t began_us;
    struct err err;
    char allow[ROUTE_ALLOW_MAX];
    struct {
        const char *name;
        char value[REQUEST_REPLY_VALUE];
    } headers[REQUEST_REPLY_HEADERS];
    size_t nheaders;
    struct buf passed;  /* name NUL value NUL ...: headers of another server's answer */
    bool relayed;       /* the answer is another server's: nothing of ours belongs into it */
    reply_take_fn take; /* reply_upgrade's, until it was called */
    void *take_arg;
    struct replay *replay;     /* once.h; NULL: none */
    struct replay_answer kept; /* for it */
    bool kept_anew;            /* without its body */
};

const char *request_header(const struct request *req, const char *name); /* NULL: not there */
/* Calls fn for each header whose name begins with `prefix`, in any case, with the rest of its
 * name and its value. Below zero ends it and is the result. */
typedef int (*request_header_fn)(void *arg, const char *rest, const char *value);
int request_headers_with(const struct request *req, const char *prefix, request_header_fn fn,
                         void *arg);
/* Says that the caller is known by `who`: a key, or the thing that a token opens. The server
 * does so for keys, a dialect for its tokens. -EAGAIN: `who` has too many connections. */
int request_known(struct request *req, const char *who, struct err *err);
/* Says that the caller is nobody known; r, or -EAGAIN if too many such are here. */
int request_stranger(struct request *req, int r, struct err *err);
bool request_accepts(const struct request *req, const char *type);

/* ---- query parameters: strict, each failure is invalid_query ---- */

/* Refuse what is not in the NULL-terminated list; an entry "x.*" lets every "x.…" pass,
 * "x+" lets x come more than once. */
int request_params_known(const struct request *req, const char *const *names, struct err *err);
/* 1 and the number, 0 when it is not there. */
int request_param_u64(const struct request *req, const char *name, uint64_t min, uint64_t max,
                      uint64_t *ret_v, struct err *err);
int request_param_bool(const struct request *req, const char *name, bool *ret_v, struct err *err);

/* ---- the body ---- */

int request_json(const struct request *req, json_t **ret_object, struct err *err);
/* The body's object into `target`, by a table (fields.h); ret_seen may be NULL. */
struct field;
int request_fields(const struct request *req, const struct field *fields, size_t n, void *target,
                   uint32_t *ret_seen, struct err *err);
static inline void cleanup_json(json_t **v)
{
    json_decref(*v);
}
#define _cleanup_json_ _cleanup_(cleanup_json)

/* ---- the answer: exactly one of these, 0 or -errno ---- */

/* One more header of the answer, whatever it will be; call before it. `name` is a literal; a value
 * that is too long is left out. */
void reply_header(struct request *req, const char *name, const char *fmt, ...) _printf_(3, 4);
/* One of another server's, whatever it is named. -EMSGSIZE: they are too many. */
int reply_pass_header(struct request *req, const char *name, const char *value);
/* Takes what j's buffer holds. */
int reply_json(struct request *req, unsigned status, struct jout *j);
int reply_text(struct request *req, unsigned status, const char *type, struct buf *text);
int reply_empty(struct request *req); /* 204 */

int reply_error(struct request *req, const struct err *err);

/* A body that is made while it is sent. `next` appends to out and returns 1, 0 at the end,
 * below zero to cut the connection; it may block. `free` is called once, whatever happens,
 * also when reply_stream fails. */
struct reply_source {
    int (*next)(void *arg, struct buf *out);
    void (*free)(void *arg);
};
int reply_stream(struct request *req, const char *type, const struct reply_source *source,
                 void *arg);

/* A body of `length` bytes (REPLY_UNKNOWN: sent in chunks until its end) that `read` puts straight
 * into the server's buffer: how many, 0 at the end, below zero to cut the connection; it may
 * block. `free` as above. A NULL type: none is told. */
#define REPLY_UNKNOWN UINT64_MAX
struct reply_reader {
    ssize_t (*read)(void *arg, char *out, size_t max);
    void (*free)(void *arg);
};
int reply_bytes(struct request *req, unsigned status, const char *type, uint64_t length,
                const struct reply_reader *reader, void *arg);
int reply_status(struct request *req, unsigned status); /* no body */

/* 101: the connection becomes `protocol`. `take` gets it once the head is sent: non-blocking, its
 * own to close, nothing read from it yet; both -1 when that could not be. Called once, also when
 * this fails. -EAGAIN: too many connections were upgraded. */
int reply_upgrade(struct request *req, const char *protocol, reply_take_fn take, void *arg,
                  struct err *err);
/* For the server alone. */
void reply_upgraded(struct request *req, int fd, int lease_fd);
int reply_send(struct request *req,
               int stall_ms); /* below zero: the connection is of no more use */
void reply_drop(struct request *req);

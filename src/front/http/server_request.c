/* server_request - a request, from its first line to the end of its answer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "front/http/conn.h"
#include "front/http/once.h"
#include "front/http/server_private.h"

#define LOG_MODULE "http"

#define HEAD_MS 15000                         /* for the rest of a head */
#define BODY_TIMEOUT_MS 300000                /* for a whole body that is not an upload */
#define PASS_MIN (64 * 1024)                  /* what is shorter is copied as fast */
#define BODY_STRANGER_MS 30000                /* for a body of a caller without a key */
#define DRAIN_STRANGER_MAX (64 * 1024 * 1024) /* dropped of a refused stranger's body */
#define STREAM_STALL_MS 600000                /* how long the client of a stream may read nothing */
#define FINISH_MS 1000

/* ---- the beginning ---- */

static struct request *begin(struct endpoint *ep, struct conn *c)
{
    struct server *s = ep->server;
    const struct head *head = conn_head(c);
    struct request *req = calloc(1, sizeof(*req));
    if (!req)
        return NULL;
    uint64_t n = atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
    (void)snprintf(req->id, sizeof(req->id), "r%s%llx", s->boot, (unsigned long long)n);
    req->server = s;
    req->endpoint = ep;
    req->core = s->config.core;
    req->dialect = dialect_last(s->config.dialects);
    req->metrics = &s->metrics;
    req->listen = s->config.listen;
    req->tls_listen = s->config.tls_listen;
    req->preview_domain = s->config.preview_domain;
    req->preview_tls = s->config.preview_tls;
    req->con = c;
    req->fd = c->fd;
    req->began_us = clock_mono_us();
    req->method = head ? head->method.p : "?";
    req->target = head ? head->target.p : "";
    req->close = !head || !head->keep_alive;
    atomic_fetch_add_explicit(&s->metrics.in_flight, 1, memory_order_relaxed);
    log_set_request(req->id);
    return req;
}

static void log_request(const struct request *req)
{
    char path[128];
    long long took = (long long)(clock_mono_us() - req->began_us);
    const char *pattern = req->route ? req->route->pattern : "?";
    const char *why = strerrorname_np(req->err.code);
    if (req->status >= 500)
        log_warn("request failed method=%s path=%s status=%u took_us=%lld err=%s why=%s",
                 req->method, pattern, req->status, took,
                 log_quote(path, sizeof(path), req->err.msg), why ? why : "?");
    else
        log_debug("request method=%s path=%s status=%u took_us=%lld", req->method, pattern,
                  req->status, took);
}

static void end_sink(struct request *req)
{
    if (req->sink_open)
        req->route->sink->end(req);
    req->sink_open = false;
}

static void end(struct request *req)
{
    reply_upgraded(req, -1, -1);
    end_sink(req);
    reply_drop(req);
    metrics_request(&req->server->metrics, req->dialect, req->route, req->status,
                    clock_mono_us() - req->began_us);
    atomic_fetch_sub_explicit(&req->server->metrics.in_flight, 1, memory_order_relaxed);
    log_request(req);
    log_set_request(NULL);
    buf_done(&req->passed);
    uri_done(&req->uri);
    buf_done(&req->body);
    free(req);
}

/* ---- its body ---- */

static void refuse_body(struct request *req)
{
    req->refused = true;
    buf_done(&req->body);
    end_sink(req); /* before the answer: the client may ask at once for what the sink held */
}

static int take_piece(struct request *req, const char *p, size_t n)
{
    bool upload = req->route && req->route->body == BODY_STREAM;
    if (req->refused) {
        /* Read on: otherwise the client gets a reset instead of our answer. */
        req->drained_bytes += n;
        return req->authorized || req->drained_bytes <= DRAIN_STRANGER_MAX ? 0 : -EFBIG;
    }
    int r = upload ? req->route->sink->write(req, p, n, &req->err) : buf_append(&req->body, p, n);
    if (r == -EMSGSIZE && !upload)
        (void)server_too_large(req, &req->err);
    else if (r < 0 && !upload)
        (void)err_set(&req->err, -r, "cannot keep the body");
    if (r < 0)
        refuse_body(req);
    return 0;
}

/* When the next bytes of the body must be here. */
static int64_t body_deadline(const struct request *req, int64_t began_ms)
{
    int64_t next = clock_mono_ms() + IDLE_TIMEOUT_MS;
    bool known = connections_known(&req->con->seat);
    if (known && !req->refused && req->route->body == BODY_STREAM)
        return next;
    int64_t all = began_ms + (known ? BODY_TIMEOUT_MS : BODY_STRANGER_MS);
    return all < next ? all : next;
}

static bool may_pass(const struct request *req)
{
    return !req->refused && !req->unpassable && req->route && req->route->body == BODY_STREAM &&
           req->route->sink->pass && connections_known(&req->con->seat) &&
           conn_body_alone(req->con) >= PASS_MIN;
}

/* As conn_read_body, of bytes that go on unseen. */
static int pass_body(struct request *req)
{
    struct conn *c = req->con;
    size_t taken = 0;
    int r =
        req->route->sink->pass(req, c->fd, conn_body_alone(c), IDLE_TIMEOUT_MS, &taken, &req->err);
    conn_body_taken(c, taken);
    if (r == -ENODATA)
        return -EPIPE;
    if (r == -ETIME)
        return -ETIMEDOUT;
    if (r == -EOPNOTSUPP)
        req->unpassable = true;
    else if (r < 0)
        refuse_body(req);
    return conn_body_alone(c) == 0;
}

static int take_body(struct request *req)
{
    static char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct iovec iov = { go_on, sizeof(go_on) - 1 };
    int64_t began_ms = clock_mono_ms();
    struct conn *c = req->con;
    int r = 0;
    if (conn_head(c)->expect && !conn_body_begun(c))
        r = conn_write(c, &iov, 1, IDLE_TIMEOUT_MS);
    while (r == 0) {
        const char *p;
        size_t n = 0;
        if (may_pass(req)) {
            r = pass_body(req);
            continue;
        }
        r = conn_read_body(c, body_deadline(req, began_ms), &p, &n);
        if (r >= 0 && n > 0) {
            int k = take_piece(req, p, n);
            r = k < 0 ? k : r;
        }
    }
    if (r == -EBADMSG) { /* malformed chunks: nothing behind them can be trusted */
        (void)err_fail(&req->err, FAIL_INVALID_REQUEST, "the body's chunks are malformed");
        req->refused = req->close = true;
        return 0;
    }
    return r < 0 ? r : 0;
}

/* ---- its answer ---- */

static int answer(struct request *req)
{
    int r = 0;
    if (!req->refused) {
        atomic_fetch_add(&req->server->at_work, 1);
        r = once_begin(req, req->dialect->once, req->dialect->nonce, &req->err);
        if (r > 0) {
            r = req->route->handle(req, &req->err);
            once_end(req);
        }
        atomic_fetch_sub(&req->server->at_work, 1);
        if (r == -ECANCELED)
            return r;
    }
    if (req->status == 0) {
        if (req->err.code == 0)
            (void)err_set(&req->err, r < 0 ? -r : EIO, "cannot make the answer");
        r = reply_error(req, &req->err);
        if (r < 0)
            return r;
    }
    return reply_send(req, req->streaming ? STREAM_STALL_MS : IDLE_TIMEOUT_MS);
}

static bool refuse_at_once(const struct request *req)
{
    return req->crowded || conn_head(req->con)->expect ||
           (!req->authorized && server_announced_length(req) > DRAIN_STRANGER_MAX);
}

/* Answer a head that cannot be read: malformed, or too long. */
static int refuse_head(struct request *req, int why)
{
    req->refused = req->close = true;
    req->crowded = connections_work(req->endpoint->connections, &req->con->seat, 0) < 0;
    if (why == -EMSGSIZE) {
        req->forced_status = 431;
        (void)err_fail(&req->err, FAIL_INVALID_REQUEST,
                       "the head of the request is over %d bytes or has over %d fields", HEAD_MAX,
                       HEAD_FIELDS_MAX);
    } else {
        (void)err_fail(&req->err, FAIL_INVALID_REQUEST,
                       "the request is malformed or ambiguous HTTP/1.1");
    }
    return answer(req);
}

static int handle(struct endpoint *ep, struct request *req)
{
    req->refused = uri_parse(req->target, strlen(req->target), &req->uri, &req->err) < 0;
    if (!req->refused)
        req->refused = server_admit(ep, req, req->method, &req->err) < 0;
    else
        req->crowded = connections_work(ep->connections, &req->con->seat, 0) < 0;
    if (req->refused && refuse_at_once(req)) {
        req->close = true;
        return answer(req);
    }
    int r = take_body(req);
    return r < 0 ? r : answer(req);
}

/* The acceptor hands over whole heads, but a later request on a connection may be here in part:
 * a caller without a key then waits for the rest among those that may be cut. */
static int read_head(struct endpoint *ep, struct conn *c)
{
    int r = conn_read_head(c, 0);
    if (r != -ETIMEDOUT)
        return r;
    if (!connections_known(&c->seat) && connections_work(ep->connections, &c->seat, 0) < 0)
        return -EAGAIN;
    return conn_read_head(c, clock_mono_ms() + HEAD_MS);
}

bool server_exchange(struct endpoint *ep, struct conn *c)
{
    int r = read_head(ep, c);
    if (r == 0 || (r < 0 && r != -EBADMSG && r != -EMSGSIZE))
        return false;
    struct request *req = begin(ep, c);
    if (!req)
        return false;
    r = r < 0 ? refuse_head(req, r) : handle(ep, req);
    bool again = r >= 0 && !req->close;
    bool finish = r >= 0 && req->close && req->refused && !req->crowded;
    end(req);
    if (finish)
        conn_finish(c, FINISH_MS);
    connections_rest(ep->connections, &c->seat);
    return again;
}

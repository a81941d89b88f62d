#include "front/http/once.h"

#include <errno.h>
#include <string.h>

#include "front/http/request.h"

#define NAME_MAX_BYTES 255
#define ASK_MAX (REQUEST_JSON_MAX + 64 * 1024)

static const struct once_route *find(const struct request *req, const struct once_route *routes,
                                     size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(routes[i].method, req->route->method) == 0 &&
            strcmp(routes[i].pattern, req->route->pattern) == 0)
            return &routes[i];
    return NULL;
}

static int check_name(const char *name, struct err *err)
{
    size_t n = strlen(name);
    bool plain = n > 0 && n <= NAME_MAX_BYTES;
    for (size_t i = 0; i < n; i++)
        plain = plain && name[i] > ' ' && name[i] < 0x7f;
    if (!plain)
        return err_fail(err, FAIL_INVALID_REQUEST,
                        "Idempotency-Key must be 1 to %d visible ASCII characters, such as a UUID",
                        NAME_MAX_BYTES);
    return 0;
}

/* Method, path, query and body, each part ended by a NUL, which none of them can hold. */
static int put_ask(const struct request *req, struct buf *out)
{
    int r = buf_append(out, req->method, strlen(req->method) + 1);
    for (size_t i = 0; i < req->uri.nsegments && r >= 0; i++)
        r = buf_append(out, req->uri.segments[i], strlen(req->uri.segments[i]) + 1);
    for (size_t i = 0; i < req->uri.nparams && r >= 0; i++) {
        const struct uri_param *p = &req->uri.params[i];
        r = buf_append(out, p->name, strlen(p->name) + 1);
        if (r >= 0)
            r = buf_append(out, p->value, strlen(p->value) + 1);
    }
    return r < 0 ? r : buf_append(out, req->body.data, req->body.len);
}

static int reply_again(struct request *req, struct replay_answer *a)
{
    struct buf b = BUF_INIT(REPLY_MAX);
    int r = buf_puts(&b, a->body);
    if (r < 0)
        return r;
    reply_header(req, "Idempotency-Replayed", "true");
    if (a->etag)
        reply_header(req, "ETag", "%s", a->etag);
    r = reply_text(req, a->status, "application/json", &b);
    buf_done(&b);
    return r;
}

int once_begin(struct request *req, const struct once_route *routes, size_t n, struct err *err)
{
    const char *name = request_header(req, "Idempotency-Key");
    const struct once_route *route = name ? find(req, routes, n) : NULL;
    if (!route)
        return 1;
    int r = check_name(name, err);
    if (r < 0)
        return r;
    if (request_accepts(req, "application/x-ndjson"))
        return err_fail(err, FAIL_INVALID_REQUEST,
                        "an answer that streams cannot be given twice: leave out Idempotency-Key "
                        "or 'Accept: application/x-ndjson'");
    _cleanup_(buf_done) struct buf ask = BUF_INIT(ASK_MAX);
    _cleanup_(replay_answer_done) struct replay_answer a = { 0 };
    r = put_ask(req, &ask);
    if (r < 0)
        return err_set(err, -r, "cannot keep the request");
    r = replay_begin(req->core, req->owner, name, ask.data, ask.len, route->secret, &req->replay,
                     &a, req->made, err);
    if (r < 0) {
        req->retry_after_s = r == -EBUSY ? 1 : 0;
        return r;
    }
    req->kept_anew = route->anew;
    if (r == REPLAY_KNOWN) {
        r = reply_again(req, &a);
        return r < 0 ? r : 0;
    }
    if (r == REPLAY_MADE)
        reply_header(req, "Idempotency-Replayed", "true");
    return 1;
}

void once_keep(struct request *req, unsigned status, const char *type, const char *p, size_t n)
{
    if (!req->replay || status / 100 != 2 || strcmp(type, "application/json") != 0)
        return;
    req->kept.status = status;
    req->kept.body = req->kept_anew || n > REPLAY_BODY_MAX ? NULL : strndup(p, n);
    for (size_t i = 0; i < req->nheaders; i++)
        if (strcmp(req->headers[i].name, "ETag") == 0)
            req->kept.etag = strdup(req->headers[i].value);
}

void once_end(struct request *req)
{
    if (req->replay)
        replay_end(req->core, take_ptr(req->replay), req->kept.status ? &req->kept : NULL);
    replay_answer_done(&req->kept);
}

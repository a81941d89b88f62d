#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "front/http/conn.h"
#include "front/http/gzip.h"
#include "front/http/once.h"
#include "front/http/request.h"
#include "front/http/server_private.h"

#define PASSED_MAX (64 * 1024)            /* headers of a relayed answer */
#define STREAM_PENDING_MAX (1024u * 1024) /* a frame of output, every byte of it escaped */

void reply_header(struct request *req, const char *name, const char *fmt, ...)
{
    if (req->nheaders == REQUEST_REPLY_HEADERS)
        return;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(req->headers[req->nheaders].value, REQUEST_REPLY_VALUE, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= REQUEST_REPLY_VALUE)
        return;
    req->headers[req->nheaders++].name = name;
}

int reply_pass_header(struct request *req, const char *name, const char *value)
{
    req->passed.max = PASSED_MAX;
    int r = buf_append(&req->passed, name, strlen(name) + 1);
    return r < 0 ? r : buf_append(&req->passed, value, strlen(value) + 1);
}

/* Keep the answer; the server sends it when the handler is done. */
static int queue(struct request *req, unsigned status, const char *type)
{
    if (req->status)
        return -EALREADY;
    req->status = req->forced_status ? req->forced_status : status;
    (void)snprintf(req->type, sizeof(req->type), "%s", type ? type : "");
    return 0;
}

/* True if the text was exchanged for its compressed form. */
static bool pack(const struct request *req, struct buf *text)
{
    _cleanup_(buf_done) struct buf small = BUF_INIT(GZIP_ROOM(text->len));
    if (text->len < GZIP_MIN || !gzip_accepted(request_header(req, "Accept-Encoding")) ||
        gzip_pack(text->data, text->len, &small) < 0 || small.len >= text->len)
        return false;
    struct buf large = *text;
    *text = small;
    small = large;
    return true;
}

int reply_text(struct request *req, unsigned status, const char *type, struct buf *text)
{
    once_keep(req, status, type, text->data, text->len);
    bool packed = pack(req, text);
    int r = queue(req, status, type);
    if (r < 0)
        return r;
    req->content = *text;
    *text = (struct buf)BUF_INIT(text->max);
    req->negotiated = true;
    req->packed = packed;
    return 0;
}

int reply_json(struct request *req, unsigned status, struct jout *j)
{
    int r = jout_done(j);
    return r < 0 ? r : reply_text(req, status, "application/json", j->b);
}

int reply_status(struct request *req, unsigned status)
{
    return queue(req, status, NULL);
}

int reply_empty(struct request *req)
{
    return reply_status(req, 204);
}

int reply_error(struct request *req, const struct err *err)
{
    metrics_failure(req->metrics, err->failure);
    return req->dialect->error(req, err);
}

struct stream {
    const struct reply_source *source;
    void *arg;
    struct buf pending;
    size_t at;
    bool ended;
};

static ssize_t stream_read(void *arg, char *out, size_t max)
{
    struct stream *s = arg;
    if (s->at == s->pending.len) {
        buf_clear(&s->pending);
        s->at = 0;
        while (!s->ended && s->pending.len == 0) {
            int r = s->source->next(s->arg, &s->pending);
            if (r < 0)
                return r;
            s->ended = r == 0;
        }
        if (s->pending.len == 0)
            return 0;
    }
    size_t n = s->pending.len - s->at < max ? s->pending.len - s->at : max;
    memcpy(out, s->pending.data + s->at, n);
    s->at += n;
    return (ssize_t)n;
}

static void stream_free(void *arg)
{
    struct stream *s = arg;
    s->source->free(s->arg);
    buf_done(&s->pending);
    free(s);
}

/* Takes arg, also on failure. */
static int queue_reader(struct request *req, unsigned status, const char *type, uint64_t length,
                        const struct reply_reader *reader, void *arg)
{
    int r = queue(req, status, type);
    if (r < 0) {
        reader->free(arg);
        return r;
    }
    req->reader = reader;
    req->reader_arg = arg;
    req->length = length;
    req->streaming = true;
    return 0;
}

int reply_stream(struct request *req, const char *type, const struct reply_source *source,
                 void *arg)
{
    static const struct reply_reader reader = { stream_read, stream_free };
    struct stream *s = calloc(1, sizeof(*s));
    if (!s) {
        source->free(arg);
        return -ENOMEM;
    }
    *s = (struct stream){ source, arg, BUF_INIT(STREAM_PENDING_MAX), 0, false };
    reply_header(req, "Cache-Control", "no-store");
    return queue_reader(req, 200, type, REPLY_UNKNOWN, &reader, s);
}

int reply_bytes(struct request *req, unsigned status, const char *type, uint64_t length,
                const struct reply_reader *reader, void *arg)
{
    return queue_reader(req, status, type, length, reader, arg);
}

void reply_upgraded(struct request *req, int fd, int lease_fd)
{
    reply_take_fn take = req->take;
    req->take = NULL;
    if (take)
        take(req->take_arg, fd, lease_fd);
}

int reply_upgrade(struct request *req, const char *protocol, reply_take_fn take, void *arg,
                  struct err *err)
{
    req->take = take; /* called at the latest when the request is over */
    req->take_arg = arg;
    if (connections_upgrade(req->endpoint->connections, &req->con->seat) < 0)
        return err_fail_as(
            err, EAGAIN, FAIL_CAPACITY,
            "too many WebSockets are open, of all, of this key or from this address: "
            "what is left is for requests");
    req->close = true; /* no request follows, whatever comes of this */
    reply_header(req, "Upgrade", "%s", protocol);
    return queue(req, 101, NULL);
}

/* A file written from the body while it arrives. */
#include <errno.h>
#include <string.h>

#include "front/native/files.h"

struct writing {
    struct native_visit visit;
    struct file_call *call;
    struct decoder *decoder;
    bool exclusive;
};

static int read_conditions(struct request *req, char etag[FILES_ETAG_MAX], struct file_ask *ask,
                           struct err *err)
{
    const char *match = request_header(req, "If-Match");
    const char *none = request_header(req, "If-None-Match");
    if (none && strcmp(none, "*") != 0)
        return err_fail(err, FAIL_INVALID_REQUEST, "If-None-Match of a write can only be *");
    if (match && files_etag_parse(match, etag) < 0)
        return err_fail(err, FAIL_INVALID_REQUEST,
                        "If-Match must be * or one tag in quotes, as a file's ETag has it");
    if (none)
        ask->flags |= WIRE_F_EXCLUSIVE;
    if (match)
        ask->etag = etag;
    return 0;
}

static int read_ask(struct request *req, char etag[FILES_ETAG_MAX], const char **path,
                    struct file_ask *ret_ask, struct err *err)
{
    static const char *const known[] = { "path", "user", "mode", "append", "parents", NULL };
    static const struct files_flag flags[] = { { "append", WIRE_F_APPEND, false },
                                               { "parents", WIRE_F_NO_PARENTS, true } };
    struct file_ask ask = { .op = WIRE_FILE_WRITE, .n_paths = 1 };
    struct files_query q;

    int r = files_query(req, known, &q, err);
    if (r >= 0)
        r = files_query_flags(req, flags, ARRAY_LEN(flags), &ask.flags, err);
    if (r >= 0)
        r = read_conditions(req, etag, &ask, err);
    if (r < 0)
        return r;
    const char *mode = uri_param(&req->uri, "mode");
    if (mode && files_mode_parse(mode, &ask.mode) < 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'mode' must be octal, as in 0644");
    if (mode)
        ask.have |= FILE_HAVE(WIRE_T_MODE);
    *path = q.path;
    ask.user = q.user;
    ask.paths = path;
    *ret_ask = ask;
    return 0;
}

static void writing_free(struct writing *w)
{
    if (!w)
        return;
    file_call_free(w->call); /* before its end: the old file stays as it was */
    decoder_free(w->decoder);
    native_leave(&w->visit);
    free(w);
}
DEFINE_FREEP(struct writing *, writing_free)

/* In a sink nothing can be answered yet: only the sentence is made. */
static int fail(struct request *req, int r, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    if (!native_is_volume(req))
        (void)native_sandbox_fate(req->core, req->owner, req->args[0], &s, err);
    return r;
}

static int sink_begin(struct request *req, struct err *err)
{
    _cleanup_(writing_freep) struct writing *w = calloc(1, sizeof(*w));
    char etag[FILES_ETAG_MAX];
    const char *path = NULL;
    struct file_ask ask = { 0 };
    enum coding coding = CODING_NONE;

    if (!w)
        return err_set(err, ENOMEM, "cannot allocate a write");
    int r = read_ask(req, etag, &path, &ask, err);
    if (r < 0)
        return r;
    if (coding_parse(request_header(req, "Content-Encoding"), &coding) < 0)
        return err_fail_as(err, EINVAL, FAIL_NOT_SUPPORTED,
                           "Content-Encoding must be gzip, zstd or identity");
    r = decoder_new(coding, &w->decoder);
    if (r < 0)
        return err_set(err, -r, "cannot allocate a decoder");
    w->exclusive = ask.flags & WIRE_F_EXCLUSIVE;
    r = native_enter(req, &w->visit, err);
    if (r >= 0)
        r = file_begin(req->core, &w->visit.s, &ask, &w->call, err);
    if (r < 0)
        return fail(req, r, err);
    req->sink = take_ptr(w);
    return 0;
}

static int take(void *arg, const char *p, size_t n)
{
    struct writing *w = arg;
    return file_put_data(w->call, p, n);
}

/* What init says, to the end. */
static int finish(struct request *req, struct writing *w, struct file_entry *ret_e,
                  struct file_event *ret_done, struct err *err)
{
    for (;;) {
        struct file_event ev;
        int r = file_next(w->call, -1, req->fd, &ev, err);
        if (r < 0) {
            if (w->exclusive && err->failure == FAIL_FILE_EXISTS)
                r = err_fail(err, FAIL_PRECONDITION_FAILED, "the file is there already");
            return r;
        }
        if (ev.type == FILE_ENTRY && !ret_e->path) {
            *ret_e = ev.entry;
            continue;
        }
        file_event_done(&ev);
        if (ev.type == FILE_DONE) {
            *ret_done = ev;
            return ret_e->path ? 0 : err_set(err, EPROTO, "the write was not told of");
        }
    }
}

static int write_failed(struct request *req, int r, struct err *err)
{
    if (r == -EPIPE) { /* init has refused: it says why */
        _cleanup_(file_entry_done) struct file_entry e = { 0 };
        struct file_event done;
        r = finish(req, req->sink, &e, &done, err);
        return fail(req, r < 0 ? r : err_set(err, EIO, "the write ended early"), err);
    }
    if (r == -ETIMEDOUT)
        return err_fail_as(err, ETIMEDOUT, FAIL_SANDBOX_BUSY, "the sandbox takes no more data");
    return err_set(err, -r, "cannot pass the body on to the sandbox");
}

static int sink_write(struct request *req, const char *p, size_t n, struct err *err)
{
    struct writing *w = req->sink;
    int r = decoder_feed(w->decoder, p, n, take, w);
    if (r == -EBADMSG)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_REQUEST,
                           "the body is not what its Content-Encoding says");
    return r < 0 ? write_failed(req, r, err) : 0;
}

/* A body that is the file, byte for byte, goes from socket to socket. */
static int sink_pass(struct request *req, int fd, uint64_t n, int idle_ms, size_t *ret_taken,
                     struct err *err)
{
    struct writing *w = req->sink;
    *ret_taken = 0;
    if (!decoder_is_plain(w->decoder))
        return -EOPNOTSUPP;
    int r = file_put_from(w->call, fd, n, idle_ms, ret_taken);
    return r < 0 && r != -ENODATA && r != -ETIME && r != -EOPNOTSUPP ? write_failed(req, r, err)
                                                                     : r;
}

static void sink_end(struct request *req)
{
    writing_free(req->sink);
    req->sink = NULL;
}

const struct route_sink native_file_sink = { sink_begin, sink_write, sink_end, sink_pass };

int native_file_put(struct request *req, struct err *err)
{
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024);
    struct jout j = JOUT_INIT(&b);
    struct writing *w = req->sink;
    struct file_event done;
    char etag[FILES_ETAG_MAX];

    if (decoder_end(w->decoder) < 0)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_REQUEST,
                           "the body ends before its Content-Encoding does");
    (void)file_put_end(w->call); /* if it fails, init says why */
    int r = finish(req, w, &e, &done, err);
    if (r < 0)
        return files_error(req, r, err);
    if (files_etag(&e, etag)[0])
        reply_header(req, "ETag", "%s", etag);
    files_put_entry(&j, NULL, &e);
    return reply_json(req, done.count ? 201 : 200, &j);
}

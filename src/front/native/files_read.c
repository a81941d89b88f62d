/* A file's bytes: whole, a range of them, or coded, straight from the sandbox's init. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "front/http/span.h"
#include "front/native/files.h"

#define CODED_MIN 1024 /* shorter ones gain nothing */
#define HEADER_MAX 128

struct reading {
    struct native_visit visit;
    struct file_call *call;
    struct encoder *encoder; /* NULL: as it is */
    int fd;
};

static void reading_free(void *arg)
{
    struct reading *rd = arg;
    file_call_free(rd->call);
    encoder_free(rd->encoder);
    native_leave(&rd->visit);
    free(rd);
}

static ssize_t read_plain(void *arg, char *out, size_t max)
{
    struct reading *rd = arg;
    return file_read(rd->call, out, max, rd->fd, NULL);
}

static ssize_t read_some(void *arg, char *out, size_t max)
{
    struct reading *rd = arg;
    return rd->encoder ? encoder_read(rd->encoder, out, max, read_plain, rd)
                       : read_plain(rd, out, max);
}

static void put_date(struct request *req, int64_t mtime_ns)
{
    char text[HEADER_MAX];
    time_t t = (time_t)(mtime_ns / 1000000000);
    struct tm tm;
    if (gmtime_r(&t, &tm) && strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0)
        reply_header(req, "Last-Modified", "%s", text);
}

static void put_headers(struct request *req, const struct file_entry *e, enum coding coding)
{
    char etag[FILES_ETAG_MAX], weak[FILES_ETAG_MAX + 2];
    if (files_etag(e, etag)[0]) {
        /* The same contents in other bytes: not to be used for ranges. */
        (void)snprintf(weak, sizeof(weak), "W/%s", etag);
        reply_header(req, "ETag", "%s", coding == CODING_NONE ? etag : weak);
    }
    put_date(req, e->mtime_ns);
    reply_header(req, "Accept-Ranges", "%s", coding == CODING_NONE ? "bytes" : "none");
    reply_header(req, "Vary", "%s", "Accept-Encoding");
    reply_header(req, "Cache-Control", "%s", "no-cache");
    if (coding != CODING_NONE)
        reply_header(req, "Content-Encoding", "%s", coding_name(coding));
}

static int not_satisfiable(struct request *req, uint64_t size, struct err *err)
{
    char text[HEADER_MAX];
    (void)snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)size);
    reply_header(req, "Content-Range", "%s", text);
    return err_fail(err, FAIL_RANGE_NOT_SATISFIABLE,
                    "the range begins behind the file's %llu bytes", (unsigned long long)size);
}

static int stat_file(struct request *req, const struct sandbox *s, const struct files_query *q,
                     struct file_entry *ret_e, struct err *err)
{
    struct file_ask ask = {
        .op = WIRE_FILE_STAT, .user = q->user, .paths = &q->path, .n_paths = 1, .client_fd = req->fd
    };
    int r = file_do(req->core, s, &ask, ret_e, NULL, err);
    if (r >= 0 && ret_e->type == WIRE_DIRECTORY)
        r = err_fail(err, FAIL_IS_A_DIRECTORY, "'%.200s' is a directory", q->path);
    if (r >= 0 && ret_e->type != WIRE_REGULAR)
        r = err_fail(err, FAIL_NOT_A_FILE, "'%.200s' is not a file with bytes to read", q->path);
    return r;
}

/* The entry is there, its bytes wait on the call. */
static int begin(struct reading *rd, struct request *req, const struct file_ask *ask,
                 struct file_entry *ret_e, struct err *err)
{
    struct file_event ev;
    int r = file_begin(req->core, &rd->visit.s, ask, &rd->call, err);
    if (r >= 0)
        r = file_next(rd->call, -1, req->fd, &ev, err);
    if (r < 0 && err->failure == FAIL_RANGE_NOT_SATISFIABLE)
        return not_satisfiable(req, rd->call ? file_call_size(rd->call) : 0, err);
    if (r < 0)
        return r;
    if (ev.type != FILE_ENTRY) {
        file_event_done(&ev);
        return err_set(err, EPROTO, "the sandbox's init answered a read with something else");
    }
    *ret_e = ev.entry;
    return 0;
}

/* What of the file is sent: the offset and length to ask init for, once its size is known where
 * that is needed. */
static int place(struct request *req, const struct sandbox *s, const struct files_query *q,
                 struct span *g, struct file_ask *ask, struct err *err)
{
    const char *if_range = request_header(req, "If-Range");
    if (!g->given)
        return 0;
    if (g->suffix || if_range) {
        _cleanup_(file_entry_done) struct file_entry e = { 0 };
        char etag[FILES_ETAG_MAX];
        int r = stat_file(req, s, q, &e, err);
        if (r < 0)
            return r;
        if (if_range && strcmp(if_range, files_etag(&e, etag)) != 0) {
            g->given = false;
            return 0;
        }
        if (span_settle(g, e.size) < 0)
            return not_satisfiable(req, e.size, err);
    }
    ask->offset = g->first;
    if (g->last != UINT64_MAX && g->last - g->first != UINT64_MAX)
        ask->length = g->last - g->first + 1;
    return 0;
}

/* Takes rd. */
static int answer(struct request *req, struct reading *rd, const struct span *g,
                  const struct file_entry *e, struct err *err)
{
    static const struct reply_reader reader = { read_some, reading_free };
    enum coding coding = CODING_NONE;
    char text[HEADER_MAX];
    int r = 0;

    if (files_etag_listed(request_header(req, "If-None-Match"), e)) {
        put_headers(req, e, CODING_NONE);
        reading_free(rd);
        return reply_status(req, 304);
    }
    if (g->given && e->length == 0)
        r = not_satisfiable(req, e->size, err);
    if (r >= 0 && !g->given && e->length >= CODED_MIN)
        coding = coding_accepted(request_header(req, "Accept-Encoding"));
    if (r >= 0 && coding != CODING_NONE) {
        r = encoder_new(coding, &rd->encoder);
        if (r < 0)
            r = err_set(err, -r, "cannot allocate a coder");
    }
    if (r < 0) {
        reading_free(rd);
        return r;
    }
    put_headers(req, e, coding);
    if (g->given) {
        uint64_t end = g->first + e->length;
        uint64_t size = e->size > end ? e->size : end; /* files of /proc say 0 */
        (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)g->first,
                       (unsigned long long)(end - 1), (unsigned long long)size);
        reply_header(req, "Content-Range", "%s", text);
    }
    return reply_bytes(req, g->given ? 206 : 200, "application/octet-stream",
                       coding == CODING_NONE ? e->length : REPLY_UNKNOWN, &reader, rd);
}

int native_file_get(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", NULL };
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    struct files_query q;
    struct span g = { 0 };

    int r = files_query(req, known, &q, err);
    if (r < 0)
        return r;
    if (span_parse(request_header(req, "Range"), &g) < 0)
        return err_fail(err, FAIL_INVALID_REQUEST,
                        "Range must be bytes=A-B, bytes=A- or "
                        "bytes=-N");
    struct reading *rd = calloc(1, sizeof(*rd));
    if (!rd)
        return err_set(err, ENOMEM, "cannot allocate a read");
    rd->fd = req->fd;
    struct file_ask ask = { .op = WIRE_FILE_READ, .user = q.user, .paths = &q.path, .n_paths = 1 };
    r = native_enter(req, &rd->visit, err);
    if (r >= 0 && strcmp(req->method, "HEAD") == 0) {
        g.given = false;
        r = stat_file(req, &rd->visit.s, &q, &e, err);
        e.length = e.size;
    } else if (r >= 0) {
        r = place(req, &rd->visit.s, &q, &g, &ask, err);
        if (r >= 0)
            r = begin(rd, req, &ask, &e, err);
    }
    if (r < 0) {
        reading_free(rd);
        return files_error(req, r, err);
    }
    return answer(req, rd, &g, &e, err);
}

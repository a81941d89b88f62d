/* GET /files: a file's bytes, whole or a range of them. */
#include "front/e2b/files.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "front/e2b/entry.h"
#include "front/e2b/signature.h"
#include "front/http/coding.h"
#include "front/http/mime.h"
#include "front/http/span.h"

#define DATE_MAX 64
#define ETAG_MAX 128

struct download {
    struct envd envd;
    struct file_call *call;
    struct encoder *encoder; /* NULL: as it is */
    int fd;
};

int files_enter(struct request *req, struct envd *ret_envd, struct err *err)
{
    const char *user = uri_param(&req->uri, "username");
    int r = envd_enter(req, ret_envd, err);
    if (r >= 0 && user && snprintf(ret_envd->user, ENVD_USER_MAX, "%s", user) >= ENVD_USER_MAX) {
        envd_leave(ret_envd);
        r = err_fail(err, FAIL_UNAUTHORIZED, "invalid username");
    }
    return r;
}

int files_fail(struct request *req, int r, struct err *err)
{
    const char *id = request_header(req, "E2b-Sandbox-Id");
    if (r == -ENOTCONN || r == -ECONNRESET)
        return envd_gone(req, id ? id : "");
    if (err->failure == FAIL_USER_NOT_FOUND)
        return err_fail(err, FAIL_UNAUTHORIZED, "invalid username: '%.64s'",
                        uri_param(&req->uri, "username") ? uri_param(&req->uri, "username") : "");
    return r;
}

static void download_free(void *arg)
{
    struct download *d = arg;
    file_call_free(d->call);
    encoder_free(d->encoder);
    envd_leave(&d->envd);
    free(d);
}

static ssize_t read_plain(void *arg, char *out, size_t max)
{
    struct download *d = arg;
    return file_read(d->call, out, max, d->fd, NULL);
}

static ssize_t download_read(void *arg, char *out, size_t max)
{
    struct download *d = arg;
    return d->encoder ? encoder_read(d->encoder, out, max, read_plain, d) : read_plain(d, out, max);
}

/* ---- what the client wants of it ---- */

struct wish {
    struct span range;
    enum coding coding;
};

/* Every client of the SDKs tolerates gzip (`gzip, deflate`); one that wants it names nothing else.
 * -EINVAL: nothing that we have will do. */
static int choose_coding(const char *accept, enum coding *ret_coding)
{
    *ret_coding = CODING_NONE;
    if (!accept)
        return 0;
    bool only = strncasecmp(accept, "gzip", 4) == 0 && !strchr(accept, ',');
    bool refused = strcasestr(accept, "identity;q=0") || strcasestr(accept, "*;q=0");
    if (only || (refused && strcasestr(accept, "gzip")))
        *ret_coding = CODING_GZIP;
    return refused && *ret_coding == CODING_NONE ? -EINVAL : 0;
}

static int not_satisfiable(struct request *req, uint64_t size, struct err *err)
{
    reply_header(req, "Content-Range", "bytes */%llu", (unsigned long long)size);
    return err_fail(err, FAIL_RANGE_NOT_SATISFIABLE,
                    "the range begins behind the file's %llu bytes", (unsigned long long)size);
}

static void put_date(int64_t mtime_ns, char out[DATE_MAX])
{
    time_t t = (time_t)(mtime_ns / 1000000000);
    struct tm tm;
    if (!gmtime_r(&t, &tm) || strftime(out, DATE_MAX, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
        out[0] = '\0';
}

static const char *put_etag(const struct file_entry *e, char out[ETAG_MAX])
{
    int n = e->etag ? snprintf(out, ETAG_MAX, "\"%s\"", e->etag) : 0;
    if (n <= 0 || n >= ETAG_MAX)
        out[0] = '\0';
    return out;
}

/* A range whose end is the file's, or that counts only if the file is still the one that the client
 * knows, needs a look at it first. */
static int settle(struct download *d, struct request *req, const char *path, struct wish *w,
                  struct err *err)
{
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    const char *if_range = request_header(req, "If-Range");
    char date[DATE_MAX], etag[ETAG_MAX];
    if (!w->range.given || (!w->range.suffix && !if_range))
        return 0;
    struct file_ask ask = entry_ask(&d->envd, WIRE_FILE_STAT, &path);
    int r = file_do(req->core, &d->envd.s, &ask, &e, NULL, err);
    if (r < 0)
        return r;
    put_date(e.mtime_ns, date);
    if (if_range && strcmp(if_range, put_etag(&e, etag)) != 0 && strcmp(if_range, date) != 0) {
        w->range.given = false;
        return 0;
    }
    return span_settle(&w->range, e.size) < 0 ? not_satisfiable(req, e.size, err) : 0;
}

/* The entry, whose bytes then wait on the call. */
static int begin(struct download *d, struct request *req, struct wish *w, struct file_entry *ret_e,
                 struct err *err)
{
    const char *path = uri_param(&req->uri, "path");
    struct file_event ev;
    if (!path || !*path)
        return err_fail(err, FAIL_INVALID_QUERY, "path is required");
    int r = settle(d, req, path, w, err);
    if (r < 0)
        return r;
    struct file_ask ask = entry_ask(&d->envd, WIRE_FILE_READ, &path);
    if (w->range.given) {
        ask.offset = w->range.first;
        if (w->range.last != UINT64_MAX && w->range.last - w->range.first != UINT64_MAX)
            ask.length = w->range.last - w->range.first + 1;
    }
    r = file_begin(req->core, &d->envd.s, &ask, &d->call, err);
    if (r >= 0)
        r = file_next(d->call, -1, req->fd, &ev, err);
    if (r < 0 && err->failure == FAIL_RANGE_NOT_SATISFIABLE)
        return not_satisfiable(req, d->call ? file_call_size(d->call) : 0, err);
    if (r < 0)
        return r;
    if (ev.type != FILE_ENTRY) {
        file_event_done(&ev);
        return err_set(err, EPROTO, "a read was answered with something else");
    }
    *ret_e = ev.entry;
    return w->range.given && ret_e->length == 0 ? not_satisfiable(req, ret_e->size, err) : 0;
}

/* ---- the answer ---- */

static bool is_unchanged(struct request *req, const struct file_entry *e)
{
    char date[DATE_MAX], etag[ETAG_MAX];
    const char *none = request_header(req, "If-None-Match");
    const char *since = request_header(req, "If-Modified-Since");
    put_date(e->mtime_ns, date);
    if (none)
        return strcmp(none, "*") == 0 || (*put_etag(e, etag) && strstr(none, etag));
    return since && strcmp(since, date) == 0;
}

static void put_headers(struct request *req, const struct file_entry *e, const struct wish *w)
{
    char date[DATE_MAX], etag[ETAG_MAX];
    const char *slash = strrchr(e->path, '/');
    put_date(e->mtime_ns, date);
    if (*put_etag(e, etag))
        reply_header(req, "ETag", "%s%s", w->coding == CODING_NONE ? "" : "W/", etag);
    reply_header(req, "Last-Modified", "%s", date);
    reply_header(req, "Accept-Ranges", "%s", w->coding == CODING_NONE ? "bytes" : "none");
    reply_header(req, "Vary", "%s", "Accept-Encoding");
    /* A page out of a sandbox is opened at our own origin: it must not act as one of ours. */
    reply_header(req, "Content-Security-Policy", "%s", "sandbox");
    reply_header(req, "X-Content-Type-Options", "%s", "nosniff");
    if (w->coding != CODING_NONE)
        reply_header(req, "Content-Encoding", "%s", coding_name(w->coding));
    _cleanup_(buf_done) struct buf name = BUF_INIT(REQUEST_REPLY_VALUE);
    for (const char *p = slash ? slash + 1 : e->path; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || strchr("-_.~", *p);
        if ((plain ? buf_append(&name, p, 1) : buf_printf(&name, "%%%02X", (unsigned char)*p)) < 0)
            break;
    }
    reply_header(req, "Content-Disposition", "inline; filename*=utf-8''%s",
                 name.data ? name.data : "");
    if (!w->range.given)
        return;
    uint64_t end = w->range.first + e->length;
    reply_header(req, "Content-Range", "bytes %llu-%llu/%llu", (unsigned long long)w->range.first,
                 (unsigned long long)(end - 1),
                 (unsigned long long)(e->size > end ? e->size : end)); /* files of /proc say 0 */
}

/* Takes d. */
static int answer(struct request *req, struct download *d, struct wish *w,
                  const struct file_entry *e, struct err *err)
{
    static const struct reply_reader reader = { download_read, download_free };
    if (is_unchanged(req, e)) {
        put_headers(req, e, &(struct wish){ 0 });
        download_free(d);
        return reply_status(req, 304);
    }
    if (w->range.given)
        w->coding = CODING_NONE;
    if (w->coding != CODING_NONE && encoder_new(w->coding, &d->encoder) < 0) {
        download_free(d);
        return err_set(err, ENOMEM, "cannot allocate a coder");
    }
    put_headers(req, e, w);
    return reply_bytes(req, w->range.given ? 206 : 200, mime_of(e->path),
                       w->coding == CODING_NONE ? e->length : REPLY_UNKNOWN, &reader, d);
}

int envd_files_get(struct request *req, struct err *err)
{
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    struct wish w = { 0 };
    if (span_parse(request_header(req, "Range"), &w.range) < 0)
        return err_fail(err, FAIL_INVALID_REQUEST, "Range must be bytes=A-B, bytes=A- or bytes=-N");
    if (choose_coding(request_header(req, "Accept-Encoding"), &w.coding) < 0)
        return err_fail(err, FAIL_NOT_ACCEPTABLE,
                        "no acceptable encoding found, supported: [identity, gzip]");
    struct download *d = calloc(1, sizeof(*d));
    if (!d)
        return err_set(err, ENOMEM, "cannot allocate a download");
    d->fd = req->fd;
    int r = files_enter(req, &d->envd, err);
    if (r >= 0)
        r = begin(d, req, &w, &e, err);
    if (r < 0) {
        download_free(d);
        return files_fail(req, r, err);
    }
    return answer(req, d, &w, &e, err);
}

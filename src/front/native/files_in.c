/* Many files into a sandbox in one call: an archive that is unpacked while it arrives, or a
 * multipart body whose parts are files. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "core/archiver.h"
#include "front/http/multipart.h"
#include "front/native/files.h"

#define LISTED_BYTES (16u * 1024 * 1024) /* what the answer's list of files may take */

struct incoming {
    struct request *req;
    struct native_visit visit;
    struct decoder *decoder;
    struct archiver *archiver; /* an archive */
    struct multipart *parts;   /* or parts, and where they go */
    struct file_call *call;
    const char *user, *under; /* of the query; NULL: not given */
    char *home;               /* once it was needed */
    uint64_t files, bytes, part_bytes;
    char *path;      /* of the part that comes */
    struct buf list; /* JSON of what was written */
    struct jout j;
    uint64_t listed;
};

static void incoming_free(struct incoming *in)
{
    if (!in)
        return;
    archiver_free(in->archiver);
    multipart_free(in->parts);
    file_call_free(in->call);
    decoder_free(in->decoder);
    native_leave(&in->visit);
    buf_done(&in->list);
    free(in->home);
    free(in->path);
    free(in);
}
DEFINE_FREEP(struct incoming *, incoming_free)

static int fail(struct request *req, int r, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    if (!native_is_volume(req))
        (void)native_sandbox_fate(req->core, req->owner, req->args[0], &s, err);
    return r;
}

static void list(struct incoming *in, const char *path, uint64_t size)
{
    if (in->listed == FILES_PATHS_MAX || in->j.r < 0)
        return;
    in->listed++;
    jout_open(&in->j, NULL, '{');
    jout_str(&in->j, "path", path);
    jout_uint(&in->j, "size", size);
    jout_close(&in->j, '}');
}

/* ---- parts ---- */

static bool climbs(const char *path)
{
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return true;
        p += n;
        p += strspn(p, "/");
    }
    return false;
}

static int find_home(struct incoming *in, struct err *err)
{
    static const char *const here[] = { "." };
    struct file_entry e = { 0 };
    struct file_ask ask = { .op = WIRE_FILE_STAT, .user = in->user, .paths = here, .n_paths = 1 };
    if (in->home)
        return 0;
    int r = file_do(in->req->core, &in->visit.s, &ask, &e, NULL, err);
    if (r >= 0)
        in->home = take_ptr(e.path);
    file_entry_done(&e);
    return r;
}

/* From the root, without its '/': absolute names, those under the query's path, those in the
 * user's home. */
static int place(struct incoming *in, const char *name, char **ret_path, struct err *err)
{
    const char *under = name[0] == '/' ? "" : in->under ? in->under : ".";
    bool home = name[0] != '/' && under[0] != '/';
    int r = home ? find_home(in, err) : 0;
    if (r < 0)
        return r;
    if (climbs(name) || !name[strspn(name, "/")])
        return err_fail(err, FAIL_INVALID_PATH, "a part's file name '%.200s' is no path", name);
    char *path = NULL;
    if (asprintf(&path, "%s/%s/%s", home ? in->home : "", under, name) < 0)
        return err_set(err, ENOMEM, "cannot allocate a path");
    size_t skip = strspn(path, "/");
    memmove(path, path + skip, strlen(path) - skip + 1);
    if (strlen(path) >= FILES_PATH_MAX) {
        free(path);
        return err_fail(err, FAIL_NAME_TOO_LONG, "a part's file name is too long");
    }
    *ret_path = path;
    return 0;
}

/* Init has refused: it says why. */
static int refused(struct incoming *in, int r, struct err *err)
{
    struct file_event ev;
    if (r == -ETIMEDOUT)
        return err_fail_as(err, ETIMEDOUT, FAIL_SANDBOX_BUSY, "the sandbox takes no more data");
    if (r != -EPIPE)
        return err_set(err, -r, "cannot pass the body on to the sandbox");
    do {
        r = in->archiver ? archiver_next(in->archiver, in->req->fd, &ev, err)
                         : file_next(in->call, -1, in->req->fd, &ev, err);
        if (r >= 0)
            file_event_done(&ev);
    } while (r >= 0 && ev.type != FILE_DONE);
    return r < 0 ? r : err_set(err, EIO, "the sandbox ended the transfer early");
}

static int part_begin(void *arg, const struct multipart_part *part, struct err *err)
{
    struct incoming *in = arg;
    const char *mode = multipart_header(part, "X-Mode");
    uint64_t bits = 0;

    if (!part->filename || !*part->filename)
        return err_fail(err, FAIL_INVALID_REQUEST,
                        "each part needs a filename in its Content-Disposition: the path");
    if (mode && files_mode_parse(mode, &bits) < 0)
        return err_fail(err, FAIL_INVALID_REQUEST, "X-Mode must be octal, as in 0644");
    free(in->path);
    in->path = NULL;
    in->part_bytes = 0;
    int r = place(in, part->filename, &in->path, err);
    if (r < 0)
        return r;
    struct file_entry e = { .path = in->path, .type = WIRE_REGULAR, .mode = (unsigned)bits };
    r = file_put_entry(in->call, &e);
    return r < 0 ? refused(in, r, err) : 0;
}

static int part_data(void *arg, const char *p, size_t n, struct err *err)
{
    struct incoming *in = arg;
    in->part_bytes += n;
    int r = file_put_data(in->call, p, n);
    return r < 0 ? refused(in, r, err) : 0;
}

static int part_end(void *arg, struct err *err)
{
    struct incoming *in = arg;
    _cleanup_free_ char *shown = NULL;
    if (asprintf(&shown, "/%s", in->path) < 0) {
        shown = NULL;
        return err_set(err, ENOMEM, "cannot allocate a path");
    }
    list(in, shown, in->part_bytes);
    return 0;
}

static const struct multipart_sink part_sink = { part_begin, part_data, part_end };

/* ---- the beginning ---- */

static int begin_parts(struct incoming *in, struct err *err)
{
    static const char *const root[] = { "/" };
    struct file_ask ask = {
        .op = WIRE_FILE_TREE_IN, .user = in->user, .paths = root, .n_paths = 1
    };
    int r = multipart_new(request_header(in->req, "Content-Type"), &part_sink, in, &in->parts, err);
    return r < 0 ? r : file_begin(in->req->core, &in->visit.s, &ask, &in->call, err);
}

static int begin_archive(struct incoming *in, const char *format, struct err *err)
{
    const char *under = in->under ? in->under : "/";
    struct file_ask ask = {
        .op = WIRE_FILE_TREE_IN, .user = in->user, .paths = &under, .n_paths = 1
    };
    struct file_call *call = NULL;
    int r = file_begin(in->req->core, &in->visit.s, &ask, &call, err);
    return r < 0 ? r : archiver_unpack(in->req->core, call, format, &in->archiver, err);
}

static int begin(struct request *req, bool parts, const char *format, struct err *err)
{
    _cleanup_(incoming_freep) struct incoming *in = calloc(1, sizeof(*in));
    enum coding coding = CODING_NONE;

    if (!in)
        return err_set(err, ENOMEM, "cannot allocate a transfer");
    in->req = req;
    in->list.max = LISTED_BYTES;
    in->j = (struct jout)JOUT_INIT(&in->list);
    in->user = uri_param(&req->uri, "user");
    in->under = uri_param(&req->uri, "path");
    if (in->under && (!*in->under || strlen(in->under) >= FILES_PATH_MAX))
        return err_fail(err, FAIL_INVALID_QUERY, "'path' is empty, or too long");
    if (coding_parse(request_header(req, "Content-Encoding"), &coding) < 0)
        return err_fail_as(err, EINVAL, FAIL_NOT_SUPPORTED,
                           "Content-Encoding must be gzip, zstd or identity");
    int r = decoder_new(coding, &in->decoder);
    if (r < 0)
        return err_set(err, -r, "cannot allocate a decoder");
    r = native_enter(req, &in->visit, err);
    if (r >= 0)
        r = parts ? begin_parts(in, err) : begin_archive(in, format, err);
    if (r < 0)
        return fail(req, r, err);
    req->sink = take_ptr(in);
    return 0;
}

static int archive_begin(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", "format", NULL };
    const char *format = uri_param(&req->uri, "format");
    struct files_query q;
    int r = files_query(req, known, &q, err);
    if (r < 0)
        return r;
    if (format && !archiver_format_known(format, true))
        return err_fail(err, FAIL_INVALID_QUERY,
                        "'format' must be auto, tar, tar.gz, tar.zst or zip");
    return begin(req, false, format ? format : "auto", err);
}

static int bulk_begin(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", NULL };
    const char *type = request_header(req, "Content-Type");
    int r = request_params_known(req, known, err);
    if (r < 0)
        return r;
    bool parts = type && strncasecmp(type, "multipart/", 10) == 0;
    bool tar = type && (strncasecmp(type, "application/x-tar", 17) == 0 ||
                        strncasecmp(type, "application/tar", 15) == 0);
    if (!parts && !tar)
        return err_fail(err, FAIL_INVALID_REQUEST,
                        "Content-Type must be multipart/form-data or application/x-tar");
    return begin(req, parts, "auto", err);
}

/* ---- the bytes ---- */

static int take(void *arg, const char *p, size_t n)
{
    struct incoming *in = arg;
    struct err *err = &in->req->err;
    if (in->parts)
        return multipart_feed(in->parts, p, n, err);
    int r = archiver_write(in->archiver, p, n);
    return r < 0 ? refused(in, r, err) : 0;
}

static int sink_write(struct request *req, const char *p, size_t n, struct err *err)
{
    struct incoming *in = req->sink;
    int r = decoder_feed(in->decoder, p, n, take, in);
    if (r == -EBADMSG && !err->code)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_REQUEST,
                           "the body is not what its Content-Encoding says");
    if (r < 0 && !err->code)
        return err_set(err, -r, "cannot pass the body on to the sandbox");
    return r < 0 ? fail(req, r, err) : 0;
}

static void sink_end(struct request *req)
{
    incoming_free(req->sink);
    req->sink = NULL;
}

const struct route_sink native_file_archive_sink = { archive_begin, sink_write, sink_end, NULL };
const struct route_sink native_file_write_sink = { bulk_begin, sink_write, sink_end, NULL };

/* ---- the end ---- */

static int finish(struct incoming *in, struct file_event *ret_done, struct err *err)
{
    struct request *req = in->req;
    int r = decoder_end(in->decoder);
    if (r < 0)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_REQUEST,
                           "the body ends before its Content-Encoding does");
    if (in->parts) {
        r = multipart_end(in->parts, err);
        if (r < 0)
            return r;
        (void)file_put_end(in->call); /* if it fails, init says why */
    }
    for (;;) {
        struct file_event ev;
        r = in->archiver ? archiver_next(in->archiver, req->fd, &ev, err)
                         : file_next(in->call, -1, req->fd, &ev, err);
        if (r < 0)
            return r;
        if (ev.type == FILE_ENTRY && in->archiver)
            list(in, ev.entry.path, ev.entry.size);
        file_event_done(&ev);
        if (ev.type == FILE_DONE) {
            *ret_done = ev;
            return 0;
        }
    }
}

static int reply(struct request *req, bool entries, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct incoming *in = req->sink;
    struct file_event done = { 0 };

    int r = finish(in, &done, err);
    if (r < 0)
        return files_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_uint(&j, "files", done.files);
    jout_uint(&j, "bytes", done.bytes);
    if (entries) {
        jout_open(&j, "entries", '[');
        if (in->list.len && in->j.r >= 0)
            jout_raw(&j, NULL, in->list.data);
        jout_close(&j, ']');
    }
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int native_file_unpack(struct request *req, struct err *err)
{
    return reply(req, false, err);
}

int native_file_write_many(struct request *req, struct err *err)
{
    return reply(req, true, err);
}

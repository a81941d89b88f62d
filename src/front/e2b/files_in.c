/* POST /files: one file as it is, or several as parts; each is there whole or not at all. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "core/file.h"
#include "front/e2b/entry.h"
#include "front/e2b/files.h"
#include "front/http/coding.h"
#include "front/http/fields.h"
#include "front/http/multipart.h"

#define WRITTEN_MAX 10000

struct upload {
    struct request *req;
    struct envd envd;
    struct decoder *decoder;
    struct multipart *parts; /* NULL: the body is one file */
    struct file_call *call;  /* the file that is being written */
    bool ignored;            /* a part that is no file */
    struct pairs metadata;   /* of each file that is written */
    char *asked;             /* the name of the part that is being written */
    char **names;            /* those of the parts before it */
    char **written;
    size_t n_written;
};

static void upload_free(struct upload *u)
{
    if (!u)
        return;
    multipart_free(u->parts);
    file_call_free(u->call);
    decoder_free(u->decoder);
    envd_leave(&u->envd);
    for (size_t i = 0; i < u->n_written; i++) {
        free(u->names[i]);
        free(u->written[i]);
    }
    free(u->asked);
    free(u->names);
    free(u->written);
    pairs_done(&u->metadata);
    free(u);
}
DEFINE_FREEP(struct upload *, upload_free)

/* ---- one file ---- */

static int file_open(struct upload *u, const char *path, struct err *err)
{
    struct file_ask ask = entry_ask(&u->envd, WIRE_FILE_WRITE, &path);
    if (u->n_written == WRITTEN_MAX)
        return err_fail(err, FAIL_INVALID_REQUEST, "over %d files in one request", WRITTEN_MAX);
    for (size_t i = 0; i < u->n_written; i++)
        if (strcmp(u->names[i], path) == 0)
            return err_fail(err, FAIL_INVALID_REQUEST,
                            "you cannot upload multiple files to the same path '%.200s'", path);
    free(u->asked);
    u->asked = strdup(path);
    if (!u->asked)
        return err_set(err, ENOMEM, "cannot allocate an upload");
    return file_begin(u->req->core, &u->envd.s, &ask, &u->call, err);
}

/* What init says, to the end; the path of what was written, and whether there was nothing before. */
static int file_end(struct upload *u, char **ret_path, bool *ret_fresh, struct err *err)
{
    for (;;) {
        struct file_event ev;
        int r = file_next(u->call, -1, u->req->fd, &ev, err);
        if (r < 0)
            return r;
        bool done = ev.type == FILE_DONE;
        if (ev.type == FILE_ENTRY && !*ret_path)
            *ret_path = take_ptr(ev.entry.path);
        *ret_fresh = done && ev.count > 0;
        file_event_done(&ev);
        if (done)
            return *ret_path ? 0 : err_set(err, EPROTO, "a write was not told of");
    }
}

static int file_data(void *arg, const char *p, size_t n, struct err *err)
{
    struct upload *u = arg;
    if (u->ignored)
        return 0;
    int r = file_put_data(u->call, p, n);
    if (r != -EPIPE)
        return r < 0 ? err_set(err, -r, "cannot pass the body on to the sandbox") : 0;
    _cleanup_free_ char *path = NULL; /* init has refused: it says why */
    bool fresh;
    r = file_end(u, &path, &fresh, err);
    return r < 0 ? r : err_set(err, EIO, "the write ended early");
}

/* Takes the path, but not on failure. */
static int remember(struct upload *u, char *path, struct err *err)
{
    char **names = reallocarray(u->names, u->n_written + 1, sizeof(*names));
    if (names)
        u->names = names;
    char **written = names ? reallocarray(u->written, u->n_written + 1, sizeof(*written)) : NULL;
    if (!written)
        return err_set(err, ENOMEM, "cannot allocate an upload");
    u->written = written;
    u->names[u->n_written] = take_ptr(u->asked);
    u->written[u->n_written++] = path;
    return 0;
}

static int file_close(void *arg, struct err *err)
{
    struct upload *u = arg;
    char *path = NULL;
    bool fresh = false;
    if (u->ignored)
        return 0;
    (void)file_put_end(u->call); /* if it fails, init says why */
    int r = file_end(u, &path, &fresh, err);
    file_call_free(take_ptr(u->call));
    if (r >= 0)
        r = files_metadata_set(&u->envd, path, fresh, &u->metadata, err);
    if (r >= 0)
        r = remember(u, path, err);
    if (r < 0)
        free(path);
    return r;
}

/* ---- parts ---- */

static int part_begin(void *arg, const struct multipart_part *part, struct err *err)
{
    struct upload *u = arg;
    const char *query = uri_param(&u->req->uri, "path");
    u->ignored = !part->name || strcmp(part->name, "file") != 0;
    if (u->ignored)
        return 0;
    const char *path = query && *query ? query : part->filename;
    if (!path || !*path)
        return err_fail(err, FAIL_INVALID_REQUEST, "a part has no file name");
    return file_open(u, path, err);
}

static int sink_begin(struct request *req, struct err *err)
{
    static const struct multipart_sink parts = { part_begin, file_data, file_close };
    _cleanup_(upload_freep) struct upload *u = calloc(1, sizeof(*u));
    const char *type = request_header(req, "Content-Type");
    const char *path = uri_param(&req->uri, "path");
    enum coding coding = CODING_NONE;

    if (!u)
        return err_set(err, ENOMEM, "cannot allocate an upload");
    u->req = req;
    if (coding_parse(request_header(req, "Content-Encoding"), &coding) < 0)
        return err_fail(err, FAIL_INVALID_REQUEST, "this Content-Encoding is not supported");
    int r = decoder_new(coding, &u->decoder);
    if (r < 0)
        return err_set(err, -r, "cannot allocate a decoder");
    r = files_metadata_read(req, &u->metadata, err);
    if (r >= 0)
        r = files_enter(req, &u->envd, err);
    if (r >= 0 && type && strncasecmp(type, "multipart/form-data", 19) == 0)
        r = multipart_new(type, &parts, u, &u->parts, err);
    else if (r >= 0 && type && strncasecmp(type, "application/octet-stream", 24) == 0)
        r = path && *path ? file_open(u, path, err)
                          : err_fail(err, FAIL_INVALID_QUERY, "path is required");
    else if (r >= 0)
        r = err_fail(err, FAIL_INVALID_REQUEST,
                     "the body must be multipart/form-data or application/octet-stream");
    if (r < 0)
        return r;
    req->sink = take_ptr(u);
    return 0;
}

struct feeding {
    struct upload *u;
    struct err *err;
};

static int take(void *arg, const char *p, size_t n)
{
    struct feeding *f = arg;
    return f->u->parts ? multipart_feed(f->u->parts, p, n, f->err) : file_data(f->u, p, n, f->err);
}

static int sink_write(struct request *req, const char *p, size_t n, struct err *err)
{
    struct upload *u = req->sink;
    struct feeding f = { u, err };
    int r = decoder_feed(u->decoder, p, n, take, &f);
    if (r == -EBADMSG && err->code == 0)
        return err_fail(err, FAIL_INVALID_REQUEST,
                        "the body is not what its Content-Encoding says");
    return r < 0 ? r : 0;
}

static void sink_end(struct request *req)
{
    upload_free(req->sink);
    req->sink = NULL;
}

const struct route_sink envd_files_sink = { sink_begin, sink_write, sink_end, NULL };

static void put_metadata(struct jout *j, const struct pairs *metadata)
{
    if (metadata->n)
        put_pairs(j, "metadata", metadata);
}

static int reply_written(struct request *req, const struct upload *u)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < u->n_written; i++) {
        const char *slash = strrchr(u->written[i], '/');
        jout_open(&j, NULL, '{');
        jout_str(&j, "path", u->written[i]);
        jout_str(&j, "name", slash ? slash + 1 : u->written[i]);
        jout_str(&j, "type", "file");
        put_metadata(&j, &u->metadata);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    return reply_json(req, 200, &j);
}

int envd_files_post(struct request *req, struct err *err)
{
    struct upload *u = req->sink;
    int r =
        decoder_end(u->decoder) < 0 ? err_fail(err, FAIL_INVALID_REQUEST, "the body was cut") : 0;
    if (r >= 0)
        r = u->parts ? multipart_end(u->parts, err) : file_close(u, err);
    return r < 0 ? files_fail(req, r, err) : reply_written(req, u);
}

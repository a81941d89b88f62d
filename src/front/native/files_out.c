/* Many files out of a sandbox in one call: parts of a multipart body, or a tar. */
#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "base/id.h"
#include "front/http/fields.h"
#include "front/native/files.h"

#define BATCH (128 * 1024) /* what is gathered before it is sent; a frame of data may come on top */
#define BOUNDARY_BYTES 12
#define BOUNDARY_MAX (8 + 2 * BOUNDARY_BYTES)

struct body {
    char **paths;
    char *user;
};

static const struct field fields[] = {
    FIELD(struct body, paths, "paths", as_texts),
    FIELD(struct body, user, "user", as_text, .max = 256, .null_ok = true),
};

static void body_done(struct body *b)
{
    for (char **p = b->paths; p && *p; p++)
        free(*p);
    free(b->paths);
    free(b->user);
}

struct parts {
    struct native_visit visit;
    struct file_call *call;
    char boundary[BOUNDARY_MAX];
    /* If there is just one path: it, since its failure is a part too; and what is above it, since
     * init then names what it sends from its last part on. */
    char *only, *above;
    int fd;
    bool in_part, ended;
};

static void parts_free(void *arg)
{
    struct parts *p = arg;
    file_call_free(p->call);
    native_leave(&p->visit);
    free(p->only);
    free(p->above);
    free(p);
}

/* A name in quotes, as browsers write it: what would break the line is percent-encoded. */
static int put_quoted(struct buf *out, const char *s)
{
    int r = 0;
    for (; *s && r >= 0; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < ' ' || c == 0x7f)
            r = buf_printf(out, "%%%02X", c);
        else if (c == '"' || c == '\\')
            r = buf_printf(out, "\\%c", c);
        else
            r = buf_append(out, s, 1);
    }
    return r;
}

/* The path is `under`, a slash and `path`; without `under` it is as it is. */
static int put_head(struct parts *p, struct buf *out, const char *under, const char *path)
{
    int r = buf_printf(out, "%s--%s\r\nContent-Disposition: attachment; filename=\"",
                       p->in_part ? "\r\n" : "", p->boundary);
    p->in_part = true;
    if (r >= 0 && under)
        r = put_quoted(out, under);
    if (r >= 0 && under)
        r = buf_append(out, "/", 1);
    if (r >= 0)
        r = put_quoted(out, path);
    return r < 0 ? r : buf_puts(out, "\"\r\n");
}

static int put_file(struct parts *p, struct buf *out, const struct file_entry *e)
{
    char etag[FILES_ETAG_MAX];
    if (e->type != WIRE_REGULAR)
        return 0; /* a directory's files come by themselves */
    int r = put_head(p, out, p->above ? p->above : "", e->path);
    if (r >= 0)
        r = buf_printf(out,
                       "Content-Type: application/octet-stream\r\nContent-Length: %llu\r\n"
                       "X-Mode: %04o\r\n",
                       (unsigned long long)e->size, e->mode);
    if (r >= 0 && files_etag(e, etag)[0])
        r = buf_printf(out, "ETag: %s\r\n", etag);
    return r < 0 ? r : buf_puts(out, "\r\n");
}

static int put_failure(struct parts *p, struct buf *out, const char *path, const struct err *err)
{
    const char *code = failure_name(err->failure);
    int r = put_head(p, out, NULL, path);
    if (r >= 0)
        r = buf_printf(out, "Content-Type: application/json\r\nX-Warren-Error: %s\r\n\r\n", code);
    if (r < 0)
        return r;
    struct jout j = JOUT_INIT(out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "code", code);
    jout_str(&j, "message", err->msg);
    jout_close(&j, '}');
    return jout_done(&j);
}

static int put_event(struct parts *p, struct buf *out, struct file_event *ev)
{
    switch (ev->type) {
    case FILE_ENTRY: return put_file(p, out, &ev->entry);
    case FILE_DATA: return buf_append(out, ev->data, ev->len);
    case FILE_SKIPPED: return put_failure(p, out, ev->entry.path, &ev->err);
    case FILE_DONE:
        p->ended = true;
        return buf_printf(out, "%s--%s--\r\n", p->in_part ? "\r\n" : "", p->boundary);
    case FILE_MATCH:
    case FILE_CHANGE:
    case FILE_READY: break;
    }
    return -EPROTO;
}

static int parts_next(void *arg, struct buf *out)
{
    struct parts *p = arg;
    while (!p->ended && out->len < BATCH) {
        struct file_event ev;
        struct err err = ERR_INIT;
        int r = file_next(p->call, out->len ? 0 : -1, p->fd, &ev, &err);
        if (r == -ETIMEDOUT)
            return 1;
        if (r < 0 && p->only && !p->in_part && err.failure) {
            p->ended = true;
            r = put_failure(p, out, p->only, &err);
            return r < 0 ? r : buf_printf(out, "\r\n--%s--\r\n", p->boundary);
        }
        if (r < 0)
            return r;
        r = put_event(p, out, &ev);
        file_event_done(&ev);
        if (r < 0)
            return r;
    }
    return out->len ? 1 : 0;
}

static int keep_path(struct parts *p, const char *path, struct err *err)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    p->only = strdup(path);
    if (n > 0)
        p->above = strndup(path, n - 1);
    else
        p->above = strdup(".");
    return p->only && p->above ? 0 : err_set(err, ENOMEM, "cannot allocate a path");
}

static int reply_parts(struct request *req, const struct file_ask *ask, struct err *err)
{
    static const struct reply_source source = { parts_next, parts_free };
    unsigned char random[BOUNDARY_BYTES];
    char hex[2 * BOUNDARY_BYTES + 1], type[64 + BOUNDARY_MAX];
    struct parts *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(err, ENOMEM, "cannot allocate an answer");
    p->fd = req->fd;
    int r = random_bytes(random, sizeof(random));
    if (r < 0)
        r = err_set(err, -r, "cannot get random bytes");
    hex_encode(random, sizeof(random), hex);
    (void)snprintf(p->boundary, sizeof(p->boundary), "warren%s", hex);
    if (r >= 0 && ask->n_paths == 1)
        r = keep_path(p, ask->paths[0], err);
    if (r >= 0)
        r = native_enter(req, &p->visit, err);
    if (r >= 0)
        r = file_begin(req->core, &p->visit.s, ask, &p->call, err);
    if (r < 0) {
        parts_free(p);
        return files_error(req, r, err);
    }
    (void)snprintf(type, sizeof(type), "multipart/mixed; boundary=%s", p->boundary);
    return reply_stream(req, type, &source, p);
}

int native_file_read_many(struct request *req, struct err *err)
{
    _cleanup_(body_done) struct body b = { 0 };

    int r = request_fields(req, fields, ARRAY_LEN(fields), &b, NULL, err);
    if (r < 0)
        return r;
    struct file_ask ask = { .op = WIRE_FILE_TREE_OUT,
                            .user = b.user,
                            .paths = (const char *const *)b.paths };
    for (; b.paths && b.paths[ask.n_paths]; ask.n_paths++)
        if (!b.paths[ask.n_paths][0])
            return err_fail(err, FAIL_INVALID_FIELD, "'paths' has an empty one");
    if (ask.n_paths == 0)
        return err_fail(err, FAIL_MISSING_FIELD, "'paths' is needed: a list of paths");
    if (ask.n_paths > FILES_PATHS_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'paths' has over %d paths", FILES_PATHS_MAX);
    if (request_accepts(req, "application/x-tar"))
        return files_reply_archive(req, &ask, "tar", err);
    ask.flags = WIRE_F_WHOLE;
    return reply_parts(req, &ask, err);
}

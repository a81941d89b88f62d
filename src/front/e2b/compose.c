/* POST /files/compose: several files become one, and are gone. What they are put together to is
 * there whole or not at all; the pieces go only after that. */
#include <errno.h>
#include <string.h>

#include "front/e2b/entry.h"
#include "front/e2b/files.h"

#define SOURCES_MAX 1000
#define PIECE (64 * 1024)

struct compose {
    struct envd envd;
    const char *sources[SOURCES_MAX]; /* borrowed from the request's object */
    size_t n;
    const char *destination;
    int fd;
};

static int read_body(struct request *req, const json_t *object, struct compose *c, struct err *err)
{
    const json_t *sources = json_object_get(object, "source_paths");
    const char *user = json_string_value(json_object_get(object, "username"));
    c->destination = json_string_value(json_object_get(object, "destination"));
    c->n = json_array_size(sources);
    if (c->n == 0 || c->n > SOURCES_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "source_paths must be 1 to %d paths", SOURCES_MAX);
    if (!c->destination || !*c->destination)
        return err_fail(err, FAIL_MISSING_FIELD, "destination is required");
    for (size_t i = 0; i < c->n; i++) {
        c->sources[i] = json_string_value(json_array_get(sources, i));
        if (!c->sources[i] || !*c->sources[i])
            return err_fail(err, FAIL_INVALID_FIELD, "source_paths must be paths");
    }
    if (user && snprintf(c->envd.user, ENVD_USER_MAX, "%s", user) >= ENVD_USER_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "invalid username");
    return 0;
}

/* All of one source into the call that writes. */
static int copy_one(const struct compose *c, const char *path, struct file_call *to,
                    struct err *err)
{
    _cleanup_(file_call_freep) struct file_call *from = NULL;
    _cleanup_free_ char *piece = malloc(PIECE);
    struct file_event ev;
    ssize_t n;
    if (!piece)
        return err_set(err, ENOMEM, "cannot allocate a copy");
    struct file_ask ask = entry_ask(&c->envd, WIRE_FILE_READ, &path);
    int r = file_begin(c->envd.core, &c->envd.s, &ask, &from, err);
    if (r >= 0)
        r = file_next(from, -1, c->fd, &ev, err);
    if (r < 0)
        return r;
    file_event_done(&ev);
    while ((n = file_read(from, piece, PIECE, c->fd, err)) > 0) {
        r = file_put_data(to, piece, (size_t)n);
        if (r < 0) /* EPIPE: the reader of the answer finds out why */
            return r == -EPIPE ? 0 : err_set(err, -r, "cannot pass the bytes on to the sandbox");
    }
    return n < 0 ? (int)n : 0;
}

static int write_all(const struct compose *c, struct file_entry *ret_e, struct err *err)
{
    _cleanup_(file_call_freep) struct file_call *to = NULL;
    struct file_ask ask = entry_ask(&c->envd, WIRE_FILE_WRITE, &c->destination);
    int r = file_begin(c->envd.core, &c->envd.s, &ask, &to, err);
    for (size_t i = 0; r >= 0 && i < c->n; i++)
        r = copy_one(c, c->sources[i], to, err);
    if (r >= 0)
        (void)file_put_end(to); /* if it fails, init says why */
    while (r >= 0) {
        struct file_event ev;
        r = file_next(to, -1, c->fd, &ev, err);
        if (r < 0)
            break;
        bool done = ev.type == FILE_DONE;
        if (ev.type == FILE_ENTRY && !ret_e->path)
            *ret_e = ev.entry;
        else
            file_event_done(&ev);
        if (done)
            return ret_e->path ? 0 : err_set(err, EPROTO, "a write was not told of");
    }
    return r;
}

/* The sources, but for one that is the result. */
static int remove_sources(const struct compose *c, const struct file_entry *result, struct err *err)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < c->n; i++) {
        _cleanup_(file_entry_done) struct file_entry e = { 0 };
        struct file_ask ask = entry_ask(&c->envd, WIRE_FILE_STAT, &c->sources[i]);
        if (file_do(c->envd.core, &c->envd.s, &ask, &e, NULL, NULL) < 0 || e.inode == result->inode)
            continue;
        ask = entry_ask(&c->envd, WIRE_FILE_REMOVE, &c->sources[i]);
        ask.flags |= WIRE_F_FORCE;
        r = file_do(c->envd.core, &c->envd.s, &ask, NULL, NULL, err);
    }
    return r;
}

int envd_files_compose(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024);
    _cleanup_free_ struct compose *c = calloc(1, sizeof(*c));
    struct jout j = JOUT_INIT(&b);
    if (!c)
        return err_set(err, ENOMEM, "cannot allocate a request");
    c->fd = req->fd;
    int r = envd_enter(req, &c->envd, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = request_json(req, &object, err);
    if (r >= 0)
        r = read_body(req, object, c, err);
    if (r >= 0)
        r = write_all(c, &e, err);
    if (r >= 0)
        r = remove_sources(c, &e, err);
    envd_leave(&c->envd);
    if (r < 0)
        return files_fail(req, r, err);
    const char *slash = strrchr(e.path, '/');
    jout_open(&j, NULL, '{');
    jout_str(&j, "path", e.path);
    jout_str(&j, "name", slash ? slash + 1 : e.path);
    jout_str(&j, "type", "file");
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

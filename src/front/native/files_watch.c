/* Changes of files, as a stream of lines and by poll. */
#include <errno.h>
#include <string.h>

#include "core/watches.h"
#include "front/http/fields.h"
#include "front/native/files.h"

#define PING_MS 15000 /* of silence */
#define WAIT_MAX_S 60

static void put_change(struct jout *j, const struct file_change *c)
{
    jout_open(j, NULL, '{');
    jout_str(j, "type", file_change_name(c->type));
    jout_str(j, "path", c->path);
    if (c->to)
        jout_str(j, "to", c->to);
    if (c->entry.path)
        files_put_entry(j, "entry", &c->entry);
    else
        jout_null(j, "entry");
    jout_time(j, "time", c->time_ms);
    jout_close(j, '}');
}

/* ---- the stream ---- */

struct lines {
    struct native_visit visit;
    struct file_watch *watch;
    int fd;
    bool announced, ended;
};

static void lines_free(void *arg)
{
    struct lines *l = arg;
    file_watch_free(l->watch);
    native_leave(&l->visit);
    free(l);
}

static void put_failure(struct lines *l, struct jout *j, struct err *err)
{
    const struct sandbox *visited = &l->visit.s;
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    bool gone = native_sandbox_fate(l->visit.core, visited->owner, visited->id, &s, err);
    jout_open(j, NULL, '{');
    jout_str(j, "type", "error");
    jout_str(j, "code", failure_name(err->failure));
    jout_str(j, "message", err->msg);
    if (gone)
        native_put_gone(j, &s);
    jout_close(j, '}');
}

static void put_word(struct jout *j, const char *type)
{
    jout_open(j, NULL, '{');
    jout_str(j, "type", type);
    jout_close(j, '}');
}

static int lines_next(void *arg, struct buf *out)
{
    struct lines *l = arg;
    struct jout j = JOUT_INIT(out);
    struct file_change c;
    struct err err = ERR_INIT;

    if (l->ended)
        return 0;
    int r = l->announced ? file_watch_next(l->watch, PING_MS, l->fd, &c, &err) : 0;
    if (r == -ECANCELED)
        return r;
    if (!l->announced) {
        put_word(&j, "ready");
        l->announced = true;
    } else if (r > 0) {
        put_change(&j, &c);
        file_change_done(&c);
    } else if (r == -ETIMEDOUT) {
        put_word(&j, "ping");
    } else {
        put_failure(l, &j, &err);
        l->ended = true;
    }
    r = jout_done(&j);
    if (r >= 0)
        r = buf_append(out, "\n", 1);
    return r < 0 ? r : 1;
}

int native_file_watch(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", "recursive", NULL };
    static const struct reply_source source = { lines_next, lines_free };
    struct files_query q;
    bool recursive = false;

    int r = files_query(req, known, &q, err);
    if (r >= 0)
        r = request_param_bool(req, "recursive", &recursive, err);
    if (r < 0)
        return r;
    struct lines *l = calloc(1, sizeof(*l));
    if (!l)
        return err_set(err, ENOMEM, "cannot allocate a stream");
    l->fd = req->fd;
    r = native_enter(req, &l->visit, err);
    if (r >= 0)
        r = file_watch_open(req->core, &l->visit.s, q.user, q.path,
                            recursive ? WIRE_F_RECURSIVE : 0, req->fd, &l->watch, err);
    if (r < 0) {
        lines_free(l);
        return files_error(req, r, err);
    }
    return reply_stream(req, "application/x-ndjson", &source, l);
}

/* ---- by poll ---- */

struct body {
    char *path, *user;
    bool recursive;
};

static const struct field fields[] = {
    FIELD(struct body, path, "path", as_text, .max = FILES_PATH_MAX - 1),
    FIELD(struct body, user, "user", as_text, .max = 256, .null_ok = true),
    FIELD(struct body, recursive, "recursive", as_bool),
};

static void body_done(struct body *b)
{
    free(b->path);
    free(b->user);
}

int native_file_watch_add(struct request *req, struct err *err)
{
    _cleanup_(body_done) struct body body = { 0 };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    uint64_t n = 0;

    int r = request_fields(req, fields, ARRAY_LEN(fields), &body, NULL, err);
    if (r < 0)
        return r;
    if (!body.path || !*body.path)
        return err_fail(err, FAIL_MISSING_FIELD, "'path' is needed");
    r = native_enter(req, &visit, err);
    if (r >= 0)
        r = watches_add(req->core, &visit.s, body.user, body.path,
                        body.recursive ? WIRE_F_RECURSIVE : 0, NULL, &n, err);
    if (r < 0)
        return files_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_uint(&j, "watch", n);
    jout_close(&j, '}');
    return reply_json(req, 201, &j);
}

/* Enter, and read the {n} of the path. */
static int enter_watch(struct request *req, struct native_visit *visit, uint64_t *ret_n,
                       struct err *err)
{
    int r = native_enter(req, visit, err);
    if (r < 0)
        return r;
    uint64_t v = native_path_number(req, 1);
    if (v == 0)
        return err_fail(err, FAIL_WATCH_NOT_FOUND, "sandbox '%s' has no watch '%.32s'", visit->s.id,
                        req->args[1]);
    *ret_n = v;
    return 0;
}

int native_file_watch_poll(struct request *req, struct err *err)
{
    static const char *const known[] = { "wait_s", NULL };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(watches_batch_done) struct watches_batch batch = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    uint64_t n = 0, wait_s = 0;

    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_u64(req, "wait_s", 0, WAIT_MAX_S, &wait_s, err);
    if (r >= 0)
        r = enter_watch(req, &visit, &n, err);
    if (r >= 0)
        r = watches_poll(req->core, visit.s.id, n, (int)wait_s * 1000, req->fd, &batch, err);
    if (r < 0)
        return files_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_open(&j, "events", '[');
    for (size_t i = 0; i < batch.n; i++)
        put_change(&j, &batch.changes[i]);
    jout_close(&j, ']');
    jout_uint(&j, "dropped", batch.dropped);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int native_file_watch_remove(struct request *req, struct err *err)
{
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    uint64_t n = 0;
    int r = enter_watch(req, &visit, &n, err);
    if (r >= 0)
        r = watches_remove(req->core, visit.s.id, n, err);
    return r < 0 ? files_error(req, r, err) : reply_empty(req);
}

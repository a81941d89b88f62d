/* Which files differ: of a sandbox against its image, or between two states. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "core/compare.h"
#include "front/http/fields.h"
#include "front/native/native.h"

#define CHANGES_LIMIT 1000 /* unless the client says */

static const char *type_of(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG: return "file";
    case S_IFDIR: return "directory";
    case S_IFLNK: return "symlink";
    default: return "other";
    }
}

static void put_mode(struct jout *j, const char *key, uint32_t mode)
{
    char text[8];
    (void)snprintf(text, sizeof(text), "%04o", mode & 07777);
    jout_str(j, key, mode ? text : NULL);
}

static void put_text(struct jout *j, const struct trace_change *c)
{
    static const char *const states[CHANGE_TEXTS] = { [CHANGE_TEXT_WHOLE] = "whole",
                                                      [CHANGE_TEXT_CUT] = "cut",
                                                      [CHANGE_TEXT_BINARY] = "binary",
                                                      [CHANGE_TEXT_LARGE] = "too_large" };
    jout_str(j, "text", c->text);
    jout_str(j, "text_state", states[c->head.text]);
}

static void put_change(struct jout *j, const struct trace_change *c)
{
    static const char *const kinds[] = {
        [CHANGE_ADDED] = "added", [CHANGE_CHANGED] = "changed", [CHANGE_REMOVED] = "removed"
    };
    jout_open(j, NULL, '{');
    jout_str(j, "path", c->path);
    jout_str(j, "change", kinds[c->head.kind]);
    jout_str(j, "type", type_of(c->head.mode ? c->head.mode : c->head.mode_before));
    jout_uint(j, "size_bytes", c->head.size);
    jout_uint(j, "size_before_bytes", c->head.size_before);
    put_mode(j, "mode", c->head.mode);
    put_mode(j, "mode_before", c->head.mode_before);
    jout_time(j, "modified_at", c->head.mtime_ms);
    if (c->head.text != CHANGE_TEXT_NONE)
        put_text(j, c);
    jout_close(j, '}');
}

void native_put_changes(struct jout *j, const struct trace_changes *c)
{
    jout_uint(j, "added", c->added);
    jout_uint(j, "changed", c->changed);
    jout_uint(j, "removed", c->removed);
    jout_uint(j, "bytes", c->bytes);
    jout_bool(j, "more", c->cut || c->n < c->added + c->changed + c->removed);
    jout_open(j, "changes", '[');
    for (size_t i = 0; i < c->n; i++)
        put_change(j, &c->items[i]);
    jout_close(j, ']');
}

int native_sandbox_changes(struct request *req, struct err *err)
{
    static const char *const known[] = { "limit", NULL };
    _cleanup_(trace_changes_done) struct trace_changes c = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    uint64_t limit = CHANGES_LIMIT;
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 1, CHANGES_MAX, &limit, err);
    if (r >= 0)
        r = trace_changes(req->core, req->owner, req->args[0], limit, &c, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    jout_open(&j, NULL, '{');
    native_put_changes(&j, &c);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

/* ---- between two states ---- */

static void put_end(struct jout *j, const char *key, const struct compare_end *end)
{
    jout_open(j, key, '{');
    jout_str(j, end->sandbox ? "sandbox" : "checkpoint", end->id);
    jout_close(j, '}');
}

struct query {
    const char *to;
    const char *paths[URI_PARAMS_MAX];
    struct compare_ask ask;
};

static int read_query(struct request *req, struct query *q, struct err *err)
{
    static const char *const known[] = { "to", "path+", "text", "limit", NULL };
    uint64_t limit = CHANGES_LIMIT;
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 1, CHANGES_MAX, &limit, err);
    if (r >= 0)
        r = request_param_bool(req, "text", &q->ask.text, err);
    if (r < 0)
        return r;
    q->to = uri_param(&req->uri, "to");
    if (!q->to)
        return err_fail(err, FAIL_INVALID_QUERY, "'to' is needed: a checkpoint, or a sandbox");
    for (size_t i = 0; i < req->uri.nparams; i++)
        if (strcmp(req->uri.params[i].name, "path") == 0)
            q->paths[q->ask.n_paths++] = req->uri.params[i].value;
    q->ask.paths = q->paths;
    q->ask.max = limit;
    return 0;
}

int native_checkpoint_diff(struct request *req, struct err *err)
{
    _cleanup_(comparison_done) struct comparison c = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct query q = { 0 };
    int r = read_query(req, &q, err);
    if (r >= 0)
        r = compare(req->core, req->owner, req->args[0], q.to, &q.ask, &c, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    put_end(&j, "from", &c.from);
    put_end(&j, "to", &c.to);
    native_put_changes(&j, &c.changes);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

#include <errno.h>
#include <string.h>

#include "core/checkpoint.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/page.h"

void native_put_checkpoint(struct jout *j, const char *key, const struct checkpoint *c)
{
    jout_open(j, key, '{');
    jout_str(j, "id", c->id);
    jout_str(j, "sandbox", c->sandbox);
    jout_str(j, "parent", c->parent[0] ? c->parent : NULL);
    jout_str(j, "name", c->name[0] ? c->name : NULL);
    jout_str(j, "comment", c->comment);
    jout_str(j, "reason", c->reason);
    put_pairs(j, "metadata", &c->metadata);
    jout_uint(j, "disk_bytes", c->bytes);
    jout_bool(j, "memory", c->memory);
    jout_uint(j, "memory_bytes", c->memory_bytes);
    jout_time(j, "created_at", c->created_ms);
    jout_bool(j, "local", !c->away);
    jout_time(j, "archived_at", c->archived_ms);
    if (c->frozen_us)
        jout_thousandths(j, "frozen_ms", c->frozen_us);
    jout_close(j, '}');
}

int native_reply_checkpoint(struct request *req, unsigned status, const struct checkpoint *c)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    native_put_checkpoint(&j, NULL, c);
    return reply_json(req, status, &j);
}

struct ask {
    char *name, *comment, *checkpoint;
    struct pairs metadata;
    uint32_t count;
    bool memory, end;
};

static const struct field create_fields[] = {
    FIELD(struct ask, name, "name", as_text, .max = NAME_MAX_LEN),
    FIELD(struct ask, comment, "comment", as_text, .max = CHECKPOINT_COMMENT_MAX),
    FIELD(struct ask, metadata, "metadata", as_pairs),
    FIELD(struct ask, memory, "memory", as_bool),
};
static const struct field restore_fields[] = {
    FIELD(struct ask, checkpoint, "checkpoint", as_text, .max = 2 * NAME_MAX_LEN + 1), /* a:b */
    FIELD(struct ask, memory, "memory", as_bool),
};
static const struct field start_fields[] = {
    FIELD(struct ask, name, "name", as_text, .max = NAME_MAX_LEN),
    FIELD(struct ask, memory, "memory", as_bool),
};
static const struct field fork_fields[] = {
    FIELD(struct ask, count, "count", as_u32, .min = 1, .max = CHECKPOINT_FORKS_MAX),
    FIELD(struct ask, memory, "memory", as_bool),
};

static const struct field promote_fields[] = {
    FIELD(struct ask, end, "end", as_bool),
};

static void ask_done(struct ask *ask)
{
    free(ask->name);
    free(ask->comment);
    free(ask->checkpoint);
    pairs_done(&ask->metadata);
}

int native_checkpoint_create(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { 0 };
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    int r = request_fields(req, create_fields, ARRAY_LEN(create_fields), &ask, NULL, err);
    const struct checkpoint_ask how = { .name = ask.name,
                                        .comment = ask.comment,
                                        .reason = "asked",
                                        .metadata = &ask.metadata,
                                        .memory = ask.memory };
    if (r >= 0)
        r = checkpoint_create(req->core, req->owner, req->args[0], &how, &c, err);
    return r < 0 ? native_sandbox_error(req, r, err) : native_reply_checkpoint(req, 201, &c);
}

static int reply_list(struct request *req, const char *sandbox, struct err *err)
{
    _cleanup_(page_done) struct page page = { 0 };
    struct checkpoint *list = NULL;
    size_t n = 0;
    int r = page_read(req, NULL, &page, err);
    if (r >= 0)
        r = checkpoint_list(req->core, req->owner, sandbox, &list, &n, err);
    if (r < 0)
        return r;
    page_open(&page, "checkpoints");
    for (size_t i = 0; i < n; i++)
        if (page_takes_made(&page, list[i].created_ms, list[i].id))
            native_put_checkpoint(&page.json, NULL, &list[i]);
    checkpoint_list_free(list, n);
    return page_reply(req, &page);
}

int native_checkpoint_list(struct request *req, struct err *err)
{
    return reply_list(req, NULL, err);
}

/* Of one that is gone as well: its checkpoints outlive it. */
int native_sandbox_checkpoints(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r < 0 && !s.id[0])
        return r;
    return reply_list(req, s.id, err);
}

int native_checkpoint_get(struct request *req, struct err *err)
{
    static const char *const known[] = { "sandbox", NULL };
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    const char *of = uri_param(&req->uri, "sandbox");
    int r = request_params_known(req, known, err);
    if (r >= 0 && of && sandbox_get(req->core, req->owner, of, &s, err) < 0 && !s.id[0])
        return -err->code;
    if (r >= 0)
        r = checkpoint_get(req->core, req->owner, of ? s.id : NULL, req->args[0], &c, err);
    return r < 0 ? r : native_reply_checkpoint(req, 200, &c);
}

int native_checkpoint_delete(struct request *req, struct err *err)
{
    int r = checkpoint_remove(req->core, req->owner, NULL, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}

int native_sandbox_restore(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { .memory = true };
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = request_fields(req, restore_fields, ARRAY_LEN(restore_fields), &ask, NULL, err);
    if (r >= 0 && !ask.checkpoint)
        return err_fail(err, FAIL_MISSING_FIELD,
                        "'checkpoint' is needed: the id or name of one of its checkpoints");
    if (r >= 0)
        r = checkpoint_restore(req->core, req->owner, req->args[0], ask.checkpoint, ask.memory, &s,
                               err);
    return r < 0 ? native_sandbox_error(req, r, err) : native_reply_sandbox(req, 200, &s);
}

int native_checkpoint_start(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { .memory = true };
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = request_fields(req, start_fields, ARRAY_LEN(start_fields), &ask, NULL, err);
    if (r >= 0)
        r = checkpoint_start(req->core, req->owner, NULL, req->args[0], ask.name, ask.memory, &s,
                             err);
    return r < 0 ? r : native_reply_sandbox(req, 201, &s);
}

int native_sandbox_fork(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { .count = 1 };
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct sandbox *made = NULL;
    int r = request_fields(req, fork_fields, ARRAY_LEN(fork_fields), &ask, NULL, err);
    if (r >= 0)
        r = checkpoint_fork(req->core, req->owner, req->args[0], ask.count, ask.memory, &c, &made,
                            err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    jout_open(&j, NULL, '{');
    native_put_checkpoint(&j, "checkpoint", &c);
    jout_open(&j, "sandboxes", '[');
    for (uint32_t i = 0; i < ask.count; i++) {
        native_put_sandbox(&j, NULL, &made[i]);
        sandbox_done(&made[i]);
    }
    free(made);
    jout_close(&j, ']');
    jout_close(&j, '}');
    return reply_json(req, 201, &j);
}

int native_sandbox_promote(struct request *req, struct err *err)
{
    _cleanup_(promotion_done) struct promotion p = { 0 };
    _cleanup_(ask_done) struct ask ask = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    int r = request_fields(req, promote_fields, ARRAY_LEN(promote_fields), &ask, NULL, err);
    if (r >= 0)
        r = checkpoint_promote(req->core, req->owner, req->args[0], ask.end, &p, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    jout_open(&j, NULL, '{');
    native_put_sandbox(&j, "sandbox", &p.sandbox);
    native_put_checkpoint(&j, "checkpoint", &p.checkpoint);
    native_put_checkpoint(&j, "before", &p.before);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

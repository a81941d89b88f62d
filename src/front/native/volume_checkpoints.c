#include <errno.h>
#include <string.h>

#include "core/volume_checkpoint.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/page.h"

struct ask {
    char *name, *comment, *checkpoint;
    uint64_t size_bytes;
};

static const struct field create_fields[] = {
    FIELD(struct ask, name, "name", as_text, .max = NAME_MAX_LEN),
    FIELD(struct ask, comment, "comment", as_text, .max = VOLUME_COMMENT_MAX),
};
static const struct field restore_fields[] = {
    FIELD(struct ask, checkpoint, "checkpoint", as_text, .max = NAME_MAX_LEN),
};
static const struct field fork_fields[] = {
    FIELD(struct ask, name, "name", as_text, .max = NAME_MAX_LEN),
    FIELD(struct ask, size_bytes, "size_mb", as_mib, .min = VOLUME_SIZE_MB_MIN,
          .max = VOLUME_SIZE_MB_MAX),
};

static void ask_done(struct ask *ask)
{
    free(ask->name);
    free(ask->comment);
    free(ask->checkpoint);
}

static void put_checkpoint(struct jout *j, const struct volume_checkpoint *c)
{
    jout_open(j, NULL, '{');
    jout_str(j, "id", c->id);
    jout_str(j, "volume", c->volume);
    jout_str(j, "name", c->name[0] ? c->name : NULL);
    jout_str(j, "comment", c->comment);
    jout_uint(j, "disk_bytes", c->bytes);
    jout_time(j, "created_at", c->created_ms);
    if (c->frozen_us)
        jout_thousandths(j, "frozen_ms", c->frozen_us);
    jout_close(j, '}');
}

static int reply_checkpoint(struct request *req, unsigned status, const struct volume_checkpoint *c)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    put_checkpoint(&j, c);
    return reply_json(req, status, &j);
}

int native_volume_checkpoint_create(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { 0 };
    struct volume_checkpoint c;
    int r = request_fields(req, create_fields, ARRAY_LEN(create_fields), &ask, NULL, err);
    if (r >= 0)
        r = volume_checkpoint_create(req->core, req->owner, req->args[0], ask.name, ask.comment, &c,
                                     err);
    return r < 0 ? r : reply_checkpoint(req, 201, &c);
}

int native_volume_checkpoint_list(struct request *req, struct err *err)
{
    _cleanup_(page_done) struct page page = { 0 };
    _cleanup_free_ struct volume_checkpoint *list = NULL;
    size_t n = 0;
    int r = page_read(req, NULL, &page, err);
    if (r >= 0)
        r = volume_checkpoint_list(req->core, req->owner, req->args[0], &list, &n, err);
    if (r < 0)
        return r;
    page_open(&page, "checkpoints");
    for (size_t i = 0; i < n; i++)
        if (page_takes_made(&page, list[i].created_ms, list[i].id))
            put_checkpoint(&page.json, &list[i]);
    return page_reply(req, &page);
}

int native_volume_checkpoint_get(struct request *req, struct err *err)
{
    struct volume_checkpoint c;
    int r = volume_checkpoint_get(req->core, req->owner, req->args[0], req->args[1], &c, err);
    return r < 0 ? r : reply_checkpoint(req, 200, &c);
}

int native_volume_checkpoint_delete(struct request *req, struct err *err)
{
    int r = volume_checkpoint_remove(req->core, req->owner, req->args[0], req->args[1], err);
    return r < 0 ? r : reply_empty(req);
}

int native_volume_restore(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { 0 };
    struct volume v;
    int r = request_fields(req, restore_fields, ARRAY_LEN(restore_fields), &ask, NULL, err);
    if (r >= 0 && !ask.checkpoint)
        return err_fail(err, FAIL_MISSING_FIELD,
                        "'checkpoint' is needed: the id or name of one of the volume's");
    if (r >= 0)
        r = volume_checkpoint_restore(req->core, req->owner, req->args[0], ask.checkpoint, &v, err);
    return r < 0 ? r : native_reply_volume(req, 200, &v, err);
}

int native_volume_checkpoint_fork(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { 0 };
    struct volume v;
    int r = request_fields(req, fork_fields, ARRAY_LEN(fork_fields), &ask, NULL, err);
    if (r >= 0)
        r = volume_checkpoint_fork(req->core, req->owner, req->args[0], req->args[1], ask.name,
                                   ask.size_bytes, &v, err);
    return r < 0 ? r : native_reply_volume(req, 201, &v, err);
}

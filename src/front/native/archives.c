#include <errno.h>

#include "core/archive_job.h"
#include "front/http/fields.h"
#include "front/native/progress.h"

/* ---- progress, as lines ---- */

static void put_progress(struct jout *j, const struct archive_progress *p)
{
    jout_uint(j, "pieces", p->pieces);
    jout_uint(j, "pieces_moved", p->sent);
    jout_uint(j, "bytes_moved", p->moved_bytes);
}

static void put_event(struct jout *j, const struct archive_event *ev)
{
    jout_open(j, NULL, '{');
    switch (ev->type) {
    case ARCHIVE_PROGRESS:
        jout_str(j, "type", "progress");
        jout_str(j, "stage", ev->progress.stage);
        jout_uint(j, "bytes", ev->progress.bytes);
        jout_uint(j, "total", ev->progress.total);
        put_progress(j, &ev->progress);
        break;
    case ARCHIVE_DONE:
        jout_str(j, "type", ev->sandbox ? "sandbox" : "checkpoint");
        put_progress(j, &ev->progress);
        if (ev->sandbox)
            native_put_sandbox(j, "sandbox", ev->sandbox);
        else
            native_put_checkpoint(j, "checkpoint", ev->checkpoint);
        break;
    case ARCHIVE_FAILED:
        jout_str(j, "type", "error");
        jout_str(j, "code", failure_name(ev->err.failure));
        jout_str(j, "message", ev->err.msg);
        break;
    }
    jout_close(j, '}');
}

static int next_event(void *job, int wait_ms, struct jout *out, bool *ret_last, struct err *ret_err)
{
    struct archive_event ev;
    if (archive_job_next(job, wait_ms, &ev) == 0)
        return 0;
    put_event(out, &ev);
    *ret_last = ev.type != ARCHIVE_PROGRESS;
    if (ev.type == ARCHIVE_FAILED)
        *ret_err = ev.err;
    return 1;
}

static void free_job(void *job)
{
    archive_job_free(job);
}

static int reply_job(struct request *req, const struct archive_ask *ask, struct err *err)
{
    static const struct progress how = { next_event, free_job };
    struct archive_job *job = NULL;
    int r = archive_job_start(req->core, ask, &job, err);
    return r < 0 ? r : progress_reply(req, &how, job, err);
}

/* ---- requests ---- */

struct put_ask {
    bool keep_local;
};

static const struct field put_fields[] = {
    FIELD(struct put_ask, keep_local, "keep_local", as_bool),
};

int native_checkpoint_archive(struct request *req, struct err *err)
{
    struct put_ask ask = { .keep_local = true };
    int r = request_fields(req, put_fields, ARRAY_LEN(put_fields), &ask, NULL, err);
    const struct archive_ask how = { ARCHIVE_PUT, req->owner, req->args[0], ask.keep_local };
    return r < 0 ? r : reply_job(req, &how, err);
}

int native_checkpoint_fetch(struct request *req, struct err *err)
{
    const struct archive_ask how = { ARCHIVE_FETCH, req->owner, req->args[0], true };
    return reply_job(req, &how, err);
}

int native_checkpoint_unarchive(struct request *req, struct err *err)
{
    int r = archive_remove(req->core, req->owner, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}

int native_sandbox_archive(struct request *req, struct err *err)
{
    const struct archive_ask how = { ARCHIVE_SANDBOX, req->owner, req->args[0], false };
    return reply_job(req, &how, err);
}

int native_archive_list(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    _cleanup_free_ struct archive_entry *list = NULL;
    size_t n = 0;
    int r = archive_list(req->core, req->owner, &list, &n, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_str(&j, "storage", archive_where(req->core));
    jout_open(&j, "archives", '[');
    for (size_t i = 0; i < n; i++) {
        jout_open(&j, NULL, '{');
        jout_str(&j, "id", list[i].id);
        jout_time(&j, "archived_at", list[i].archived_ms);
        jout_bool(&j, "known", list[i].known);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int native_archive_import(struct request *req, struct err *err)
{
    const struct archive_ask how = { ARCHIVE_IMPORT, req->owner, req->args[0], true };
    return reply_job(req, &how, err);
}

int native_archive_collect(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct archive_collected got;
    if (!req->admin)
        return err_fail(err, FAIL_FORBIDDEN,
                        "only the operator clears the object storage; ask for an admin's key");
    int r = archive_collect(req->core, &got, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_uint(&j, "pieces", got.pieces);
    jout_uint(&j, "bytes", got.bytes);
    jout_bool(&j, "busy", got.busy);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

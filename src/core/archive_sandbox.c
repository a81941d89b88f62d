/* A sandbox whose files are elsewhere: stopped, and brought back by its next start. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/archive_private.h"
#include "core/checkpoints.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/life.h"
#include "core/pause.h"
#include "core/table.h"
#include "core/timers.h"

#define LOG_MODULE "archive"
#define REASON "archive"

/* What it is made from when it next runs. */
static const char *source_of(const struct sandbox_spec *spec)
{
    return spec->paused[0] ? spec->paused : spec->checkpoint;
}

/* Not if what it is to be made from is being removed. */
static int set_archived(struct core *core, struct box *b, bool archived, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct checkpoint *c = checkpoints_find_any(core, source_of(&b->s.spec));
    bool sound = !archived || (c && !c->going);
    if (sound)
        b->s.spec.archived = archived;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (!sound)
        return checkpoint_missing(err, source_of(&b->s.spec));
    int r = pause_record(core, b, err);
    if (r < 0) {
        (void)pthread_mutex_lock(&core->table.lock);
        b->s.spec.archived = !archived;
        (void)pthread_mutex_unlock(&core->table.lock);
    }
    return r;
}

/* Its files are those of a checkpoint that is in the object storage: the copy here may go, if nobody used it since. */
static int free_box(struct core *core, const char *owner, const char *id, const char *checkpoint,
                    struct sandbox *ret_s, struct err *err)
{
    struct box *b;
    int r = sandbox_hold(core, owner, id, NULL, &b, err);
    if (r < 0)
        return r;
    if ((b->s.state != SANDBOX_STOPPED && b->s.state != SANDBOX_PAUSED) ||
        strcmp(source_of(&b->s.spec), checkpoint) != 0)
        r = err_fail(err, FAIL_SANDBOX_BUSY,
                     "sandbox '%s' was used while it was archived: it stays here", id);
    if (r >= 0)
        r = set_archived(core, b, true, err);
    if (r >= 0 && keeper_ask_cell(core, KEEPER_DELETE, id, NULL) < 0)
        log_warn("an archived sandbox's files stay for now sandbox=%s",
                 id); /* until the next start */
    if (r >= 0) {
        (void)pthread_mutex_lock(&core->table.lock);
        r = sandbox_copy(&b->s, ret_s);
        (void)pthread_mutex_unlock(&core->table.lock);
    }
    box_release(core, b);
    return r;
}

/* What earlier archivings of it left: each is replaced by the next. */
static void drop_earlier(struct core *core, const char *owner, const char *sandbox, const char *but)
{
    struct checkpoint *list = NULL;
    size_t n = 0;
    if (checkpoint_list(core, owner, sandbox, &list, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].reason, REASON) == 0 && strcmp(list[i].id, but) != 0)
            (void)checkpoint_remove(core, owner, NULL, list[i].id, NULL);
    checkpoint_list_free(list, n);
}

/* From here on it is archived, if it is not used before that. */
static int put_away(struct core *core, const char *owner, const char *id, const char *checkpoint,
                    const struct archive_tell *tell, struct sandbox *ret_s, struct err *err)
{
    struct checkpoint put = { 0 };
    int r = archive_put(core, owner, checkpoint, true, tell, &put, err);
    if (r >= 0)
        r = free_box(core, owner, id, checkpoint, ret_s, err);
    checkpoint_done(&put);
    if (r < 0)
        return r;
    put = (struct checkpoint){ 0 };
    if (archive_put(core, owner, checkpoint, false, NULL, &put, NULL) < 0)
        log_warn("the files of an archived sandbox stay here sandbox=%s checkpoint=%s", id,
                 checkpoint);
    checkpoint_done(&put);
    event_emit(core, owner, id, "sandbox.archived", NULL);
    return 0;
}

static int archive_stopped(struct core *core, const char *owner, const char *id,
                           const struct archive_tell *tell, struct sandbox *ret_s, struct err *err)
{
    static const struct checkpoint_ask ask = { .reason = REASON, .leaving = true };
    _cleanup_(checkpoint_done) struct checkpoint made = { 0 };
    int r = checkpoint_create(core, owner, id, &ask, &made, err);
    if (r < 0)
        return r;
    r = put_away(core, owner, id, made.id, tell, ret_s, err);
    if (r < 0) /* as if nobody had asked */
        (void)checkpoint_remove(core, owner, NULL, made.id, NULL);
    else
        drop_earlier(core, owner, id, made.id);
    return r;
}

int archive_sandbox(struct core *core, const char *owner, const char *who,
                    const struct archive_tell *tell, struct sandbox *ret_s, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_get(core, owner, who, &s, err);
    if (r < 0)
        return r;
    if (!archive_ready(core))
        return err_fail(err, FAIL_ARCHIVE_UNAVAILABLE,
                        "this daemon has no object storage: start it with --archive");
    if (s.state != SANDBOX_PAUSED) {
        sandbox_done(&s);
        s = (struct sandbox){ 0 };
        r = sandbox_stop_if(core, owner, who, NULL, &s, err);
    }
    if (r < 0)
        return r;
    if (s.spec.archived)
        return sandbox_get(core, owner, s.id, ret_s, err);
    if (s.state == SANDBOX_PAUSED) /* what it is resumed from is a checkpoint already */
        return put_away(core, owner, s.id, s.spec.paused, tell, ret_s, err);
    return archive_stopped(core, owner, s.id, tell, ret_s, err);
}

/* Not pinned any longer than this: who resumes one removes the checkpoint in the end. */
int archives_wake(struct core *core, struct box *b, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    struct archive_busy *pin = NULL;
    const char *from = source_of(&b->s.spec);
    if (!b->s.spec.archived && !b->s.spec.paused[0])
        return 0;
    int r = checkpoint_get(core, b->s.owner, NULL, from, &c, err);
    if (r >= 0)
        r = checkpoints_pin(core, &c, &pin, err);
    if (r >= 0 && b->s.spec.archived)
        r = checkpoints_fill(core, b->s.id, c.id, b->s.spec.disk_bytes, err);
    checkpoints_unpin(core, pin);
    return r < 0 || !b->s.spec.archived ? r : set_archived(core, b, false, err);
}

bool archives_needs(const struct sandbox *s, const char *checkpoint)
{
    return s->spec.archived && strcmp(source_of(&s->spec), checkpoint) == 0;
}

/* Whose it is, if there is any. */
static bool left_by(struct core *core, const char *sandbox, char owner[OWNER_MAX])
{
    bool any = false;
    (void)pthread_mutex_lock(&core->table.lock);
    for (size_t i = 0; i < core->checkpoints.n && !any; i++) {
        const struct checkpoint *c = &core->checkpoints.items[i];
        any = strcmp(c->sandbox, sandbox) == 0 && strcmp(c->reason, REASON) == 0;
        if (any)
            memcpy(owner, c->owner, OWNER_MAX);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    return any;
}

void archives_drop_later(struct core *core, const char *sandbox)
{
    char owner[OWNER_MAX];
    if (left_by(core, sandbox, owner))
        (void)jobs_add(core, JOB_UNARCHIVE, sandbox, 0);
}

void archives_drop_of(struct core *core, const char *sandbox)
{
    char owner[OWNER_MAX];
    if (left_by(core, sandbox, owner))
        drop_earlier(core, owner, sandbox, "");
}

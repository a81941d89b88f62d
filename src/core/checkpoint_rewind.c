/* Back to a checkpoint with its processes. They may turn out not to come back (another kernel, a damaged disk),
 * and that shows only when the files are in place: so what there was is kept until they run. A crash on the way
 * leaves the sandbox paused at the checkpoint; what was kept is nobody's then, and goes at the next start. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/checkpoints.h"
#include "core/keeper.h"
#include "core/life.h"
#include "core/pause.h"
#include "core/row.h"

#define LOG_MODULE "checkpoint"

struct former {
    enum sandbox_state state; /* stopped or paused */
    char paused[ID_SIZE], checkpoint[ID_SIZE];
    bool archived, ran;
    char kept[ID_SIZE]; /* a point without a row: its files; "": they lie elsewhere too */
};

/* One that is stopped has its files in one place only. */
static int keep_files(struct core *core, const struct box *b, struct former *f, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_POINT_PUT };
    if (f->state == SANDBOX_PAUSED || f->archived)
        return 0;
    int r = id_random(q.point);
    if (r < 0)
        return err_set(err, -r, "cannot make an id");
    memcpy(q.id, b->s.id, sizeof(q.id));
    r = keeper_ask(core, &q, NULL, err);
    if (r >= 0)
        memcpy(f->kept, q.point, ID_SIZE);
    else
        (void)checkpoints_forget(core, q.point, NULL);
    return r;
}

static struct former former_of(const struct box *b, bool ran)
{
    struct former f = { .state = b->s.state, .archived = b->s.spec.archived, .ran = ran };
    memcpy(f.paused, b->s.spec.paused, ID_SIZE);
    memcpy(f.checkpoint, b->s.spec.checkpoint, ID_SIZE);
    return f;
}

/* Nothing of it runs, and its files are those it had, or will be before it runs. */
static int go_back(struct core *core, struct box *b, const struct former *f, struct err *err)
{
    int r = keeper_ask_cell(core, KEEPER_STOP, b->s.id, err);
    if (r == -ENOENT)
        r = 0;
    if (r >= 0 && f->kept[0])
        r = checkpoints_fill(core, b->s.id, f->kept, b->s.spec.disk_bytes, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    b->s.state = f->state;
    memcpy(b->s.spec.paused, f->paused, ID_SIZE);
    memcpy(b->s.spec.checkpoint, f->checkpoint, ID_SIZE);
    b->s.spec.archived = f->archived;
    b->unsure = f->state == SANDBOX_PAUSED && !f->archived;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (pause_record(core, b, err) < 0)
        log_warn("state not recorded sandbox=%s err=\"%s\"", b->s.id, err->msg);
    return 0;
}

/* What was kept of one that cannot go back now is a checkpoint like any other from here on: its owner may. */
static void stay(struct core *core, struct box *b, struct former *f, const char *why)
{
    static const struct checkpoint_ask ask = { .reason = "restore",
                                               .comment = "before a restore that failed" };
    struct err err = ERR_INIT;
    log_warn("stays paused at the checkpoint sandbox=%s kept=%s err=\"%s\"", b->s.id, f->kept, why);
    if (f->kept[0] && checkpoints_note(core, b, &ask, f->kept, &err) < 0)
        log_error("what it had is lost at the next start kept=%s err=\"%s\"", f->kept, err.msg);
    f->kept[0] = '\0';
}

static void undo(struct core *core, struct box *b, struct former *f)
{
    struct err err = ERR_INIT;
    if (go_back(core, b, f, &err) < 0) {
        stay(core, b, f, err.msg);
        return;
    }
    if (f->ran && sandbox_start_held(core, b, &err) < 0)
        log_warn("not started again after a failure sandbox=%s err=\"%s\"", b->s.id, err.msg);
}

int checkpoints_rewind(struct core *core, struct box *b, const struct checkpoint *c,
                       struct err *err)
{
    bool ran = b->s.state == SANDBOX_RUNNING;
    int r = ran ? life_stop(core, b, CAUSE_STOPPED, err) : 0;
    if (r < 0)
        return r;
    struct former f = former_of(b, ran);
    r = keep_files(core, b, &f, err);
    if (r >= 0)
        r = pause_become(core, b, c->id, err);
    if (r >= 0)
        r = sandbox_start_held(core, b, err);
    if (r < 0)
        undo(core, b, &f);
    else if (f.paused[0] && strcmp(f.paused, c->id) != 0)
        pause_forget(core, b->s.owner, f.paused);
    if (f.kept[0])
        (void)checkpoints_forget(core, f.kept, NULL); /* at the next start it is nobody's */
    return r;
}

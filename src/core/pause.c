#include "core/absence.h"
#include "core/pause.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/checkpoints.h"
#include "core/count.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/life.h"
#include "core/row.h"
#include "core/spec.h"
#include "core/timers.h"

#define LOG_MODULE "pause"

static void tell(struct core *core, const struct sandbox *s, const char *type)
{
    char data[64];
    int n = snprintf(data, sizeof(data), "{\"cause\":\"%s\"}", sandbox_cause_name(s->cause));
    event_emit(core, s->owner, s->id, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
}

/* The record of a held box, spec and all. */
static int save(struct core *core, const struct box *b, struct err *err)
{
    return row_save(core, &b->s, b->tree, err);
}

/* A state that matters more than its record. */
static void save_or_warn(struct core *core, const struct box *b)
{
    struct err err = ERR_INIT;
    if (save(core, b, &err) < 0)
        log_warn("state not recorded sandbox=%s state=%s err=\"%s\"", b->s.id,
                 sandbox_state_name(b->s.state), err.msg);
}

static void become(struct core *core, struct box *b, enum sandbox_state state,
                   enum sandbox_cause cause, const char *paused)
{
    (void)pthread_mutex_lock(&core->table.lock);
    b->s.state = state;
    b->s.cause = cause;
    (void)snprintf(b->s.spec.paused, sizeof(b->s.spec.paused), "%s", paused);
    (void)pthread_mutex_unlock(&core->table.lock);
}

void pause_forget(struct core *core, const char *owner, const char *checkpoint)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct checkpoint *c = checkpoints_find(core, owner, NULL, checkpoint);
    bool ours = c && strcmp(c->reason, PAUSE_REASON) == 0;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (ours)
        checkpoints_shed(core, checkpoint);
}

/* With the table's lock held. */
static bool is_resumed_from(struct core *core, const char *checkpoint)
{
    for (size_t i = 0; i < core->table.n; i++)
        if (strcmp(core->table.sorted[i]->s.spec.paused, checkpoint) == 0)
            return true;
    return false;
}

bool pauses_need(struct core *core, const char *checkpoint)
{
    (void)pthread_mutex_lock(&core->table.lock);
    bool needed = is_resumed_from(core, checkpoint);
    (void)pthread_mutex_unlock(&core->table.lock);
    return needed;
}

void pauses_find_orphans(struct core *core)
{
    struct checkpoints *cs = &core->checkpoints;
    for (size_t i = 0; i < cs->n; i++)
        cs->items[i].orphan = strcmp(cs->items[i].reason, PAUSE_REASON) == 0 &&
                              cs->items[i].memory && /* else it was imported, long ago */
                              !is_resumed_from(core, cs->items[i].id);
}

void pauses_drop_orphans(struct core *core)
{
    struct checkpoints *cs = &core->checkpoints;
    char id[ID_SIZE] = "";
    for (size_t at = 0;;) {
        (void)pthread_mutex_lock(&core->table.lock);
        /* One that cannot be removed now is still where it was. */
        while (at < cs->n && (!cs->items[at].orphan || strcmp(cs->items[at].id, id) == 0))
            at++;
        bool found = at < cs->n;
        if (found)
            memcpy(id, cs->items[at].id, ID_SIZE);
        (void)pthread_mutex_unlock(&core->table.lock);
        if (!found)
            return;
        checkpoints_shed(core, id);
    }
}

/* ---- putting away ---- */

/* What is so at the keeper, whatever became of its answer. */
struct facts {
    bool alive, kept;
};

static int find_row(struct core *core, enum keeper_op op, const char *id, bool *ret_found,
                    bool *ret_running, struct err *err)
{
    _cleanup_free_ struct keeper_row *rows = NULL;
    size_t n = 0;
    int r = keeper_ask_list(core, op, &rows, &n, err);
    if (r < 0)
        return r;
    keeper_rows_sort(rows, n);
    const struct keeper_row *row = keeper_rows_find(rows, n, id);
    *ret_found = row;
    *ret_running = row && row->running;
    return 0;
}

static int look(struct core *core, const struct box *b, struct facts *ret_facts, struct err *err)
{
    bool found, running;
    int r = find_row(core, KEEPER_LIST, b->s.id, &found, &ret_facts->alive, err);
    return r < 0 ? r
                 : find_row(core, KEEPER_POINT_LIST, b->s.spec.paused, &ret_facts->kept, &running,
                            err);
}

/* Its processes are on disk, and nothing of it runs. */
static void now_paused(struct core *core, struct box *b, const struct keeper_usage *last)
{
    networks_detach(core, b->s.id);
    (void)pthread_mutex_lock(&core->table.lock);
    usage_ended(core, b, last, false);
    b->s.state = SANDBOX_PAUSED;
    b->s.stopped_ms = clock_now_ms();
    b->retry_ms = 0;
    /* As with a stop: one that somebody asked for parks it, an end that deletes stays where it is. */
    if (b->s.cause == CAUSE_STOPPED || b->s.spec.on_timeout != END_DELETE)
        b->s.expires_ms = 0;
    struct sandbox s = b->s;
    (void)pthread_mutex_unlock(&core->table.lock);
    struct err err = ERR_INIT;
    if (usage_flush(core, &err) < 0)
        log_warn("usage is recorded later sandbox=%s err=\"%s\"", s.id, err.msg);
    save_or_warn(core, b);
    tell(core, &s, "sandbox.paused");
    log_info("paused sandbox=%s cause=%s", s.id, sandbox_cause_name(s.cause));
}

static void runs_on(struct core *core, struct box *b)
{
    char point[ID_SIZE];
    memcpy(point, b->s.spec.paused, ID_SIZE);
    become(core, b, SANDBOX_RUNNING, CAUSE_NONE, "");
    b->retry_ms = 0;
    save_or_warn(core, b);
    (void)checkpoints_forget(core, point, NULL); /* at the next start they are nobody's */
    timers_changed(core);
}

static void try_later(struct core *core, struct box *b)
{
    (void)pthread_mutex_lock(&core->table.lock);
    b->retry_ms = clock_now_ms() + LIFE_RETRY_MS;
    (void)pthread_mutex_unlock(&core->table.lock);
    timers_changed(core);
}

/* The keeper refused, or its answer was lost with it: `why` says which. */
static int failed(struct core *core, struct box *b, int why, const struct checkpoint_ask *ask,
                  struct err *err)
{
    struct facts f = { false, false };
    bool busy = err && err->failure == FAIL_SANDBOX_BUSY;
    if (busy || look(core, b, &f, NULL) < 0) {
        try_later(core, b);
        return why;
    }
    if (f.alive) {
        runs_on(core, b);
        return why;
    }
    static const struct keeper_usage unknown = { 0 };
    if (f.kept) {
        int r = checkpoints_note(core, b, ask, b->s.spec.paused, err);
        if (r >= 0)
            now_paused(core, b, &unknown);
        else
            try_later(core, b);
        return r;
    }
    become(core, b, SANDBOX_RUNNING, CAUSE_NONE, "");
    (void)life_stop(core, b, absence_cause(core, &b->s), NULL);
    return why;
}

int pause_settle(struct core *core, struct box *b, struct err *err)
{
    static const struct checkpoint_ask ask = { .reason = PAUSE_REASON,
                                               .memory = true,
                                               .end = true };
    struct err why = ERR_INIT;
    struct keeper_usage last = { 0 };
    int r = checkpoints_take(core, b, &ask, b->s.spec.paused, &last, &why);
    if (r < 0) {
        r = failed(core, b, r, &ask, &why);
        if (r < 0 && err)
            *err = why;
        return r;
    }
    now_paused(core, b, &last);
    return 0;
}

int pause_held(struct core *core, struct box *b, enum sandbox_cause cause, struct err *err)
{
    char id[ID_SIZE];
    int r = id_random(id);
    if (r < 0) {
        become(core, b, SANDBOX_RUNNING, CAUSE_NONE, ""); /* who asked may have said more already */
        return err_set(err, -r, "cannot make an id");
    }
    become(core, b, SANDBOX_PAUSING, cause, id);
    r = save(core, b, err);
    if (r < 0) {
        become(core, b, SANDBOX_RUNNING, CAUSE_NONE, "");
        return r;
    }
    (void)frost_lift(core, b->s.id, NULL); /* what is put away is not frozen when it comes back */
    return pause_settle(core, b, err);
}

/* ---- bringing back ---- */

int pause_files(struct core *core, struct box *b, struct err *err)
{
    if (!b->unsure)
        return 0;
    int r = keeper_ask_cell(core, KEEPER_STOP, b->s.id, err);
    if (r >= 0 || r == -ENOENT)
        r = checkpoints_fill(core, b->s.id, b->s.spec.paused, b->s.spec.disk_bytes, err);
    if (r >= 0)
        b->unsure = false;
    return r;
}

static void now_resumed(struct core *core, struct box *b)
{
    char point[ID_SIZE];
    struct err err = ERR_INIT;
    (void)pthread_mutex_lock(&core->table.lock);
    memcpy(point, b->s.spec.paused, ID_SIZE);
    b->s.spec.paused[0] = '\0';
    b->unsure = false;
    life_running(core, b, clock_now_ms());
    usage_begun(core, b, b->s.started_ms, 0);
    (void)pthread_mutex_unlock(&core->table.lock);
    /* Recorded before anybody outside can learn of what it does: it goes on from here, whatever
     * happens, and never again from what was put away. */
    save_or_warn(core, b);
    if (networks_attach(core, &b->s, &err) < 0)
        log_warn("resumed without a network sandbox=%s err=\"%s\"", b->s.id, err.msg);
    timers_changed(core);
    event_emit(core, b->s.owner, b->s.id, "sandbox.resumed", NULL);
    log_info("resumed sandbox=%s", b->s.id);
    pause_forget(core, b->s.owner, point);
}

int resume_held(struct core *core, struct box *b, struct err *err)
{
    struct sandbox begun = b->s;
    int r = pause_files(core, b, err);
    begun.state =
        SANDBOX_RESUMING; /* in the record only: to all others it is paused until it runs */
    if (r >= 0)
        r = row_mark(core, &begun, err);
    if (r < 0)
        return r;
    b->unsure = true;
    r = keeper_ask_make_sandbox(core, &b->s, b->tree, b->s.spec.paused, err);
    if (r >= 0)
        r = volumes_attach(core, b->s.id, &b->s.spec, err);
    if (r >= 0) {
        now_resumed(core, b);
        return 0;
    }
    if (pause_files(core, b, NULL) >= 0)
        save_or_warn(core, b); /* paused, as before */
    return r;
}

int resume_settle(struct core *core, struct box *b, bool alive, struct err *err)
{
    b->s.state = SANDBOX_PAUSED;
    b->unsure = true;
    /* What was cut may be its very last step, in which its limits are set; without them it does not run. */
    struct keeper_limits limits = spec_limits(&b->s.spec);
    if (alive && keeper_ask_limits(core, b->s.id, &limits, NULL) >= 0) {
        now_resumed(core, b);
        return 0;
    }
    int r = pause_files(core, b, err);
    if (r >= 0)
        save_or_warn(core, b);
    return r;
}

/* ---- otherwise ---- */

/* A power cut can cost what it was to go on from, where the record that it did so is lost too. What it has are then all
 * the files there are. */
static bool is_lost(const struct box *b, int r, const struct err *err)
{
    bool lost = r == -ENOENT && err->failure == FAIL_CHECKPOINT_NOT_FOUND;
    if (lost)
        log_warn("what it was paused with is not here; its files are sandbox=%s", b->s.id);
    return lost;
}

int pause_stop(struct core *core, struct box *b, enum sandbox_cause cause, struct err *err)
{
    char point[ID_SIZE];
    struct err why = ERR_INIT;
    int r = b->s.spec.archived ? archives_wake(core, b, &why) : pause_files(core, b, &why);
    if (r < 0 && (b->s.spec.archived || !is_lost(b, r, &why))) {
        if (err)
            *err = why;
        return r;
    }
    memcpy(point, b->s.spec.paused, ID_SIZE);
    become(core, b, SANDBOX_STOPPED, cause, "");
    r = save(core, b, err);
    if (r < 0) {
        become(core, b, SANDBOX_PAUSED, cause, point);
        return r;
    }
    b->unsure = false;
    pause_forget(core, b->s.owner, point);
    tell(core, &b->s, "sandbox.stopped");
    return 0;
}

/* The files are a checkpoint's by now; the record does not say so yet. */
static int replaced(struct core *core, struct box *b, const char *checkpoint, struct err *err)
{
    const struct sandbox before = b->s; /* the spec's texts are still b's */
    (void)pthread_mutex_lock(&core->table.lock);
    b->s.state = SANDBOX_STOPPED;
    b->s.cause = CAUSE_STOPPED;
    b->s.spec.paused[0] = '\0';
    b->s.spec.archived = false;
    memcpy(b->s.spec.checkpoint, checkpoint, ID_SIZE);
    (void)pthread_mutex_unlock(&core->table.lock);
    int r = save(core, b, err);
    if (r >= 0)
        return 0;
    (void)pthread_mutex_lock(&core->table.lock);
    b->s = before;
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

int pause_replace(struct core *core, struct box *b, const char *checkpoint, struct err *err)
{
    char point[ID_SIZE];
    int r = 0;
    memcpy(point, b->s.spec.paused, ID_SIZE);
    if (!b->s.spec.archived) { /* else its files are elsewhere anyway */
        b->unsure = true;
        r = pause_record(core, b, err);
    }
    if (r >= 0)
        r = checkpoints_fill(core, b->s.id, checkpoint, b->s.spec.disk_bytes, err);
    if (r >= 0)
        r = replaced(core, b, checkpoint, err);
    if (r < 0) {
        if (pause_files(core, b, NULL) >= 0)
            save_or_warn(core, b); /* paused, as before */
        return r;
    }
    b->unsure = false;
    if (strcmp(point, checkpoint) !=
        0) /* else who restores it has it pinned, and forgets it later */
        pause_forget(core, b->s.owner, point);
    tell(core, &b->s, "sandbox.stopped");
    return 0;
}

int pause_record(struct core *core, struct box *b, struct err *err)
{
    struct sandbox s = b->s;
    if (b->unsure && s.state == SANDBOX_PAUSED)
        s.state = SANDBOX_RESUMING; /* whoever reads it puts its files in place first */
    return row_save(core, &s, b->tree, err);
}

int pause_become(struct core *core, struct box *b, const char *checkpoint, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct checkpoint *c = checkpoints_find_any(core, checkpoint);
    bool there = c && !c->going;
    if (there) { /* and from here on it stays */
        b->s.state = SANDBOX_PAUSED;
        memcpy(b->s.spec.paused, checkpoint, ID_SIZE);
        memcpy(b->s.spec.checkpoint, checkpoint, ID_SIZE);
        b->unsure = true;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    return there ? pause_record(core, b, err) : checkpoint_missing(err, checkpoint);
}

int sandbox_pause_if(struct core *core, const char *owner, const char *who, const char *versions,
                     struct sandbox *ret_s, struct err *err)
{
    struct box *b;
    int r = sandbox_hold(core, owner, who, versions, &b, err);
    if (r < 0)
        return r;
    if (b->s.state == SANDBOX_RUNNING)
        r = pause_held(core, b, CAUSE_STOPPED, err);
    else if (b->s.state == SANDBOX_PAUSING)
        r = pause_settle(core, b, err); /* the next try of one that was cut */
    else if (b->s.state != SANDBOX_PAUSED)
        r = err_fail(err, FAIL_SANDBOX_NOT_RUNNING, "sandbox '%.64s' is %s", who,
                     sandbox_state_name(b->s.state));
    return box_release_copy(core, b, r, ret_s, err);
}

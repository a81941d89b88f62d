#include "core/sandbox.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/ending.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/life.h"
#include "core/pause.h"
#include "core/row.h"
#include "core/version.h"

#define HOLD_MS 10000        /* another operation on the same sandbox: longer than any stop */
#define DELETE_HOLD_MS 2500  /* a delete waits so long for another operation */
#define KILLED_HOLD_MS 6500  /* and so long once it has killed the sandbox */
#define INSIDE_MAX 256       /* operations at once, as many as an init serves */
#define ACTIVE_SAVE_MS 60000 /* how old the database's last_active_ms may be */

/* ---- reading ---- */

int sandbox_get(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                struct err *err)
{
    struct table *t = &core->table;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, owner, who);
    int r = b ? sandbox_copy(&b->s, ret_s) : -ENOENT;
    (void)pthread_mutex_unlock(&t->lock);
    if (r == -ENOENT)
        return row_missing(core, owner, who, ret_s, err);
    return r < 0 ? err_set(err, -r, "cannot copy a sandbox") : 0;
}

static int not_running(struct err *err, const char *who, enum sandbox_state state)
{
    return err_fail(err, FAIL_SANDBOX_NOT_RUNNING, "sandbox '%.64s' is %s%s", who,
                    sandbox_state_name(state),
                    state == SANDBOX_STOPPED  ? "; `warren start` runs it again"
                    : state == SANDBOX_PAUSED ? "; `warren resume` goes on with it"
                                              : "");
}

int sandbox_enter_awake(struct core *core, const char *owner, const char *who,
                        struct sandbox *ret_s, struct err *err)
{
    struct table *t = &core->table;
    enum sandbox_state state = SANDBOX_GONE;
    int64_t now = clock_now_ms();
    int r = -ENOENT;
    bool frozen = false;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, owner, who);
    if (b) {
        state = b->s.state;
        r = state != SANDBOX_RUNNING  ? -ESRCH
            : b->inside >= INSIDE_MAX ? -EBUSY
                                      : sandbox_copy(&b->s, ret_s);
    }
    if (r >= 0) {
        b->inside++;
        b->s.last_active_ms = ret_s->last_active_ms = now;
        frozen = b->frost != FROST_NONE; /* and nobody sets it while one is inside */
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (frozen) {
        r = frost_lift(core, ret_s->id, err);
        ret_s->frozen_ms = 0;
        if (r < 0) {
            sandbox_leave(core, ret_s->id);
            sandbox_done(ret_s);
            return r;
        }
    }
    if (r == -ENOENT)
        return row_missing(core, owner, who, NULL, err);
    if (r == -ESRCH)
        return not_running(err, who, state);
    if (r == -EBUSY)
        return err_fail(err, FAIL_SANDBOX_BUSY,
                        "sandbox '%.64s' has %d operations under way; wait for one to end", who,
                        INSIDE_MAX);
    return r < 0 ? err_set(err, -r, "cannot copy a sandbox") : 0;
}

void sandbox_leave(struct core *core, const char *id)
{
    struct table *t = &core->table;
    int64_t now = clock_now_ms();
    bool save = false;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, NULL, id);
    if (b && b->inside > 0) {
        b->inside--;
        b->s.last_active_ms = now;
        save = now - b->saved_active_ms >= ACTIVE_SAVE_MS;
        if (save)
            b->saved_active_ms = now;
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (save)
        (void)store_sandbox_active(core->store, id, now, NULL);
}

int sandbox_usage(struct core *core, const char *owner, const char *who,
                  struct sandbox_usage *ret_usage, struct err *err)
{
    struct keeper_usage u;
    struct table *t = &core->table;
    char id[ID_SIZE] = "";
    enum sandbox_state state = SANDBOX_GONE;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, owner, who);
    if (b) {
        memcpy(id, b->s.id, ID_SIZE);
        state = b->s.state;
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (!id[0])
        return row_missing(core, owner, who, NULL, err);
    if (state != SANDBOX_RUNNING && state != SANDBOX_STOPPED && state != SANDBOX_PAUSED)
        return not_running(err, who, state);
    int r = keeper_ask_stat(core, id, &u, err);
    if (r >= 0)
        *ret_usage = (struct sandbox_usage){ u.cpu_us,     u.memory_bytes, u.memory_peak_bytes,
                                             u.disk_bytes, u.oom_kills,    u.pids };
    /* The keeper knows no more of a stopped one than it must; that is not the caller's fault. */
    return r == -ENOENT ? not_running(err, who, state) : r;
}

void sandbox_note_oom(struct core *core, const char *id)
{
    struct table *t = &core->table;
    char owner[OWNER_MAX] = "";
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, NULL, id);
    if (b)
        memcpy(owner, b->s.owner, sizeof(owner));
    (void)pthread_mutex_unlock(&t->lock);
    if (!b)
        return;
    atomic_fetch_add(&core->ooms, 1);
    event_emit(core, owner, id, "sandbox.oom", NULL);
}

/* ---- changing ---- */

static int hold(struct core *core, const char *owner, const char *who, int wait_ms,
                struct box **ret_b, struct err *err)
{
    int r = box_hold(core, owner, who, wait_ms, ret_b);
    if (r == -ENOENT)
        return row_missing(core, owner, who, NULL, err);
    if (r == -EBUSY)
        return err_fail(err, FAIL_SANDBOX_BUSY,
                        "sandbox '%.64s' is still busy with another operation; try again", who);
    return r < 0 ? err_set(err, -r, "cannot hold sandbox '%.64s'", who) : 0;
}

static int deleting(struct err *err, const char *who)
{
    return err_fail(err, FAIL_SANDBOX_BUSY, "sandbox '%.64s' is being deleted", who);
}

int sandbox_hold(struct core *core, const char *owner, const char *who, const char *versions,
                 struct box **ret_b, struct err *err)
{
    int r = hold(core, owner, who, HOLD_MS, ret_b, err);
    if (r < 0)
        return r;
    r = version_check(core, *ret_b, versions, err);
    if (r >= 0 && (*ret_b)->s.state == SANDBOX_DELETING)
        r = deleting(err, who);
    if (r < 0)
        box_release(core, *ret_b);
    return r;
}

int sandbox_hold_settled(struct core *core, const char *owner, const char *who, struct box **ret_b,
                         struct err *err)
{
    int r = hold(core, owner, who, HOLD_MS, ret_b, err);
    if (r < 0)
        return r;
    enum sandbox_state state = (*ret_b)->s.state;
    if (state == SANDBOX_RUNNING || state == SANDBOX_STOPPED || state == SANDBOX_PAUSED)
        return 0;
    box_release(core, *ret_b);
    return err_fail(err, FAIL_SANDBOX_BUSY, "sandbox '%.64s' is %s", who,
                    sandbox_state_name(state));
}

/* A pause that was cut, and would be gone on with later, is gone on with now: it is paused then, or runs. */
static int hold_past_pause(struct core *core, const char *owner, const char *who,
                           const char *versions, struct box **ret_b, struct err *err)
{
    struct err why = ERR_INIT;
    int r = sandbox_hold(core, owner, who, versions, ret_b, err);
    if (r < 0 || (*ret_b)->s.state != SANDBOX_PAUSING)
        return r;
    r = pause_settle(core, *ret_b, &why);
    if (r >= 0 || (*ret_b)->s.state != SANDBOX_PAUSING)
        return 0;
    box_release(core, *ret_b);
    *err = why;
    return r;
}

int sandbox_stop_if(struct core *core, const char *owner, const char *who, const char *versions,
                    struct sandbox *ret_s, struct err *err)
{
    struct box *b;
    int r = hold_past_pause(core, owner, who, versions, &b, err);
    if (r < 0)
        return r;
    if (b->s.state == SANDBOX_RUNNING)
        r = ending_run(core, b, END_STOP, CAUSE_STOPPED, err);
    else if (b->s.state == SANDBOX_PAUSED)
        r = pause_stop(core, b, CAUSE_STOPPED, err);
    return box_release_copy(core, b, r, ret_s, err);
}

int sandbox_start_held(struct core *core, struct box *b, struct err *err)
{
    bool paused = b->s.state == SANDBOX_PAUSED;
    int r = box_starting(core, b, err);
    if (r < 0)
        return r;
    r = archives_wake(core, b, err);
    if (r >= 0)
        r = paused ? resume_held(core, b, err) : life_start(core, b, err);
    box_started(core, b);
    return r < 0 || paused
               ? r
               : sandbox_boot(core, b, err); /* one that does not get ready runs nevertheless */
}

int sandbox_start_if(struct core *core, const char *owner, const char *who, const char *versions,
                     struct sandbox *ret_s, struct err *err)
{
    struct box *b;
    int r = hold_past_pause(core, owner, who, versions, &b, err);
    if (r < 0)
        return r;
    if (b->s.state == SANDBOX_STOPPED || b->s.state == SANDBOX_PAUSED)
        r = sandbox_start_held(core, b, err);
    return box_release_copy(core, b, r, ret_s, err);
}

int sandbox_resume(struct core *core, const char *owner, const char *who, bool memory,
                   struct sandbox *ret_s, struct err *err)
{
    struct box *b;
    int r = hold_past_pause(core, owner, who, NULL, &b, err);
    if (r < 0)
        return r;
    if (b->s.state == SANDBOX_PAUSED && !memory)
        r = pause_stop(core, b, CAUSE_STOPPED, err);
    if (r >= 0 && (b->s.state == SANDBOX_STOPPED || b->s.state == SANDBOX_PAUSED))
        r = sandbox_start_held(core, b, err);
    return box_release_copy(core, b, r, ret_s, err);
}

/* Hold a sandbox to delete it. Another operation may have no end of its own: a checkpoint lasts
 * until the processes inside stand still, a start as long as its probe. So kill the sandbox, and
 * the operation fails soon. */
static int hold_to_delete(struct core *core, const char *owner, const char *who,
                          const char *versions, struct box **ret_b, struct err *err)
{
    char id[ID_SIZE] = "";
    int r = hold(core, owner, who, DELETE_HOLD_MS, ret_b, err);
    if (r != -EBUSY)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    const struct box *b = box_find(&core->table, owner, who);
    if (b)
        memcpy(id, b->s.id, ID_SIZE);
    (void)pthread_mutex_unlock(&core->table.lock);
    /* A conditional delete does not kill: the other operation may change the version it asks
     * for. */
    if (id[0] && !versions)
        (void)keeper_ask_cell(core, KEEPER_STOP, id, NULL);
    *err = (struct err)ERR_INIT;
    return hold(core, owner, who, KILLED_HOLD_MS, ret_b, err);
}

int sandbox_delete_if(struct core *core, const char *owner, const char *who, const char *versions,
                      struct err *err)
{
    struct box *b;
    int r = hold_to_delete(core, owner, who, versions, &b, err);
    if (r < 0)
        return r;
    r = version_check(core, b, versions, err);
    if (r >= 0)
        r = life_delete(core, b, CAUSE_DELETED, err);
    box_release(core, b);
    return r;
}

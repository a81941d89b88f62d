/* Taking them, and letting go of those that no rule keeps. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/autosave.h"
#include "core/checkpoints.h"
#include "core/disk.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/table.h"

#define LOG_MODULE "checkpoint"
#define HOLD_MS 1000          /* the timers bring an interval up again */
#define COMMAND_HOLD_MS 10000 /* several commands at once: each waits for the other's checkpoint */

/* ---- which stay ---- */

struct saved {
    char id[ID_SIZE];
    int64_t created_ms;
};

/* The automatic ones of a sandbox, the oldest first. */
static size_t gather(struct core *core, const char *owner, const char *sandbox,
                     struct saved **ret_items)
{
    const struct checkpoints *cs = &core->checkpoints;
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    struct saved *items = calloc(cs->n + 1, sizeof(*items));
    for (size_t i = 0; items && i < cs->n; i++) {
        const struct checkpoint *c = &cs->items[i];
        if (c->name[0] || !autosave_is(c->reason) || strcmp(c->sandbox, sandbox) != 0 ||
            strcmp(c->owner, owner) != 0)
            continue;
        memcpy(items[n].id, c->id, ID_SIZE);
        items[n++].created_ms = c->created_ms;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    *ret_items = items;
    return n;
}

static void remove_one(struct core *core, const char *owner, const char *id)
{
    struct err err = ERR_INIT;
    if (checkpoint_remove(core, owner, NULL, id, &err) < 0)
        log_warn("an automatic checkpoint stays checkpoint=%s err=\"%s\"", id, err.msg);
}

static void thin(struct core *core, const char *owner, const char *sandbox,
                 const struct autosave *policy)
{
    _cleanup_free_ struct saved *items = NULL;
    size_t n = gather(core, owner, sandbox, &items);
    _cleanup_free_ int64_t *created = calloc(n + 1, sizeof(*created));
    _cleanup_free_ bool *keep = calloc(n + 1, sizeof(*keep));
    if (!items || !created || !keep)
        return; /* the next one thins them out */
    for (size_t i = 0; i < n; i++)
        created[i] = items[i].created_ms;
    autosave_thin(policy, created, n, clock_now_ms(), keep);
    for (size_t i = 0; i < n; i++)
        if (!keep[i])
            remove_one(core, owner, items[i].id);
}

void autosave_drop(struct core *core, const char *owner, const char *id)
{
    _cleanup_free_ struct saved *items = NULL;
    size_t n = gather(core, owner, id, &items);
    for (size_t i = 0; i < n; i++)
        remove_one(core, owner, items[i].id);
}

int64_t autosave_last(struct core *core, const char *owner, const char *id)
{
    _cleanup_free_ struct saved *items = NULL;
    size_t n = gather(core, owner, id, &items);
    return n ? items[n - 1].created_ms : 0;
}

/* ---- taking one; the box is held ---- */

/* Nothing ran since the last one: it holds what there is. */
static bool stood_still(struct core *core, struct box *b, uint64_t *ret_cpu_us)
{
    struct keeper_usage usage;
    *ret_cpu_us = 0;
    if (b->s.state != SANDBOX_RUNNING || keeper_ask_stat(core, b->s.id, &usage, NULL) < 0)
        return false;
    *ret_cpu_us = usage.cpu_us;
    return b->s.spec.checkpoint[0] && b->save_cpu_us && usage.cpu_us == b->save_cpu_us;
}

static void tell_failure(struct core *core, const struct box *b, const char *reason,
                         const struct err *err)
{
    char data[128];
    int n = snprintf(data, sizeof(data), "{\"reason\":\"%s\",\"code\":\"%s\"}", reason,
                     failure_name(err->failure));
    event_emit(core, b->s.owner, b->s.id, "checkpoint.failed",
               n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_warn("no automatic checkpoint sandbox=%s reason=%s err=\"%s\"", b->s.id, reason, err->msg);
}

/* Only now is all that was written on disk, and it is known whether any of it is new. */
static bool is_new(struct core *core, const struct box *b, const char *before)
{
    bool changed = true;
    return !before[0] || keeper_ask_changed(core, b->s.id, before, &changed, NULL) < 0 || changed;
}

static void take(struct core *core, struct box *b, const char *reason)
{
    const struct checkpoint_ask ask = { .reason = reason };
    const struct autosave policy = b->s.spec.autosave;
    struct checkpoint c = { 0 };
    struct err err = ERR_INIT;
    char before[ID_SIZE];
    uint64_t cpu_us;
    memcpy(before, b->s.spec.checkpoint, ID_SIZE);
    if (!stood_still(core, b, &cpu_us)) {
        if (disk_admit(core, &err) < 0 || checkpoints_create(core, b, &ask, &c, &err) < 0) {
            tell_failure(core, b, reason, &err);
            return;
        }
        b->save_cpu_us = cpu_us;
        if (is_new(core, b, before))
            checkpoints_tell(core, &c, "checkpoint.added");
        else
            (void)checkpoints_remove(core, b->s.owner, NULL, c.id, false, NULL);
        checkpoint_done(&c);
    }
    thin(core, b->s.owner, b->s.id, &policy);
}

void autosave_run(struct core *core, const char *id)
{
    struct box *b;
    if (box_hold(core, NULL, id, HOLD_MS, &b) < 0)
        return;
    if (b->s.state == SANDBOX_RUNNING && b->s.spec.autosave.every_ms)
        take(core, b, "interval");
    (void)pthread_mutex_lock(&core->table.lock);
    int64_t now = clock_now_ms();
    b->save_next_ms = autosave_next(&b->s.spec.autosave, now, now);
    (void)pthread_mutex_unlock(&core->table.lock);
    box_release(core, b);
}

void autosave_command(struct core *core, const char *id)
{
    struct box *b;
    if (box_hold(core, NULL, id, COMMAND_HOLD_MS, &b) < 0)
        return;
    if (b->s.state == SANDBOX_RUNNING)
        take(core, b, "command");
    box_release(core, b);
}

void autosave_stopped(struct core *core, struct box *b, const char *reason)
{
    if (reason || b->s.spec.autosave.on_stop)
        take(core, b, reason ? reason : "stop");
}

#include "core/adopt.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/absence.h"
#include "core/count.h"
#include "core/idle.h"
#include "core/keeper.h"
#include "core/life.h"
#include "core/pause.h"
#include "core/restart.h"
#include "core/row.h"
#include "core/timers.h"

#define LOG_MODULE "adopt"

static int load_row(void *ctx, const struct store_sandbox *row)
{
    struct core *core = ctx;
    struct err err = ERR_INIT;
    struct sandbox s;
    if (row_read(row, &s, &err) < 0) {
        char id[64];
        log_error("record skipped sandbox=%s err=\"%s\"", log_quote(id, sizeof(id), row->id),
                  err.msg);
        return 0;
    }
    struct box *b = box_new(s.owner, &s.spec, row->tree ? row->tree : "");
    if (!b)
        return -ENOMEM;
    s.spec = b->s.spec;
    b->s = s;
    b->life = 1;
    b->saved_active_ms = s.last_active_ms;
    b->busy = false;
    /* No one could use it while we were away: idleness counts from now. */
    b->quiet_ms = clock_now_ms();
    b->idle_next_ms = idle_next(core, b, b->quiet_ms);
    int r = box_add(core, b);
    if (r < 0)
        box_free(b);
    return r == -EEXIST ? 0 : r;
}

/* Brings one sandbox to rest, given whether its init is alive. */
static int settle(struct core *core, struct box *b, bool alive, struct err *err)
{
    switch (b->s.state) {
    case SANDBOX_CREATING: return life_delete(core, b, CAUSE_FAILED, err);
    case SANDBOX_DELETING: return life_delete(core, b, b->s.cause, err);
    case SANDBOX_STOPPING: return life_stop(core, b, b->s.cause, err);
    case SANDBOX_RUNNING: return alive ? 0 : life_stop(core, b, absence_cause(core, &b->s), err);
    case SANDBOX_STOPPED:       /* a start was cut: its client saw it fail */
        if (b->s.spec.archived) /* its files are elsewhere; done twice is fine */
            return keeper_ask_cell(core, KEEPER_DELETE, b->s.id, err);
        return alive ? keeper_ask_cell(core, KEEPER_STOP, b->s.id, err) : 0;
    case SANDBOX_PAUSING: return pause_settle(core, b, err);
    case SANDBOX_PAUSED: b->unsure = alive; return 0;
    case SANDBOX_RESUMING: return resume_settle(core, b, alive, err);
    case SANDBOX_FROZEN: /* never stored */
    case SANDBOX_ARCHIVED:
    case SANDBOX_GONE: return 0;
    }
    return -EPROTO;
}

/* Since when is not known; what it took while we were away was not work. */
static void stays_frozen(struct box *b)
{
    b->frost = FROST_SET;
    b->s.frozen_ms = clock_now_ms();
    b->meter.asleep = true;
}

static void settle_all(struct core *core, const struct keeper_row *rows, size_t n)
{
    struct table *t = &core->table;
    unsigned running = 0;
    /* From the end: a deletion takes its place out of `sorted`. No other thread is there yet. */
    for (size_t i = t->n; i-- > 0;) {
        struct box *b = t->sorted[i], *held;
        const struct keeper_row *row = keeper_rows_find(rows, n, b->s.id);
        struct err err = ERR_INIT;
        if (box_hold(core, NULL, b->s.id, 0, &held) < 0)
            continue;
        if (settle(core, held, row && row->running, &err) < 0)
            log_warn("not settled, will be tried again sandbox=%s err=\"%s\"", held->s.id, err.msg);
        if (held->s.state == SANDBOX_RUNNING && row && row->frozen)
            stays_frozen(held);
        if (held->s.state == SANDBOX_RUNNING && held->s.spec.autosave.every_ms)
            held->save_next_ms =
                autosave_next(&held->s.spec.autosave,
                              autosave_last(core, held->s.owner, held->s.id), clock_now_ms());
        if (!held->removed && restart_wanted(&held->s))
            restart_plan(core, held);
        running += !held->removed && held->s.state == SANDBOX_RUNNING;
        box_release(core, held);
    }
    if (t->n)
        log_info("adopted sandboxes=%zu running=%u", t->n, running);
}

static void remove_strangers(struct core *core, const struct keeper_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        if (box_find(&core->table, NULL, rows[i].id))
            continue;
        if (keeper_ask_cell(core, KEEPER_DELETE, rows[i].id, &err) < 0)
            log_warn("unknown cell stays cell=%s err=\"%s\"", rows[i].id, err.msg);
    }
}

int adopt(struct core *core, struct err *err)
{
    _cleanup_free_ struct keeper_row *rows = NULL;
    size_t n = 0;
    int r = store_sandbox_live(core->store, load_row, core, err);
    if (r < 0)
        return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the sandboxes") : r;
    r = usage_load(core, err);
    if (r >= 0)
        r = leases_load(core, err);
    if (r >= 0)
        r = keeper_ask_list(core, KEEPER_LIST, &rows, &n, err);
    if (r < 0)
        return r;
    keeper_rows_sort(rows, n);
    remove_strangers(core, rows, n);
    settle_all(core, rows, n);
    return images_sweep(core, err);
}

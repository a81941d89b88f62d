#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/event.h"
#include "core/grant.h"
#include "core/idle.h"
#include "core/keeper.h"
#include "core/pause.h"
#include "core/spec.h"
#include "core/table.h"
#include "core/timers.h"

#define LOG_MODULE "sandbox"
#define NETWORK_CHANGES (CHANGE_NETWORK | CHANGE_BINDINGS | CHANGE_NETWORK_LIMITS)

static void keep_or(uint64_t *v, uint64_t wanted)
{
    if (wanted)
        *v = wanted;
}

static int replace_text(char **text, const char *by)
{
    char *copy = by ? strdup(by) : NULL;
    if (by && !copy)
        return -ENOMEM;
    free(*text);
    *text = copy;
    return 0;
}

static int replace_pairs(struct pairs *p, const struct pairs *by)
{
    struct pairs copy;
    int r = pairs_copy(by, &copy);
    if (r < 0)
        return r;
    pairs_done(p);
    *p = copy;
    return 0;
}

/* The old spec with the changes in it. */
static int merge(const struct sandbox_spec *old, const struct sandbox_spec *spec, unsigned changes,
                 struct sandbox_spec *ret_spec)
{
    struct sandbox_spec s;
    int r = spec_copy(old, &s);
    if (r < 0)
        return r;
    if (changes & CHANGE_NAME)
        r = replace_text(&s.name, spec->name);
    if (r >= 0 && (changes & CHANGE_NETWORK))
        r = replace_text(&s.network, spec->network);
    if (r >= 0 && (changes & CHANGE_BINDINGS))
        r = replace_text(&s.bindings, spec->bindings);
    if (r >= 0 && (changes & CHANGE_METADATA))
        r = replace_pairs(&s.metadata, &spec->metadata);
    if (r >= 0 && (changes & CHANGE_NOTES))
        r = replace_pairs(&s.notes, &spec->notes);
    if (r >= 0 && (changes & CHANGE_ENV))
        r = replace_pairs(&s.env, &spec->env);
    if (changes & CHANGE_NETWORK_LIMITS)
        s.network_limits = spec->network_limits;
    if (changes & CHANGE_TIMEOUT)
        s.timeout_ms = spec->timeout_ms;
    if (changes & CHANGE_ON_TIMEOUT)
        s.on_timeout = spec->on_timeout;
    if (changes & CHANGE_IDLE)
        s.idle_timeout_ms = spec->idle_timeout_ms;
    if (changes & CHANGE_ON_IDLE)
        s.on_idle = spec->on_idle;
    if (changes & CHANGE_FREEZE)
        s.freeze_after_ms = spec->freeze_after_ms;
    if (changes & CHANGE_AUTOSAVE)
        s.autosave = spec->autosave;
    if (changes & CHANGE_PREVIEW)
        s.preview = spec->preview;
    if (changes & CHANGE_WAKE)
        s.wake = spec->wake;
    if (changes & CHANGE_RESTART)
        s.restart = spec->restart;
    if (changes & CHANGE_LIMITS) {
        keep_or(&s.memory_bytes, spec->memory_bytes);
        keep_or(&s.disk_bytes, spec->disk_bytes);
        s.cpu_millis = spec->cpu_millis ? spec->cpu_millis : s.cpu_millis;
        s.pids = spec->pids ? spec->pids : s.pids;
    }
    s.revision++;
    if (r < 0) {
        sandbox_spec_done(&s);
        return r;
    }
    *ret_spec = s;
    return 0;
}

static void set_timers(struct core *core, struct box *b, unsigned changes, int64_t *old_expires)
{
    int64_t now = clock_now_ms();
    (void)pthread_mutex_lock(&core->table.lock);
    *old_expires = b->s.expires_ms;
    if (changes & CHANGE_TIMEOUT) {
        bool counts = b->s.state == SANDBOX_RUNNING || b->s.spec.on_timeout == END_DELETE;
        b->s.expires_ms = counts && b->s.spec.timeout_ms ? now + b->s.spec.timeout_ms : 0;
    }
    if (changes & (CHANGE_IDLE | CHANGE_FREEZE)) {
        b->quiet_ms = now; /* the new span counts from now */
        b->idle_next_ms = idle_next(core, b, now);
    }
    if (changes & CHANGE_AUTOSAVE)
        b->save_next_ms = autosave_next(&b->s.spec.autosave, now, now);
    (void)pthread_mutex_unlock(&core->table.lock);
}

static void undo_expires(struct core *core, struct box *b, int64_t expires)
{
    (void)pthread_mutex_lock(&core->table.lock);
    b->s.expires_ms = expires;
    b->idle_next_ms = idle_next(core, b, clock_now_ms());
    (void)pthread_mutex_unlock(&core->table.lock);
}

/* The new spec is in memory; makes it true and records it. */
static int carry_out(struct core *core, struct box *b, const struct sandbox_spec *old,
                     unsigned changes, struct err *err)
{
    if ((changes & CHANGE_LIMITS) && b->s.state == SANDBOX_RUNNING) {
        struct keeper_limits limits = spec_limits(&b->s.spec);
        int r = keeper_ask_limits(core, b->s.id, &limits, err);
        if (r < 0)
            return r;
    }
    if ((changes & NETWORK_CHANGES) && b->s.state == SANDBOX_RUNNING) {
        int r = networks_change(core, &b->s, old, changes, err);
        if (r < 0)
            return r;
    }
    return pause_record(core, b, err);
}

static int update_held(struct core *core, struct box *b, const struct sandbox_spec *spec,
                       unsigned changes, struct err *err)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec next = { .image = NULL };
    int64_t old_expires = 0;
    int r = merge(&b->s.spec, spec, changes, &next);
    if (r < 0)
        return err_set(err, -r, "cannot copy a spec");
    r = spec_check(&next, err);
    if (r >= 0 && (changes & CHANGE_NETWORK_LIMITS))
        r = limits_check(&next.network_limits, &core->limits_most, err);
    if (r >= 0 && (changes & CHANGE_BINDINGS))
        r = grant_check(core, b->s.owner, next.bindings, err);
    if (r < 0)
        return r;
    r = box_swap_spec(core, b, &next, true, err); /* now `next` is the old one */
    if (r < 0)
        return r;
    set_timers(core, b, changes, &old_expires);
    r = carry_out(core, b, &next, changes, err);
    if (r < 0) {
        /* Its old name was free a moment ago; should another have taken it, keep the new one. */
        if (box_swap_spec(core, b, &next, false, NULL) < 0)
            log_warn("a failed change stays in part sandbox=%s", b->s.id);
        undo_expires(core, b, old_expires);
        if ((changes & NETWORK_CHANGES) && b->s.state == SANDBOX_RUNNING)
            (void)networks_change(core, &b->s, &next, changes, NULL);
    }
    return r;
}

int sandbox_update_if(struct core *core, const char *owner, const char *who, const char *versions,
                      const struct sandbox_spec *spec, unsigned changes, struct sandbox *ret_s,
                      struct err *err)
{
    struct box *b;
    int r = sandbox_hold(core, owner, who, versions, &b, err);
    if (r < 0)
        return r;
    r = update_held(core, b, spec, changes, err);
    if (r >= 0) {
        r = box_copy(core, b, ret_s, err);
        event_emit(core, b->s.owner, b->s.id, "sandbox.updated", NULL);
    }
    box_release(core, b);
    if (r >= 0)
        timers_changed(core);
    return r;
}

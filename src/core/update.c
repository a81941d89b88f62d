#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/row.h"
#include "core/spec.h"
#include "core/table.h"
#include "core/timers.h"
#include "core/version.h"

#define LOG_MODULE "sandbox"
#define HOLD_MS 10000 /* another operation on the same sandbox */

static void keep_or(uint64_t *v, uint64_t wanted)
{
    if (wanted)
        *v = wanted;
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
    if (changes & CHANGE_NAME) {
        char *name = spec->name ? strdup(spec->name) : NULL;
        if (spec->name && !name)
            r = -ENOMEM;
        free(s.name);
        s.name = name;
    }
    if (r >= 0 && (changes & CHANGE_NETWORK)) {
        char *network = spec->network ? strdup(spec->network) : NULL;
        if (spec->network && !network)
            r = -ENOMEM;
        free(s.network);
        s.network = network;
    }
    if (r >= 0 && (changes & CHANGE_METADATA))
        r = replace_pairs(&s.metadata, &spec->metadata);
    if (r >= 0 && (changes & CHANGE_ENV))
        r = replace_pairs(&s.env, &spec->env);
    if (changes & CHANGE_TIMEOUT)
        s.timeout_ms = spec->timeout_ms;
    if (changes & CHANGE_ON_TIMEOUT)
        s.on_timeout = spec->on_timeout;
    if (changes & CHANGE_IDLE)
        s.idle_timeout_ms = spec->idle_timeout_ms;
    if (changes & CHANGE_ON_IDLE)
        s.on_idle = spec->on_idle;
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
    if (changes & CHANGE_IDLE) {
        b->quiet_ms = now; /* the new span counts from now */
        b->idle_next_ms = timers_idle_next(&b->s.spec, now);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
}

static void undo_expires(struct core *core, struct box *b, int64_t expires)
{
    (void)pthread_mutex_lock(&core->table.lock);
    b->s.expires_ms = expires;
    b->idle_next_ms = timers_idle_next(&b->s.spec, clock_now_ms());
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
    if ((changes & CHANGE_NETWORK) && b->s.state == SANDBOX_RUNNING) {
        int r = networks_change(core, b->s.id, old->network, b->s.spec.network, err);
        if (r < 0)
            return r;
    }
    (void)pthread_mutex_lock(&core->table.lock);
    struct sandbox s = b->s;
    (void)pthread_mutex_unlock(&core->table.lock);
    return row_save(core, &s, b->tree, err);
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
    }
    return r;
}

int sandbox_update_if(struct core *core, const char *owner, const char *who, const char *versions,
                      const struct sandbox_spec *spec, unsigned changes, struct sandbox *ret_s,
                      struct err *err)
{
    struct box *b;
    int r = box_hold(core, owner, who, HOLD_MS, &b);
    if (r == -ENOENT)
        return row_missing(core, owner, who, NULL, err);
    if (r == -EBUSY || (r >= 0 && b->s.state == SANDBOX_DELETING)) {
        if (r >= 0)
            box_release(core, b);
        return err_name(err, EBUSY, "sandbox_busy",
                        "sandbox '%.64s' is busy with another operation; try again", who);
    }
    r = version_check(core, b, versions, err);
    if (r >= 0)
        r = update_held(core, b, spec, changes, err);
    if (r >= 0) {
        (void)pthread_mutex_lock(&core->table.lock);
        r = sandbox_copy(&b->s, ret_s);
        (void)pthread_mutex_unlock(&core->table.lock);
        if (r < 0)
            r = err_set(err, -r, "cannot copy a sandbox");
        event_emit(core, b->s.owner, b->s.id, "sandbox.updated", NULL);
    }
    box_release(core, b);
    if (r >= 0)
        timers_changed(core);
    return r;
}

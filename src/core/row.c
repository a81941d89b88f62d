#include "core/row.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/spec.h"

static const char *const state_names[] = {
    [SANDBOX_CREATING] = "creating", [SANDBOX_RUNNING] = "running",
    [SANDBOX_FROZEN] = "frozen",     [SANDBOX_STOPPING] = "stopping",
    [SANDBOX_STOPPED] = "stopped",   [SANDBOX_PAUSING] = "pausing",
    [SANDBOX_PAUSED] = "paused",     [SANDBOX_ARCHIVED] = "archived",
    [SANDBOX_RESUMING] = "resuming", [SANDBOX_DELETING] = "deleting",
    [SANDBOX_GONE] = "gone",
};

const char *const sandbox_ends[] = { [END_DELETE] = "delete",
                                     [END_STOP] = "stop",
                                     [END_PAUSE] = "pause",
                                     [END_CHECKPOINT] = "checkpoint",
                                     NULL };

static const char *const cause_names[] = {
    [CAUSE_NONE] = "none",       [CAUSE_STOPPED] = "stopped",   [CAUSE_DELETED] = "deleted",
    [CAUSE_TIMEOUT] = "timeout", [CAUSE_IDLE] = "idle",         [CAUSE_CRASHED] = "crashed",
    [CAUSE_FAILED] = "failed",   [CAUSE_SHUTDOWN] = "shutdown", [CAUSE_REBOOT] = "host_reboot",
};

const char *sandbox_state_name(enum sandbox_state s)
{
    return state_names[s];
}

enum sandbox_state sandbox_shown(const struct sandbox *s)
{
    if (s->spec.archived && (s->state == SANDBOX_STOPPED || s->state == SANDBOX_PAUSED))
        return SANDBOX_ARCHIVED;
    return s->state == SANDBOX_RUNNING && s->frozen_ms ? SANDBOX_FROZEN : s->state;
}

int sandbox_state_parse(const char *name, enum sandbox_state *ret_s)
{
    for (size_t i = 0; i < ARRAY_LEN(state_names); i++)
        if (strcmp(name, state_names[i]) == 0) {
            *ret_s = (enum sandbox_state)i;
            return 0;
        }
    return -EINVAL;
}

const char *sandbox_cause_name(enum sandbox_cause c)
{
    return cause_names[c];
}

bool sandbox_cause_died(enum sandbox_cause c)
{
    return c == CAUSE_CRASHED || c == CAUSE_SHUTDOWN || c == CAUSE_REBOOT;
}

static int cause_parse(const char *name, enum sandbox_cause *ret_c)
{
    for (size_t i = 0; i < ARRAY_LEN(cause_names); i++)
        if (strcmp(name, cause_names[i]) == 0) {
            *ret_c = (enum sandbox_cause)i;
            return 0;
        }
    return -EINVAL;
}

static struct store_sandbox row_of(const struct sandbox *s, const char *tree, const char *spec)
{
    return (struct store_sandbox){
        .id = s->id,
        .owner = s->owner,
        .name = s->spec.name,
        .state = sandbox_state_name(s->state),
        .cause = sandbox_cause_name(s->cause),
        .tree = tree,
        .spec = spec,
        .created_ms = s->created_ms,
        .started_ms = s->started_ms,
        .stopped_ms = s->stopped_ms,
        .expires_ms = s->expires_ms,
        .last_active_ms = s->last_active_ms,
        .ended_ms = s->ended_ms,
    };
}

static int no_memory(struct err *err)
{
    return err_set(err, ENOMEM, "cannot allocate a sandbox's record");
}

int row_add(struct core *core, const struct sandbox *s, const char *tree, struct err *err)
{
    _cleanup_free_ char *spec = spec_to_json(&s->spec, false);
    if (!spec)
        return no_memory(err);
    struct store_sandbox row = row_of(s, tree, spec);
    return store_sandbox_add(core->store, &row, err);
}

int row_save(struct core *core, const struct sandbox *s, const char *tree, struct err *err)
{
    _cleanup_free_ char *spec = spec_to_json(&s->spec, s->state == SANDBOX_GONE);
    if (!spec)
        return no_memory(err);
    struct store_sandbox row = row_of(s, tree, spec);
    return store_sandbox_save(core->store, &row, err);
}

int row_mark(struct core *core, const struct sandbox *s, struct err *err)
{
    struct store_sandbox row = row_of(s, NULL, NULL);
    return store_sandbox_mark(core->store, &row, err);
}

int row_read(const struct store_sandbox *row, struct sandbox *ret_s, struct err *err)
{
    struct sandbox s = {
        .created_ms = row->created_ms,
        .started_ms = row->started_ms,
        .stopped_ms = row->stopped_ms,
        .expires_ms = row->expires_ms,
        .last_active_ms = row->last_active_ms,
        .ended_ms = row->ended_ms,
    };
    if (!id_valid(row->id) || strlen(row->owner) >= sizeof(s.owner) ||
        sandbox_state_parse(row->state, &s.state) < 0 || cause_parse(row->cause, &s.cause) < 0)
        return err_set(err, EPROTO, "cannot read the record of a sandbox");
    memcpy(s.id, row->id, sizeof(s.id));
    memcpy(s.owner, row->owner, strlen(row->owner) + 1);
    int r = spec_from_json(row->spec, &s.spec, err);
    if (r < 0)
        return r;
    if (row->name && !(s.spec.name = strdup(row->name))) {
        sandbox_done(&s);
        return no_memory(err);
    }
    *ret_s = s;
    return 0;
}

struct missing {
    struct sandbox s;
    bool found;
};

static int take_record(void *ctx, const struct store_sandbox *row)
{
    struct missing *m = ctx;
    int r = row_read(row, &m->s, NULL);
    m->found = r >= 0;
    return r;
}

int row_missing(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                struct err *err)
{
    struct missing m = { .found = false };
    if (name_valid(who)) /* an id has a name's shape too */
        (void)store_sandbox_gone(core->store, owner, who, take_record, &m, NULL);
    if (!m.found)
        return err_fail(err, FAIL_SANDBOX_NOT_FOUND,
                        "no sandbox '%.64s' here; `warren ls` shows what there is", who);
    char when[CLOCK_TEXT_MAX];
    int r = err_fail(err, FAIL_SANDBOX_GONE, "sandbox '%.64s' is gone since %s: %s", who,
                     clock_text(m.s.ended_ms, when), sandbox_cause_name(m.s.cause));
    if (ret_s)
        *ret_s = m.s;
    else
        sandbox_done(&m.s);
    return r;
}

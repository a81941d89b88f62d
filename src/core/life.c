#include "core/life.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/count.h"
#include "core/event.h"
#include "core/frost.h"
#include "core/idle.h"
#include "core/inside.h"
#include "core/keeper.h"
#include "core/pause.h"
#include "core/row.h"
#include "core/spec.h"
#include "core/timers.h"

#define LOG_MODULE "sandbox"

/* A step that the database refuses to note is still taken: the sandbox itself matters more, and
 * a full disk must not keep a user from deleting. */
static void mark(struct core *core, const struct sandbox *s)
{
    struct err err = ERR_INIT;
    if (row_mark(core, s, &err) < 0)
        log_warn("state not recorded sandbox=%s state=%s err=\"%s\"", s->id,
                 sandbox_state_name(s->state), err.msg);
}

/* What it used is written before the end that it belongs to. */
static void count(struct core *core, const struct sandbox *s)
{
    struct err err = ERR_INIT;
    if (usage_flush(core, &err) < 0)
        log_warn("usage is recorded later sandbox=%s err=\"%s\"", s->id, err.msg);
}

static void tell(struct core *core, const struct sandbox *s, const char *type)
{
    char data[64];
    int n = snprintf(data, sizeof(data), "{\"cause\":\"%s\"}", sandbox_cause_name(s->cause));
    event_emit(core, s->owner, s->id, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
}

void life_running(struct core *core, struct box *b, int64_t now_ms)
{
    const struct sandbox_spec *spec = &b->s.spec;
    b->s.state = SANDBOX_RUNNING;
    b->s.cause = CAUSE_NONE;
    b->s.started_ms = b->s.last_active_ms = b->saved_active_ms = now_ms;
    b->s.stopped_ms = 0;
    b->s.expires_ms = spec->timeout_ms ? now_ms + spec->timeout_ms : 0;
    b->life++;
    b->retry_ms = 0;
    b->quiet_ms = now_ms;
    b->cpu_seen_ms = 0;
    b->frost = FROST_NONE;
    b->s.frozen_ms = 0;
    b->save_cpu_us = 0;
    b->save_next_ms = autosave_next(&spec->autosave, now_ms, now_ms);
    b->idle_next_ms = idle_next(core, b, now_ms);
}

int life_start(struct core *core, struct box *b, struct err *err)
{
    /* The record says `stopped` until it runs: a start that a crash cuts keeps its files. */
    int r = keeper_ask_make_sandbox(core, &b->s, b->tree, "", err);
    if (r >= 0)
        r = volumes_attach(core, b->s.id, &b->s.spec, err);
    if (r >= 0)
        r = networks_attach(core, &b->s, err);
    if (r < 0) {
        networks_detach(core, b->s.id);
        if (r != -ENOTCONN)
            (void)keeper_ask_cell(core, KEEPER_STOP, b->s.id, NULL);
        return r;
    }
    (void)pthread_mutex_lock(&core->table.lock);
    life_running(core, b, clock_now_ms());
    usage_begun(core, b, b->s.started_ms, 0);
    struct sandbox s = b->s;
    (void)pthread_mutex_unlock(&core->table.lock);
    mark(core, &s);
    timers_changed(core);
    event_emit(core, s.owner, s.id, "sandbox.started", NULL);
    log_info("started sandbox=%s", s.id);
    return 0;
}

int life_stop(struct core *core, struct box *b, enum sandbox_cause cause, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    b->s.state = SANDBOX_STOPPING;
    b->s.cause = cause;
    struct sandbox s = b->s;
    (void)pthread_mutex_unlock(&core->table.lock);
    mark(core, &s);

    if (!sandbox_cause_died(cause) && frost_lift(core, s.id, NULL) >= 0)
        inside_shutdown(core, s.id);
    networks_detach(core, s.id);
    struct keeper_usage last = { 0 };
    int r = keeper_ask_end(core, KEEPER_STOP, s.id, &last, err);
    if (r == -ENOENT)
        r = 0; /* nothing of it runs */

    (void)pthread_mutex_lock(&core->table.lock);
    if (r >= 0) {
        usage_ended(core, b, &last, false);
        b->s.state = SANDBOX_STOPPED;
        b->s.stopped_ms = clock_now_ms();
        b->frost = FROST_NONE;
        b->s.frozen_ms = 0;
        /* A stop that nobody asked for leaves an end of life that deletes where it is: a crash
         * must not make a sandbox immortal. One that a user asked for parks it. */
        if (cause == CAUSE_STOPPED || b->s.spec.on_timeout != END_DELETE)
            b->s.expires_ms = 0;
    } else {
        b->s.state = SANDBOX_RUNNING;
        b->s.cause = CAUSE_NONE;
    }
    s = b->s;
    (void)pthread_mutex_unlock(&core->table.lock);
    count(core, &s);
    mark(core, &s);
    if (r < 0)
        return r;
    tell(core, &s, "sandbox.stopped");
    log_info("stopped sandbox=%s cause=%s", s.id, sandbox_cause_name(cause));
    return 0;
}

int life_delete(struct core *core, struct box *b, enum sandbox_cause cause, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    if (b->s.state != SANDBOX_DELETING)
        b->s.cause = cause; /* else an earlier try said why */
    b->s.state = SANDBOX_DELETING;
    struct sandbox s = b->s;
    (void)pthread_mutex_unlock(&core->table.lock);
    mark(core, &s);

    networks_detach(core, s.id);
    struct keeper_usage last = { 0 };
    int r = keeper_ask_end(core, KEEPER_DELETE, s.id, &last, err);
    if (r < 0 && r != -ENOENT) {
        (void)pthread_mutex_lock(&core->table.lock);
        b->retry_ms = clock_now_ms() + LIFE_RETRY_MS;
        (void)pthread_mutex_unlock(&core->table.lock);
        timers_changed(core);
        return r;
    }

    (void)pthread_mutex_lock(&core->table.lock);
    usage_ended(core, b, &last, true);
    b->s.state = SANDBOX_GONE;
    b->s.ended_ms = clock_now_ms();
    b->s.expires_ms = 0;
    s = b->s;
    (void)pthread_mutex_unlock(&core->table.lock);
    count(core, &s);
    struct err why = ERR_INIT;
    if (row_save(core, &s, b->tree, &why) < 0)
        log_warn("end not recorded sandbox=%s err=\"%s\"", s.id, why.msg);
    box_remove(core, b);
    passes_drop(core, s.id);
    if (s.spec.paused[0])
        pause_forget(core, s.owner, s.spec.paused);
    autosave_drop(core, s.owner, s.id);
    atomic_fetch_add(&core->deletes, 1);
    tell(core, &s, "sandbox.deleted");
    archives_drop_later(core, s.id);
    image_tree_release(core, b->tree);
    log_info("deleted sandbox=%s cause=%s", s.id, sandbox_cause_name(s.cause));
    return 0;
}

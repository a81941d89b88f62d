#include "core/restart.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/event.h"
#include "core/timers.h"

#define LOG_MODULE "restart"
#define HOLD_MS 1000               /* if busy, the timers try again */
#define TRIES_MAX 6                /* in a row; the last comes 32 s after the one before */
#define FIRST_MS 1000              /* the first delay; it doubles each time */
#define STEADY_MS (10 * 60 * 1000) /* a sandbox that ran this long starts counting anew */

bool restart_wanted(const struct sandbox *s)
{
    if (s->state != SANDBOX_STOPPED)
        return false;
    switch (s->spec.restart) {
    case RESTART_NO: return false;
    case RESTART_ON_BOOT: return s->cause == CAUSE_REBOOT || s->cause == CAUSE_SHUTDOWN;
    case RESTART_ALWAYS: return sandbox_cause_died(s->cause);
    }
    return false;
}

void restart_plan(struct core *core, struct box *b)
{
    (void)pthread_mutex_lock(&core->table.lock);
    int64_t now = clock_now_ms();
    bool wanted = restart_wanted(&b->s);
    if (b->s.stopped_ms - b->s.started_ms >= STEADY_MS && b->restart_ms == 0)
        b->restarts = 0;
    bool over = wanted && b->restarts >= TRIES_MAX;
    /* The first start after a reboot or a shutdown waits for nothing. */
    int64_t wait =
        b->s.cause == CAUSE_CRASHED || b->restarts ? (int64_t)FIRST_MS << b->restarts : 0;
    b->restart_ms = wanted && !over ? now + wait : 0;
    b->restarts = over ? 0 : b->restarts + wanted; /* a client's start counts anew */
    (void)pthread_mutex_unlock(&core->table.lock);
    if (over) {
        log_warn("gave up restarting: the sandbox did not stay up sandbox=%s tries=%d", b->s.id,
                 TRIES_MAX);
        event_emit(core, b->s.owner, b->s.id, "sandbox.restart_failed", NULL);
    }
    if (wanted)
        timers_changed(core);
}

void restart_run(struct core *core, const char *id)
{
    struct err err = ERR_INIT;
    struct box *b;
    if (box_hold(core, NULL, id, HOLD_MS, &b) < 0)
        return;
    if (restart_wanted(&b->s)) {
        int r = sandbox_start_held(core, b, &err);
        if (r < 0)
            log_warn("start failed sandbox=%s err=\"%s\"", b->s.id, err.msg);
        if (b->s.state == SANDBOX_STOPPED)
            restart_plan(core, b);
    }
    (void)pthread_mutex_lock(&core->table.lock);
    if (!restart_wanted(&b->s))
        b->restart_ms = 0;
    (void)pthread_mutex_unlock(&core->table.lock);
    box_release(core, b);
}

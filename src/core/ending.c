#include "core/ending.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/autosave.h"
#include "core/event.h"
#include "core/idle.h"
#include "core/life.h"
#include "core/pause.h"

#define LOG_MODULE "jobs"

static int stop(struct core *core, struct box *b, enum sandbox_cause cause, const char *reason,
                struct err *err)
{
    int r = life_stop(core, b, cause, err);
    if (r >= 0)
        autosave_stopped(core, b, reason);
    return r;
}

/* One whose time is over is stopped if it cannot be paused; to one that is idle nothing is done: it may be
 * frozen, and is idle anew from now on. */
static int put_away(struct core *core, struct box *b, enum sandbox_cause cause, struct err *err)
{
    struct err why = ERR_INIT;
    char data[128];
    int r = pause_held(core, b, cause, &why);
    if (r >= 0 || b->s.state != SANDBOX_RUNNING) {
        if (r < 0 && err)
            *err = why;
        return r; /* what is between is gone on with by the timers */
    }
    int n = snprintf(data, sizeof(data), "{\"cause\":\"%s\",\"code\":\"%s\"}",
                     sandbox_cause_name(cause), failure_name(why.failure));
    event_emit(core, b->s.owner, b->s.id, "sandbox.pause_failed",
               n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_warn("cannot be paused sandbox=%s cause=%s err=\"%s\"", b->s.id, sandbox_cause_name(cause),
             why.msg);
    if (cause == CAUSE_TIMEOUT)
        return stop(core, b, cause, NULL, err);
    (void)pthread_mutex_lock(&core->table.lock);
    b->quiet_ms = clock_now_ms();
    b->idle_next_ms = idle_next(core, b, b->quiet_ms);
    (void)pthread_mutex_unlock(&core->table.lock);
    return 0;
}

int ending_run(struct core *core, struct box *b, enum sandbox_end how, enum sandbox_cause cause,
               struct err *err)
{
    switch (how) {
    case END_DELETE: return life_delete(core, b, cause, err);
    case END_PAUSE: return put_away(core, b, cause, err);
    case END_STOP: return stop(core, b, cause, NULL, err);
    case END_CHECKPOINT: return stop(core, b, cause, sandbox_cause_name(cause), err);
    }
    return -EPROTO;
}

void ending_settle(struct core *core, struct box *b, int r, const struct err *err)
{
    if (r >= 0)
        return;
    log_warn("end failed, will be tried again sandbox=%s err=\"%s\"", b->s.id, err->msg);
    (void)pthread_mutex_lock(&core->table.lock);
    b->retry_ms = clock_now_ms() + LIFE_RETRY_MS;
    b->idle_next_ms = b->idle_next_ms ? b->retry_ms : 0;
    (void)pthread_mutex_unlock(&core->table.lock);
}

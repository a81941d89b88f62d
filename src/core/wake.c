#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/sandbox.h"
#include "core/table.h"

#define LOG_MODULE "sandbox"
#define WAKE_MS 45000 /* a stop may be under way; a start takes as long as it takes */
#define BUSY_US 20000

static bool sleeps(const struct sandbox *s, bool stopped_too)
{
    if (s->state == SANDBOX_PAUSED || s->state == SANDBOX_PAUSING)
        return s->spec.wake != WAKE_NEVER;
    if (!stopped_too)
        return false;
    /* One that is being stopped knows why already; its start waits for the end of that. */
    if (s->state != SANDBOX_STOPPED && s->state != SANDBOX_STOPPING)
        return false;
    switch (s->spec.wake) {
    case WAKE_AUTO: return s->cause == CAUSE_IDLE || s->cause == CAUSE_TIMEOUT;
    case WAKE_ALWAYS: return true;
    case WAKE_NEVER: return false;
    }
    return false;
}

static bool is_busy(const struct err *err)
{
    return err->failure == FAIL_SANDBOX_BUSY;
}

/* Somebody brings it up right now, out of object storage perhaps. */
static bool comes_up(struct core *core, const char *id)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct box *b = box_find(&core->table, NULL, id);
    bool starting = b && b->starting;
    (void)pthread_mutex_unlock(&core->table.lock);
    return starting && !atomic_load(&core->stopping);
}

/* Of several that touch it at once one starts it; to the others it runs already. */
static int start(struct core *core, const struct sandbox *s, struct err *err)
{
    int64_t until = clock_mono_ms() + WAKE_MS;
    for (;;) {
        _cleanup_(sandbox_done) struct sandbox after = { 0 };
        struct err why = ERR_INIT;
        int r = sandbox_start(core, s->owner, s->id, &after, &why);
        if (r >= 0)
            return 0;
        if (!is_busy(&why) || (clock_mono_ms() >= until && !comes_up(core, s->id))) {
            *err = why;
            return r;
        }
        (void)usleep(BUSY_US);
    }
}

static int enter(struct core *core, const char *owner, const char *who, bool stopped_too,
                 struct sandbox *ret_s, bool *ret_woken, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct err why = ERR_INIT, late = ERR_INIT;
    *ret_woken = false;
    int r = sandbox_enter_awake(core, owner, who, ret_s, &why);
    if (r >= 0)
        return r;
    if (sandbox_get(core, owner, who, &s, NULL) < 0 || !sleeps(&s, stopped_too)) {
        if (err)
            *err = why;
        return r;
    }
    log_debug("woken by a request sandbox=%s",
              s.id); /* each that waits says so; one start is told */
    int started = start(core, &s, &late);
    /* One whose start command does not get ready runs nevertheless. */
    r = sandbox_enter_awake(core, owner, who, ret_s, err);
    if (r >= 0)
        *ret_woken = true;
    else if (started < 0 && err)
        *err = late;
    return r;
}

int sandbox_enter(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                  struct err *err)
{
    bool woken;
    return enter(core, owner, who, false, ret_s, &woken, err);
}

int sandbox_wake(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                 bool *ret_woken, struct err *err)
{
    return enter(core, owner, who, true, ret_s, ret_woken, err);
}

#include "core/frost.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/count.h"
#include "core/event.h"
#include "core/idle.h"
#include "core/keeper.h"
#include "core/table.h"
#include "core/timers.h"
#include "core/wait.h"

#define LOG_MODULE "sandbox"
#define OTHER_MS 10000 /* the other way is under way: one call of the keeper */

/* With the table's lock held: waits until nobody changes it. NULL: it is gone. */
static struct box *settled(struct table *t, const char *id)
{
    int64_t until = clock_mono_ms() + OTHER_MS;
    struct box *b = box_find(t, NULL, id);
    while (b && (b->frost == FROST_SETTING || b->frost == FROST_LIFTING)) {
        b->waiting++;
        int timed = wait_until(&b->freed, &t->lock, until);
        b->waiting--;
        if (b->removed) {
            if (b->waiting == 0 && !b->busy)
                box_free(b);
            return NULL;
        }
        if (timed == ETIMEDOUT)
            break;
    }
    return b;
}

/* With the table's lock held, after the keeper's word. */
static void now_is(struct core *core, struct box *b, enum frost frost, int64_t now)
{
    bool was = b->s.frozen_ms != 0, is = frost == FROST_SET;
    b->frost = frost;
    if (was != is)
        usage_asleep(core, b, is, now);
    b->s.frozen_ms = is ? now : 0;
    if (b->waiting)
        (void)pthread_cond_broadcast(&b->freed);
}

int frost_set(struct core *core, const char *id, unsigned life, int64_t idle_ms, struct err *err)
{
    struct table *t = &core->table;
    char owner[OWNER_MAX] = "";
    int64_t now = clock_now_ms();
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, NULL, id);
    bool still = b && b->s.state == SANDBOX_RUNNING && b->life == life && b->inside == 0 &&
                 b->frost == FROST_NONE && idle_since(b) + idle_ms <= now;
    if (still)
        b->frost = FROST_SETTING;
    (void)pthread_mutex_unlock(&t->lock);
    if (!still)
        return 0;
    int r = keeper_ask_cell(core, KEEPER_FREEZE, id, err);
    (void)pthread_mutex_lock(&t->lock);
    b = box_find(t, NULL, id);
    if (b && b->life == life && b->frost == FROST_SETTING) {
        now_is(core, b, r < 0 ? FROST_NONE : FROST_SET, clock_now_ms());
        memcpy(owner, b->s.owner, sizeof(owner));
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (r < 0 || !owner[0])
        return r;
    atomic_fetch_add(&core->freezes, 1);
    event_emit(core, owner, id, "sandbox.frozen", NULL);
    log_info("frozen sandbox=%s", id);
    return 0;
}

int frost_lift(struct core *core, const char *id, struct err *err)
{
    struct table *t = &core->table;
    char owner[OWNER_MAX] = "";
    int64_t began = clock_mono_us();
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = settled(t, id);
    bool set = b && b->frost == FROST_SET;
    unsigned life = set ? b->life : 0;
    if (set)
        b->frost = FROST_LIFTING;
    (void)pthread_mutex_unlock(&t->lock);
    if (!set)
        return 0;
    int r = keeper_ask_cell(core, KEEPER_THAW, id, err);
    if (r == -ESRCH)
        r = 0; /* its end is somebody else's to tell */
    (void)pthread_mutex_lock(&t->lock);
    b = box_find(t, NULL, id);
    if (b && b->life == life && b->frost == FROST_LIFTING) {
        now_is(core, b, r < 0 ? FROST_SET : FROST_NONE, clock_now_ms());
        if (r >= 0)
            b->idle_next_ms = idle_next(core, b, clock_now_ms());
        memcpy(owner, b->s.owner, sizeof(owner));
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (r < 0)
        return err_wrap(err, r, "cannot wake sandbox '%s'", id);
    timers_changed(core);
    if (owner[0])
        event_emit(core, owner, id, "sandbox.thawed", NULL);
    log_info("thawed sandbox=%s took_us=%lld", id, (long long)(clock_mono_us() - began));
    return 0;
}

void frost_lift_soon(struct core *core, const char *id)
{
    (void)jobs_add(core, JOB_THAW, id, 0);
}

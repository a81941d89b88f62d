#include "core/idle.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/ending.h"
#include "core/frost.h"
#include "core/keeper.h"
#include "core/table.h"
#include "core/timers.h"

#define LOG_MODULE "idle"
#define HOLD_MS 1000          /* then the timers bring it up again */
#define CPU_IDLE_US_PER_MS 10 /* 1% of one cpu */
#define CPU_SPAN_MIN_MS 1000 /* judged together, however often it is looked at: a tick is no work */
#define LOOKS 4              /* in one span of idleness, where no readings come by themselves */
#define LOOK_MIN_MS 50
#define LOOK_MAX_MS 30000
#define READINGS 3 /* in such a span, to rely on them */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The earlier of two moments; 0 is none. */
static int64_t sooner(int64_t a, int64_t b)
{
    return a == 0 || (b && b < a) ? b : a;
}

int64_t idle_since(const struct box *b)
{
    return later(later(b->s.last_active_ms, b->quiet_ms), b->s.leased_ms);
}

int64_t idle_next(const struct core *core, const struct box *b, int64_t now_ms)
{
    const struct sandbox_spec *spec = &b->s.spec;
    bool frozen = b->s.frozen_ms != 0;
    int64_t freeze = frozen ? 0 : spec->freeze_after_ms,
            first = sooner(freeze, spec->idle_timeout_ms);
    if (first == 0)
        return 0;
    int64_t next = sooner(freeze ? idle_since(b) + freeze : 0,
                          spec->idle_timeout_ms ? idle_since(b) + spec->idle_timeout_ms : 0);
    int64_t look = first / LOOKS;
    look = look < LOOK_MIN_MS ? LOOK_MIN_MS : look > LOOK_MAX_MS ? LOOK_MAX_MS : look;
    int64_t interval = core->usage.interval_ms;
    bool read = frozen || (interval && first >= READINGS * interval);
    if (next <= now_ms || (!read && next > now_ms + look))
        next = now_ms + look;
    return next;
}

void idle_saw_cpu(struct box *b, int64_t now_ms, uint64_t cpu_us)
{
    int64_t span = now_ms - b->cpu_seen_ms;
    uint64_t noise = (uint64_t)later(span, CPU_SPAN_MIN_MS) * CPU_IDLE_US_PER_MS;
    bool works = b->cpu_seen_ms && cpu_us > b->cpu_seen_us + noise;
    if (works)
        b->quiet_ms = now_ms;
    if (works || !b->cpu_seen_ms || span >= CPU_SPAN_MIN_MS) {
        b->cpu_seen_ms = now_ms;
        b->cpu_seen_us = cpu_us;
    }
}

void idle_saw_bytes(struct core *core, struct box *b, int64_t now_ms)
{
    if (b->s.state != SANDBOX_RUNNING)
        return;
    b->quiet_ms = now_ms;
    if (b->s.frozen_ms) /* whoever it is for is to read it */
        frost_lift_soon(core, b->s.id);
}

/* The end of one that is still idle, with nobody inside from here on. */
static void end(struct core *core, const char *id, unsigned life)
{
    struct err err = ERR_INIT;
    struct box *b;
    if (box_hold(core, NULL, id, HOLD_MS, &b) < 0)
        return;
    (void)pthread_mutex_lock(&core->table.lock);
    int64_t limit = b->s.spec.idle_timeout_ms;
    bool idle = b->s.state == SANDBOX_RUNNING && b->life == life && b->inside == 0 && limit &&
                idle_since(b) + limit <= clock_now_ms();
    enum sandbox_end how = b->s.spec.on_idle;
    if (idle) { /* from here on nobody enters; who comes now waits for the end of it, and wakes it */
        b->s.state = how == END_DELETE  ? SANDBOX_DELETING
                     : how == END_PAUSE ? SANDBOX_PAUSING
                                        : SANDBOX_STOPPING;
        b->s.cause = CAUSE_IDLE;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    if (idle)
        ending_settle(core, b, ending_run(core, b, how, CAUSE_IDLE, &err), &err);
    box_release(core, b);
}

/* Its cpu time, where it is worth asking for; false: not known, so nothing is done to it. */
static bool read_cpu(struct core *core, const char *id, unsigned life)
{
    struct keeper_usage usage;
    if (keeper_ask_stat(core, id, &usage, NULL) < 0)
        return false;
    (void)pthread_mutex_lock(&core->table.lock);
    struct box *b = box_find(&core->table, NULL, id);
    if (b && b->life == life && usage.cpu_us >= b->cpu_seen_us)
        idle_saw_cpu(b, clock_now_ms(), usage.cpu_us);
    (void)pthread_mutex_unlock(&core->table.lock);
    return true;
}

void idle_look(struct core *core, const char *id)
{
    struct table *t = &core->table;
    struct err err = ERR_INIT;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, NULL, id);
    bool look = b && b->s.state == SANDBOX_RUNNING;
    unsigned life = look ? b->life : 0;
    bool frozen = look && b->s.frozen_ms != 0;
    (void)pthread_mutex_unlock(&t->lock);
    if (!look)
        return;
    bool known = frozen || read_cpu(core, id, life);

    bool over = false, freeze = false;
    int64_t freeze_after = 0;
    (void)pthread_mutex_lock(&t->lock);
    b = box_find(t, NULL, id);
    if (b && b->s.state == SANDBOX_RUNNING && b->life == life) {
        int64_t now = clock_now_ms(), quiet = now - idle_since(b);
        freeze_after = b->s.spec.freeze_after_ms;
        over = known && b->inside == 0 && b->s.spec.idle_timeout_ms &&
               quiet >= b->s.spec.idle_timeout_ms;
        freeze =
            known && b->inside == 0 && freeze_after && !b->s.frozen_ms && quiet >= freeze_after;
        b->idle_next_ms = idle_next(core, b, now);
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (over)
        end(core, id, life);
    else if (freeze && frost_set(core, id, life, freeze_after, &err) < 0)
        log_warn("cannot be frozen, will be tried again sandbox=%s err=\"%s\"", id, err.msg);
    if (freeze) { /* what comes after that has its own time */
        (void)pthread_mutex_lock(&t->lock);
        b = box_find(t, NULL, id);
        if (b && b->life == life && b->s.frozen_ms)
            b->idle_next_ms = idle_next(core, b, clock_now_ms());
        (void)pthread_mutex_unlock(&t->lock);
    }
}

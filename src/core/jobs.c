#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/count.h"
#include "core/event.h"
#include "core/inside.h"
#include "core/keeper.h"
#include "core/life.h"
#include "core/timers.h"

#define LOG_MODULE "jobs"
#define HOLD_MS 1000          /* then the timers bring it up again */
#define DEATH_HOLD_MS 60000   /* nobody brings a death up again */
#define CPU_IDLE_US_PER_MS 10 /* 1% of one cpu */
#define RECORD_KEEP_MS (24ll * 3600 * 1000)
#define RECORD_KEEP 10000

/* ---- what a job does ---- */

static int end_held(struct core *core, struct box *b, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    enum sandbox_state state = b->s.state;
    bool over = b->s.expires_ms && b->s.expires_ms <= clock_now_ms();
    enum sandbox_end how = b->s.spec.on_timeout;
    if (over && state == SANDBOX_STOPPED && how == END_STOP)
        b->s.expires_ms = 0; /* it is what it was to become */
    (void)pthread_mutex_unlock(&core->table.lock);

    if (state == SANDBOX_DELETING)
        return life_delete(core, b, CAUSE_DELETED, err);
    if (!over)
        return 0; /* it was changed meanwhile */
    if (how == END_DELETE)
        return life_delete(core, b, CAUSE_TIMEOUT, err);
    return state == SANDBOX_RUNNING ? life_stop(core, b, CAUSE_TIMEOUT, err) : 0;
}

/* Logs what went wrong, and has it tried again later. */
static void settle(struct core *core, struct box *b, int r, const struct err *err)
{
    if (r >= 0)
        return;
    log_warn("end failed, will be tried again sandbox=%s err=\"%s\"", b->s.id, err->msg);
    (void)pthread_mutex_lock(&core->table.lock);
    b->retry_ms = clock_now_ms() + LIFE_RETRY_MS;
    b->idle_next_ms = b->idle_next_ms ? b->retry_ms : 0;
    (void)pthread_mutex_unlock(&core->table.lock);
}

static void do_end(struct core *core, const char *id)
{
    struct err err = ERR_INIT;
    struct box *b;
    if (box_hold(core, NULL, id, HOLD_MS, &b) < 0)
        return;
    settle(core, b, end_held(core, b, &err), &err);
    box_release(core, b);
}

static void do_death(struct core *core, const char *id, unsigned life)
{
    struct err err = ERR_INIT;
    struct box *b;
    if (box_hold(core, NULL, id, DEATH_HOLD_MS, &b) < 0)
        return;
    (void)pthread_mutex_lock(&core->table.lock);
    bool died = b->s.state == SANDBOX_RUNNING && b->life == life;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (died)
        settle(core, b, life_stop(core, b, CAUSE_CRASHED, &err), &err);
    box_release(core, b);
}

/* Whether its inside was at work since the last look; learns what the next look needs. */
static bool at_work(struct core *core, const char *id, int64_t seen_ms, uint64_t seen_us,
                    int64_t now, uint64_t *ret_cpu_us)
{
    struct keeper_usage usage;
    *ret_cpu_us = seen_us;
    if (keeper_ask_stat(core, id, &usage, NULL) < 0)
        return true; /* not known to be idle */
    *ret_cpu_us = usage.cpu_us;
    uint64_t allowed = (uint64_t)(now - seen_ms) * CPU_IDLE_US_PER_MS;
    if (seen_ms && usage.cpu_us > seen_us + allowed)
        return true;
    uint64_t procs = 0;
    return inside_ping(core, id, &procs) >= 0 && procs > 0;
}

static void idle_end(struct core *core, const char *id, unsigned life)
{
    struct err err = ERR_INIT;
    struct box *b;
    if (box_hold(core, NULL, id, HOLD_MS, &b) < 0)
        return;
    (void)pthread_mutex_lock(&core->table.lock);
    int64_t limit = b->s.spec.idle_timeout_ms, since = b->s.last_active_ms;
    bool idle = b->s.state == SANDBOX_RUNNING && b->life == life && b->inside == 0 && limit &&
                clock_now_ms() - (since > b->quiet_ms ? since : b->quiet_ms) >= limit;
    enum sandbox_end how = b->s.spec.on_idle;
    if (idle) { /* from here on nobody enters */
        b->s.state = how == END_STOP ? SANDBOX_STOPPING : SANDBOX_DELETING;
        b->s.cause = CAUSE_IDLE;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    if (idle)
        settle(core, b,
               how == END_STOP ? life_stop(core, b, CAUSE_IDLE, &err)
                               : life_delete(core, b, CAUSE_IDLE, &err),
               &err);
    box_release(core, b);
}

static void do_idle(struct core *core, const char *id)
{
    struct table *t = &core->table;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, NULL, id);
    bool look = b && b->s.state == SANDBOX_RUNNING;
    unsigned life = look ? b->life : 0;
    bool inside = look && b->inside > 0;
    int64_t seen_ms = look ? b->cpu_seen_ms : 0;
    uint64_t seen_us = look ? b->cpu_seen_us : 0;
    (void)pthread_mutex_unlock(&t->lock);
    if (!look)
        return;

    int64_t now = clock_now_ms();
    uint64_t cpu_us = seen_us;
    bool busy = at_work(core, id, seen_ms, seen_us, now, &cpu_us) || inside;

    (void)pthread_mutex_lock(&t->lock);
    b = box_find(t, NULL, id);
    bool idle = false;
    if (b && b->s.state == SANDBOX_RUNNING && b->life == life) {
        b->cpu_seen_ms = now;
        b->cpu_seen_us = cpu_us;
        if (busy)
            b->quiet_ms = now;
        int64_t since = b->s.last_active_ms > b->quiet_ms ? b->s.last_active_ms : b->quiet_ms;
        int64_t limit = b->s.spec.idle_timeout_ms, end = since + limit;
        idle = limit && b->inside == 0 && end <= now;
        b->idle_next_ms = timers_idle_next(&b->s.spec, now);
        if (b->idle_next_ms && end > now && end < b->idle_next_ms)
            b->idle_next_ms = end; /* not later than it could be over */
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (idle)
        idle_end(core, id, life);
}

static void do_prune(struct core *core)
{
    struct err err = ERR_INIT;
    int r = store_event_prune(core->store, EVENT_KEEP, &err);
    if (r >= 0)
        r = store_sandbox_prune(core->store, clock_now_ms() - RECORD_KEEP_MS, RECORD_KEEP, &err);
    usage_prune(core);
    if (r < 0)
        log_warn("old records stay err=\"%s\"", err.msg);
}

static void do_tidy(struct core *core)
{
    struct err err = ERR_INIT;
    if (store_tidy(core->store, &err) < 0)
        log_warn("database not tidied err=\"%s\"", err.msg);
}

void jobs_dequeued(struct core *core, const char *id)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct box *b = box_find(&core->table, NULL, id);
    if (b)
        b->queued = false;
    (void)pthread_mutex_unlock(&core->table.lock);
}

static void do_job(struct core *core, const struct job *job)
{
    switch (job->kind) {
    case JOB_END: do_end(core, job->id); break;
    case JOB_IDLE: do_idle(core, job->id); break;
    case JOB_DEATH: do_death(core, job->id, job->life); return;
    case JOB_TIDY: do_tidy(core); return;
    case JOB_PRUNE: do_prune(core); return;
    }
    jobs_dequeued(core, job->id);
    timers_changed(core);
}

/* ---- the workers ---- */

static void *run(void *ctx)
{
    struct core *core = ctx;
    struct workers *w = &core->workers;
    (void)pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->stop && !w->head)
            (void)pthread_cond_wait(&w->more, &w->lock);
        if (w->stop)
            break;
        struct job *job = w->head;
        w->head = job->next;
        if (!w->head)
            w->tail = NULL;
        (void)pthread_mutex_unlock(&w->lock);
        do_job(core, job);
        free(job);
        (void)pthread_mutex_lock(&w->lock);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

bool jobs_add(struct core *core, enum job_kind kind, const char *id, unsigned life)
{
    struct workers *w = &core->workers;
    struct job *job = calloc(1, sizeof(*job));
    if (!job) {
        log_error("no memory for a job sandbox=%s", id);
        return false;
    }
    job->kind = kind;
    job->life = life;
    (void)snprintf(job->id, sizeof(job->id), "%s", id);
    (void)pthread_mutex_lock(&w->lock);
    if (w->tail)
        w->tail->next = job;
    else
        w->head = job;
    w->tail = job;
    (void)pthread_cond_signal(&w->more);
    (void)pthread_mutex_unlock(&w->lock);
    return true;
}

int jobs_start(struct core *core, struct err *err)
{
    struct workers *w = &core->workers;
    for (unsigned i = 0; i < WORKERS; i++) {
        int r = thread_start(&w->threads[i], run, core, err);
        if (r < 0)
            return r;
        w->n_threads++;
    }
    return 0;
}

void jobs_stop(struct core *core)
{
    struct workers *w = &core->workers;
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_broadcast(&w->more);
    (void)pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->n_threads; i++)
        (void)pthread_join(w->threads[i], NULL);
    w->n_threads = 0;
    while (w->head) {
        struct job *job = w->head;
        w->head = job->next;
        free(job);
    }
    w->tail = NULL;
}

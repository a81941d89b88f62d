#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/archive.h"
#include "core/count.h"
#include "core/ending.h"
#include "core/event.h"
#include "core/frost.h"
#include "core/idle.h"
#include "core/life.h"
#include "core/pause.h"
#include "core/restart.h"
#include "core/timers.h"

#define LOG_MODULE "jobs"
#define HOLD_MS 1000        /* then the timers bring it up again */
#define DEATH_HOLD_MS 60000 /* nobody brings a death up again */
#define RECORD_KEEP_MS (24ll * 3600 * 1000)
#define RECORD_KEEP 10000

/* ---- what a job does ---- */

static int end_held(struct core *core, struct box *b, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    enum sandbox_state state = b->s.state;
    bool over = b->s.expires_ms && b->s.expires_ms <= clock_now_ms();
    enum sandbox_end how = b->s.spec.on_timeout;
    if (over && (state == SANDBOX_STOPPED || state == SANDBOX_PAUSED) && how != END_DELETE)
        b->s.expires_ms = 0; /* it is what it was to become */
    (void)pthread_mutex_unlock(&core->table.lock);

    if (state == SANDBOX_DELETING)
        return life_delete(core, b, CAUSE_DELETED, err);
    if (state == SANDBOX_PAUSING)
        return pause_settle(core, b, err);
    if (!over)
        return 0; /* it was changed meanwhile */
    if (how != END_DELETE && state != SANDBOX_RUNNING)
        return 0;
    return ending_run(core, b, how, CAUSE_TIMEOUT, err);
}

static void do_end(struct core *core, const char *id)
{
    struct err err = ERR_INIT;
    struct box *b;
    if (box_hold(core, NULL, id, HOLD_MS, &b) < 0)
        return;
    ending_settle(core, b, end_held(core, b, &err), &err);
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
        ending_settle(core, b, ending_run(core, b, END_STOP, CAUSE_CRASHED, &err), &err);
    if (died)
        restart_plan(core, b);
    box_release(core, b);
}

/* Something came for one whose work stands still. */
static void do_thaw(struct core *core, const char *id)
{
    struct err err = ERR_INIT;
    if (frost_lift(core, id, &err) < 0)
        log_warn("stays frozen sandbox=%s err=\"%s\"", id, err.msg);
}

static void do_prune(struct core *core)
{
    struct err err = ERR_INIT;
    int r = store_event_prune(core->store, EVENT_KEEP, &err);
    if (r >= 0)
        r = store_sandbox_prune(core->store, clock_now_ms() - RECORD_KEEP_MS, RECORD_KEEP, &err);
    usage_prune(core);
    pauses_drop_orphans(core);
    archives_collect_later(core);
    if (r < 0)
        log_warn("old records stay err=\"%s\"", err.msg);
}

static void do_tidy(struct core *core)
{
    struct err err = ERR_INIT;
    if (store_tidy(core->store, &err) < 0)
        log_warn("database not tidied err=\"%s\"", err.msg);
}

static void do_collect(struct core *core)
{
    struct archive_collected got;
    struct err err = ERR_INIT;
    int r = archive_collect(core, &got, &err);
    atomic_store(&core->archives.queued, false);
    if (r < 0)
        log_warn("object storage not cleared of what nobody needs err=\"%s\"", err.msg);
    else if (
        !got.busy) /* what was removed meanwhile; else the next archive's end, or the next prune */
        archives_collect_later(core);
}

static void do_disk(struct core *core)
{
    atomic_store(&core->disk.queued, false);
    disk_look(core);
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
    case JOB_IDLE: idle_look(core, job->id); break;
    case JOB_SAVE: autosave_run(core, job->id); break;
    case JOB_RESTART: restart_run(core, job->id); break;
    case JOB_THAW: do_thaw(core, job->id); return;
    case JOB_DEATH: do_death(core, job->id, job->life); return;
    case JOB_DISK: do_disk(core); return;
    case JOB_TIDY: do_tidy(core); return;
    case JOB_PRUNE: do_prune(core); return;
    case JOB_COLLECT: do_collect(core); return;
    case JOB_UNARCHIVE: archives_drop_of(core, job->id); return;
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

#include "core/timers.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/restart.h"
#include "core/table.h"
#include "core/wait.h"

#define SLEEP_MAX_MS 5000 /* the wall clock may be set: look again now and then */
#define BATCH 64          /* jobs made in one look */
#define TIDY_MS 5000
#define PRUNE_MS 60000
#define BUSY_AGAIN_MS 100 /* a box that is due and held: look again */

/* When something is to be done about it, and what; 0: nothing. The lock is held. */
static int64_t box_due(const struct box *b, enum job_kind *ret_kind)
{
    int64_t due = 0;
    *ret_kind = JOB_END;
    if (b->s.state == SANDBOX_DELETING || b->s.state == SANDBOX_PAUSING)
        due = b->retry_ms ? b->retry_ms : 1;
    else if (b->s.state == SANDBOX_RUNNING || b->s.state == SANDBOX_STOPPED ||
             b->s.state == SANDBOX_PAUSED)
        due = b->s.expires_ms;
    if (due && due < b->retry_ms)
        due = b->retry_ms;
    if (b->restart_ms && restart_wanted(&b->s) && (due == 0 || b->restart_ms < due)) {
        due = b->restart_ms;
        *ret_kind = JOB_RESTART;
    }
    if (b->s.state != SANDBOX_RUNNING)
        return due;
    if (b->idle_next_ms && (due == 0 || b->idle_next_ms < due)) {
        due = b->idle_next_ms;
        *ret_kind = JOB_IDLE;
    }
    /* What stands still changes nothing. */
    if (b->save_next_ms && !b->s.frozen_ms && (due == 0 || b->save_next_ms < due)) {
        due = b->save_next_ms;
        *ret_kind = JOB_SAVE;
    }
    return due;
}

struct due {
    char id[ID_SIZE];
    enum job_kind kind;
};

/* Fills `found` with what is due; returns how many, and when the next one is. */
static size_t look(struct core *core, int64_t now, struct due found[BATCH], int64_t *next)
{
    struct table *t = &core->table;
    size_t n = 0;
    (void)pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n && n < BATCH; i++) {
        struct box *b = t->sorted[i];
        enum job_kind kind;
        int64_t due = b->queued ? 0 : box_due(b, &kind);
        if (due == 0)
            continue;
        if (due <= now && b->busy)
            due = now + BUSY_AGAIN_MS;
        if (due <= now) {
            b->queued = true;
            found[n].kind = kind;
            memcpy(found[n++].id, b->s.id, ID_SIZE);
        } else if (due < *next) {
            *next = due;
        }
    }
    (void)pthread_mutex_unlock(&t->lock);
    return n;
}

static void *run(void *ctx)
{
    struct core *core = ctx;
    struct timers *ti = &core->timers;
    int64_t tidy = clock_mono_ms() + TIDY_MS, prune = clock_mono_ms();
    (void)pthread_mutex_lock(&ti->lock);
    while (!ti->stop) {
        ti->again = false;
        (void)pthread_mutex_unlock(&ti->lock);

        struct due found[BATCH];
        int64_t now = clock_now_ms(), next = now + SLEEP_MAX_MS, mono = clock_mono_ms();
        size_t n = look(core, now, found, &next);
        for (size_t i = 0; i < n; i++)
            if (!jobs_add(core, found[i].kind, found[i].id, 0))
                jobs_dequeued(core, found[i].id);
        if (mono >= tidy) {
            (void)jobs_add(core, JOB_TIDY, "", 0);
            if (!atomic_exchange(&core->disk.queued, true) && !jobs_add(core, JOB_DISK, "", 0))
                atomic_store(&core->disk.queued, false);
            tidy = mono + TIDY_MS;
        }
        if (mono >= prune) {
            (void)jobs_add(core, JOB_PRUNE, "", 0);
            prune = mono + PRUNE_MS;
        }

        (void)pthread_mutex_lock(&ti->lock);
        int64_t until = mono + (next - now);
        if (n < BATCH)
            while (!ti->stop && !ti->again)
                if (wait_until(&ti->wake, &ti->lock, until) == ETIMEDOUT)
                    break;
    }
    (void)pthread_mutex_unlock(&ti->lock);
    return NULL;
}

int timers_start(struct core *core, struct err *err)
{
    int r = thread_start(&core->timers.thread, run, core, err);
    core->timers.started = r >= 0;
    return r;
}

void timers_stop(struct core *core)
{
    struct timers *ti = &core->timers;
    if (!ti->started)
        return;
    (void)pthread_mutex_lock(&ti->lock);
    ti->stop = true;
    (void)pthread_cond_signal(&ti->wake);
    (void)pthread_mutex_unlock(&ti->lock);
    (void)pthread_join(ti->thread, NULL);
    ti->started = false;
}

void timers_changed(struct core *core)
{
    struct timers *ti = &core->timers;
    (void)pthread_mutex_lock(&ti->lock);
    ti->again = true;
    (void)pthread_cond_signal(&ti->wake);
    (void)pthread_mutex_unlock(&ti->lock);
}

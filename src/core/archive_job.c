#include "core/archive_job.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/private.h"
#include "core/wait.h"

struct archive_job {
    struct core *core;
    enum archive_work work;
    char *owner, *who;
    bool keep_local, started;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct archive_progress at;
    bool news, ended, told_end, cancel;
    int r;
    struct err err;
    struct checkpoint checkpoint;
    struct sandbox sandbox;
};

static bool on_told(void *ctx, const struct archive_progress *p)
{
    struct archive_job *j = ctx;
    (void)pthread_mutex_lock(&j->lock);
    j->at = *p;
    j->news = true;
    bool go_on = !j->cancel;
    (void)pthread_cond_broadcast(&j->changed);
    (void)pthread_mutex_unlock(&j->lock);
    return go_on;
}

static int work(struct archive_job *j, struct err *err)
{
    const struct archive_tell tell = { on_told, j };
    switch (j->work) {
    case ARCHIVE_PUT:
        return archive_put(j->core, j->owner, j->who, j->keep_local, &tell, &j->checkpoint, err);
    case ARCHIVE_FETCH: return archive_fetch(j->core, j->owner, j->who, &tell, &j->checkpoint, err);
    case ARCHIVE_SANDBOX:
        return archive_sandbox(j->core, j->owner, j->who, &tell, &j->sandbox, err);
    case ARCHIVE_IMPORT:
        return archive_import(j->core, j->owner, j->who, &tell, &j->checkpoint, err);
    }
    return -EPROTO;
}

static void *run(void *arg)
{
    struct archive_job *j = arg;
    struct err err = ERR_INIT;
    int r = work(j, &err);
    (void)pthread_mutex_lock(&j->lock);
    j->r = r;
    j->err = err;
    j->ended = true;
    (void)pthread_cond_broadcast(&j->changed);
    (void)pthread_mutex_unlock(&j->lock);
    return NULL;
}

int archive_job_start(struct core *core, const struct archive_ask *ask, struct archive_job **ret_j,
                      struct err *err)
{
    _cleanup_(archive_job_freep) struct archive_job *j = calloc(1, sizeof(*j));
    if (!j)
        return err_set(err, ENOMEM, "out of memory");
    (void)pthread_mutex_init(&j->lock, NULL);
    wait_init(&j->changed);
    j->core = core;
    j->work = ask->work;
    j->keep_local = ask->keep_local;
    j->at.stage = "wait";
    j->owner = strdup(ask->owner);
    j->who = strdup(ask->who);
    if (!j->owner || !j->who)
        return err_set(err, ENOMEM, "out of memory");
    int r = thread_start(&j->thread, run, j, err);
    if (r < 0)
        return r;
    j->started = true;
    *ret_j = take_ptr(j);
    return 0;
}

static void tell_end(struct archive_job *j, struct archive_event *ev)
{
    j->told_end = true;
    ev->type = j->r < 0 ? ARCHIVE_FAILED : ARCHIVE_DONE;
    ev->err = j->err;
    if (j->r < 0 && !ev->err.code)
        ev->err.code = -j->r;
    if (j->r >= 0 && j->work == ARCHIVE_SANDBOX)
        ev->sandbox = &j->sandbox;
    else if (j->r >= 0)
        ev->checkpoint = &j->checkpoint;
}

int archive_job_next(struct archive_job *j, int timeout_ms, struct archive_event *ret_event)
{
    int r = 0;
    (void)pthread_mutex_lock(&j->lock);
    if (!j->news && !j->ended)
        (void)wait_until(&j->changed, &j->lock, clock_mono_ms() + timeout_ms);
    *ret_event = (struct archive_event){ .type = ARCHIVE_PROGRESS, .progress = j->at };
    if (j->ended && !j->told_end) {
        tell_end(j, ret_event);
        r = 1;
    } else if (j->news && !j->ended) {
        j->news = false;
        r = 1;
    }
    (void)pthread_mutex_unlock(&j->lock);
    return r;
}

void archive_job_free(struct archive_job *j)
{
    if (!j)
        return;
    (void)pthread_mutex_lock(&j->lock);
    j->cancel = true;
    (void)pthread_mutex_unlock(&j->lock);
    if (j->started)
        (void)pthread_join(j->thread, NULL);
    checkpoint_done(&j->checkpoint);
    sandbox_done(&j->sandbox);
    (void)pthread_mutex_destroy(&j->lock);
    (void)pthread_cond_destroy(&j->changed);
    free(j->owner);
    free(j->who);
    free(j);
}

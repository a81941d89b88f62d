#include "front/http/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define IDLE_S 10

struct job {
    struct job *next;
    void (*fn)(void *arg);
    void *arg;
};

struct workers {
    unsigned max;
    pthread_attr_t attr;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t come, gone;
    struct job *first, **last;
    unsigned n, idle, queued;
    bool stop;
};

int workers_new(unsigned max, size_t stack_bytes, struct workers **ret_w, struct err *err)
{
    struct workers *w = calloc(1, sizeof(*w));
    pthread_condattr_t attr;
    if (!w)
        return err_set(err, ENOMEM, "cannot allocate the workers");
    w->max = max;
    w->last = &w->first;
    (void)pthread_attr_init(&w->attr);
    (void)pthread_attr_setstacksize(&w->attr, stack_bytes);
    (void)pthread_attr_setdetachstate(&w->attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->come, &attr);
    (void)pthread_cond_init(&w->gone, &attr);
    (void)pthread_condattr_destroy(&attr);
    *ret_w = w;
    return 0;
}

/* With the lock held: wait for the next job; NULL: this thread is no longer needed. */
static struct job *next_job(struct workers *w)
{
    struct timespec end;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += IDLE_S;
    w->idle++;
    int r = 0;
    while (!w->first && !w->stop && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&w->come, &w->lock, &end);
    w->idle--;
    struct job *job = w->first;
    if (!job)
        return NULL;
    w->first = job->next;
    if (!w->first)
        w->last = &w->first;
    w->queued--;
    return job;
}

static void *work(void *arg)
{
    struct workers *w = arg;
    struct job *job;
    (void)pthread_mutex_lock(&w->lock);
    while ((job = next_job(w))) {
        (void)pthread_mutex_unlock(&w->lock);
        job->fn(job->arg);
        free(job);
        (void)pthread_mutex_lock(&w->lock);
    }
    w->n--;
    (void)pthread_cond_signal(&w->gone);
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* With the lock held: wake or start a thread for one more job. */
static int find_worker(struct workers *w)
{
    pthread_t thread;
    if (w->idle > w->queued) {
        (void)pthread_cond_signal(&w->come);
        return 0;
    }
    if (w->stop || w->n >= w->max || pthread_create(&thread, &w->attr, work, w))
        return -EAGAIN;
    w->n++;
    return 0;
}

int workers_start(struct workers *w, void (*fn)(void *arg), void *arg)
{
    struct job *job = malloc(sizeof(*job));
    if (!job)
        return -ENOMEM;
    *job = (struct job){ NULL, fn, arg };
    (void)pthread_mutex_lock(&w->lock);
    int r = find_worker(w);
    if (r >= 0) {
        *w->last = job;
        w->last = &job->next;
        w->queued++;
    }
    (void)pthread_mutex_unlock(&w->lock);
    if (r < 0)
        free(job);
    return r;
}

bool workers_spare(struct workers *w)
{
    (void)pthread_mutex_lock(&w->lock);
    bool spare = w->n - w->idle < w->max / 2;
    (void)pthread_mutex_unlock(&w->lock);
    return spare;
}

void workers_free(struct workers *w)
{
    if (!w)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_broadcast(&w->come);
    while (w->n > 0)
        (void)pthread_cond_wait(&w->gone, &w->lock);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_cond_destroy(&w->come);
    (void)pthread_cond_destroy(&w->gone);
    (void)pthread_mutex_destroy(&w->lock);
    (void)pthread_attr_destroy(&w->attr);
    free(w);
}

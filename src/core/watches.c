#include "core/watches.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/private.h"

#define LOOK_MS 5000  /* how often a quiet watch looks whether anybody still asks */
#define SLICE_MS 1000 /* how often a waiting poll looks whether its client is still there */

struct kept {
    uint64_t n;
    char sandbox[ID_SIZE];
    struct file_watch *watch;
    char *note;
    /* under the lock */
    struct file_change *queue; /* WATCH_QUEUE_MAX places once the first came */
    size_t head, len;
    uint64_t dropped;
    int64_t asked_ms; /* monotonic: the last poll's end */
    unsigned users;   /* polls that look at it */
    bool removed;     /* the thread shall end; nobody finds it any more */
    bool ended;       /* the thread has nothing more to tell */
    struct err why;
    struct kept *next;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct kept *first;
    uint64_t last_n;
    unsigned threads;
    bool stopping;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void kept_free(struct kept *k)
{
    for (size_t i = 0; i < k->len; i++)
        file_change_done(&k->queue[(k->head + i) % WATCH_QUEUE_MAX]);
    free(k->queue);
    free(k->note);
    file_watch_free(k->watch);
    free(k);
}

/* ---- the thread of one ---- */

/* Under the lock. */
static void push(struct kept *k, struct file_change *c)
{
    if (!k->queue)
        k->queue = calloc(WATCH_QUEUE_MAX, sizeof(*k->queue));
    if (!k->queue || k->len == WATCH_QUEUE_MAX) {
        k->dropped++;
        file_change_done(c);
        return;
    }
    k->queue[(k->head + k->len++) % WATCH_QUEUE_MAX] = *c;
}

/* Under the lock: out of the list, and gone once no poll looks at it. */
static void retire(struct kept *k)
{
    for (struct kept **at = &table.first; *at; at = &(*at)->next)
        if (*at == k) {
            *at = k->next;
            break;
        }
    k->removed = true;
    (void)pthread_cond_broadcast(&table.changed);
    while (k->users > 0)
        (void)pthread_cond_wait(&table.changed, &table.lock);
}

/* Under the lock: what was watched is gone, and the reason waits to be read. */
static void linger(const struct kept *k)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WATCH_IDLE_MS / 1000;
    while (!k->removed && !table.stopping)
        if (pthread_cond_timedwait(&table.changed, &table.lock, &until) == ETIMEDOUT)
            return;
}

static void *keep(void *arg)
{
    struct kept *k = arg;
    struct err err = ERR_INIT;
    int r = 0;

    while (r >= 0 || r == -ETIMEDOUT) {
        struct file_change c;
        r = file_watch_next(k->watch, LOOK_MS, -1, &c, &err);
        (void)pthread_mutex_lock(&table.lock);
        if (r > 0) {
            push(k, &c);
            (void)pthread_cond_broadcast(&table.changed);
        }
        bool idle = k->users == 0 && clock_mono_ms() - k->asked_ms > WATCH_IDLE_MS;
        if (k->removed || idle || table.stopping)
            r = -ECANCELED;
        (void)pthread_mutex_unlock(&table.lock);
    }
    (void)pthread_mutex_lock(&table.lock);
    k->why = err;
    k->ended = true;
    (void)pthread_cond_broadcast(&table.changed);
    if (r == -ENOENT)
        linger(k);
    retire(k);
    kept_free(k);
    table.threads--;
    (void)pthread_cond_broadcast(&table.changed);
    (void)pthread_mutex_unlock(&table.lock);
    return NULL;
}

/* ---- for others ---- */

static struct kept *find(const char *sandbox, uint64_t n)
{
    for (struct kept *k = table.first; k; k = k->next)
        if (k->n == n && strcmp(k->sandbox, sandbox) == 0)
            return k;
    return NULL;
}

static int start(struct kept *k, struct err *err)
{
    size_t n = 0;
    pthread_t thread;
    for (struct kept *o = table.first; o; o = o->next)
        n += strcmp(o->sandbox, k->sandbox) == 0;
    if (n >= WATCHES_PER_SANDBOX)
        return err_fail(err, FAIL_TOO_MANY_WATCHES,
                        "sandbox '%s' has %d watches already: delete one, or follow a stream",
                        k->sandbox, WATCHES_PER_SANDBOX);
    if (table.stopping)
        return err_set(err, ESHUTDOWN, "the daemon is stopping");
    int r = thread_start(&thread, keep, k, err);
    if (r < 0)
        return r;
    (void)pthread_detach(thread);
    k->n = ++table.last_n;
    k->next = table.first;
    table.first = k;
    table.threads++;
    return 0;
}

int watches_add(struct core *core, const struct sandbox *s, const char *user, const char *path,
                uint64_t flags, const char *note, uint64_t *ret_n, struct err *err)
{
    struct kept *k = calloc(1, sizeof(*k));
    if (!k || (note && !(k->note = strdup(note)))) {
        free(k);
        return err_set(err, ENOMEM, "cannot allocate a watch");
    }
    memcpy(k->sandbox, s->id, sizeof(k->sandbox));
    k->asked_ms = clock_mono_ms();
    int r = file_watch_open(core, s, user, path, flags, -1, &k->watch, err);
    (void)pthread_mutex_lock(&table.lock);
    if (r >= 0)
        r = start(k, err);
    if (r >= 0)
        *ret_n = k->n;
    else
        kept_free(k);
    (void)pthread_mutex_unlock(&table.lock);
    return r;
}

static int not_found(struct err *err, uint64_t n)
{
    return err_fail(err, FAIL_WATCH_NOT_FOUND,
                    "there is no watch %llu: one ends when it is not asked for ten minutes",
                    (unsigned long long)n);
}

/* Under the lock: until there is something, or waiting is over. */
static int wait_for_some(struct kept *k, int wait_ms, int hangup_fd)
{
    int64_t deadline = clock_mono_ms() + wait_ms;
    while (k->len == 0 && !k->ended && !k->removed && !table.stopping) {
        int64_t left = deadline - clock_mono_ms();
        if (left <= 0)
            return 0;
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        int64_t slice = left < SLICE_MS ? left : SLICE_MS;
        until.tv_nsec += (long)(slice % 1000) * 1000000;
        until.tv_sec += (time_t)(slice / 1000) + until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&table.changed, &table.lock, &until);
        if (hangup_fd >= 0 && fd_wait(hangup_fd, POLLRDHUP, 0) != 0)
            return -ECANCELED;
    }
    return 0;
}

static int take(struct kept *k, struct watches_batch *ret_b, struct err *err)
{
    struct watches_batch b = { .n = k->len, .dropped = k->dropped };
    if (k->len == 0 && k->ended)
        return k->why.failure
                   ? err_fail(err, FAIL_WATCH_NOT_FOUND, "the watch has ended: %.300s", k->why.msg)
                   : not_found(err, k->n);
    b.changes = k->len ? calloc(k->len, sizeof(*b.changes)) : NULL;
    b.note = k->note ? strdup(k->note) : NULL;
    if ((k->len && !b.changes) || (k->note && !b.note)) {
        free(b.changes);
        free(b.note);
        return err_set(err, ENOMEM, "cannot allocate events");
    }
    for (; k->len > 0; k->len--, k->head = (k->head + 1) % WATCH_QUEUE_MAX)
        b.changes[b.n - k->len] = k->queue[k->head];
    k->dropped = 0;
    *ret_b = b;
    return 0;
}

int watches_poll(struct core *core, const char *sandbox, uint64_t n, int wait_ms, int hangup_fd,
                 struct watches_batch *ret_b, struct err *err)
{
    (void)pthread_mutex_lock(&table.lock);
    struct kept *k = find(sandbox, n);
    int r = k ? 0 : not_found(err, n);
    if (k) {
        k->users++;
        r = wait_for_some(k, wait_ms, hangup_fd);
        if (r >= 0)
            r = take(k, ret_b, err);
        k->asked_ms = clock_mono_ms();
        k->users--;
        if (r == -ENOENT)
            k->removed = true; /* it has told all there was to tell */
        (void)pthread_cond_broadcast(&table.changed);
    }
    (void)pthread_mutex_unlock(&table.lock);
    return r;
}

void watches_batch_done(struct watches_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        file_change_done(&b->changes[i]);
    free(b->changes);
    free(b->note);
    *b = (struct watches_batch){ 0 };
}

int watches_remove(struct core *core, const char *sandbox, uint64_t n, struct err *err)
{
    (void)pthread_mutex_lock(&table.lock);
    struct kept *k = find(sandbox, n);
    if (k) {
        k->removed = true;
        file_watch_cancel(k->watch); /* ends what its thread waits for */
        (void)pthread_cond_broadcast(&table.changed);
        for (struct kept **at = &table.first; *at; at = &(*at)->next)
            if (*at == k) {
                *at = k->next;
                break;
            }
    }
    (void)pthread_mutex_unlock(&table.lock);
    return k ? 0 : not_found(err, n);
}

void watches_stop(struct core *core)
{
    (void)pthread_mutex_lock(&table.lock);
    table.stopping = true;
    for (struct kept *k = table.first; k; k = k->next)
        file_watch_cancel(k->watch);
    (void)pthread_cond_broadcast(&table.changed);
    while (table.threads > 0)
        (void)pthread_cond_wait(&table.changed, &table.lock);
    (void)pthread_mutex_unlock(&table.lock);
}

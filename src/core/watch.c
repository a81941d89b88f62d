#include "core/watch.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/count.h"
#include "core/keeper.h"
#include "core/pool.h"
#include "core/table.h"
#include "core/timers.h"

#define LOG_MODULE "watch"
#define BACKOFF_FIRST_MS 20
#define BACKOFF_MAX_MS 1000
#define LOOK_MS 60000 /* without a message: no death stays unseen for longer */

struct life_id {
    char id[ID_SIZE];
    unsigned life;
};

/* What should run now. A box that is busy is its holder's: it looks at the keeper's answer. */
static int should_run(struct core *core, struct life_id **ret_ids, size_t *ret_n)
{
    struct table *t = &core->table;
    size_t n = 0;
    (void)pthread_mutex_lock(&t->lock);
    struct life_id *ids = calloc(t->n + 1, sizeof(*ids));
    for (size_t i = 0; ids && i < t->n; i++) {
        const struct box *b = t->sorted[i];
        if (b->s.state == SANDBOX_RUNNING) {
            memcpy(ids[n].id, b->s.id, ID_SIZE);
            ids[n++].life = b->life;
        }
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (!ids)
        return -ENOMEM;
    *ret_ids = ids;
    *ret_n = n;
    return 0;
}

static bool runs(const struct keeper_row *rows, size_t n, const char *id)
{
    const struct keeper_row *found = keeper_rows_find(rows, n, id);
    return found && found->running;
}

static int look(struct core *core)
{
    struct err err = ERR_INIT;
    _cleanup_free_ struct life_id *ids = NULL;
    _cleanup_free_ char(*cells)[ID_SIZE] = NULL;
    _cleanup_free_ struct keeper_row *rows = NULL;
    size_t n_ids = 0, n_cells = 0, n_rows = 0;
    int64_t now = clock_mono_ms();
    /* First what should be, then what is: what is made in between is not missed as dead. */
    int r = should_run(core, &ids, &n_ids);
    if (r >= 0)
        r = warm_pool_ids(core, &cells, &n_cells);
    if (r >= 0)
        r = keeper_ask_list(core, KEEPER_LIST, &rows, &n_rows, &err);
    if (r < 0)
        return r;
    keeper_rows_sort(rows, n_rows);
    for (size_t i = 0; i < n_ids; i++)
        if (!runs(rows, n_rows, ids[i].id)) {
            log_warn("init died by itself sandbox=%s", ids[i].id);
            (void)jobs_add(core, JOB_DEATH, ids[i].id, ids[i].life);
        }
    for (size_t i = 0; i < n_cells; i++)
        if (!runs(rows, n_rows, cells[i]) && !warm_pool_died(core, cells[i]))
            (void)jobs_add(core, JOB_DEATH, cells[i], 1); /* handed out meanwhile */
    volumes_look(core, now, rows, n_rows);
    return 0;
}

/* False: it is time to end. */
static bool pause_for(struct core *core, int ms)
{
    return fd_wait(core->watch.stop_fd, POLLIN, ms) == 0;
}

/* Reads messages until the connection breaks or it is time to end. */
static void follow(struct core *core, int fd)
{
    struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
                           { .fd = core->watch.stop_fd, .events = POLLIN } };
    bool news = true; /* deaths from before we were connected */
    for (;;) {
        int n = poll(p, 2, news ? 0 : LOOK_MS);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        if (p[1].revents)
            return;
        if (p[0].revents) {
            struct keeper_reply reply;
            if (keeper_ask_next(fd, &reply) < 0 || reply.result < 0)
                return;
            if (reply.volume[0]) {
                volumes_bucket_lost(core, reply.id, reply.volume);
                continue;
            }
            if (reply.id[0])
                usage_died(core, reply.id, &reply.usage);
            news = true; /* one look after the last of a burst */
            continue;
        }
        if (look(core) < 0)
            return;
        news = false;
    }
}

static void *run(void *ctx)
{
    struct core *core = ctx;
    struct keeper_request req;
    memset(&req, 0, sizeof(req));
    req.version = KEEPER_VERSION;
    req.op = KEEPER_WATCH;
    int backoff = BACKOFF_FIRST_MS;
    do {
        _cleanup_fd_ int fd = -1;
        if (keeper_ask_begin(core, &req, NULL, 0, &fd, NULL) >= 0) {
            follow(core, fd);
            backoff = BACKOFF_FIRST_MS;
        } else if (backoff < BACKOFF_MAX_MS) {
            backoff *= 2;
        }
    } while (pause_for(core, backoff));
    return NULL;
}

int watch_start(struct core *core, struct err *err)
{
    struct watch *w = &core->watch;
    w->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (w->stop_fd < 0)
        return err_set(err, errno, "cannot make an eventfd");
    int r = thread_start(&w->thread, run, core, err);
    w->started = r >= 0;
    return r;
}

void watch_stop(struct core *core)
{
    struct watch *w = &core->watch;
    if (w->started) {
        uint64_t one = 1;
        if (write(w->stop_fd, &one, sizeof(one)) < 0)
            log_error("cannot end the watch");
        (void)pthread_join(w->thread, NULL);
        w->started = false;
    }
    if (w->stop_fd >= 0)
        (void)close(w->stop_fd);
    w->stop_fd = -1;
}

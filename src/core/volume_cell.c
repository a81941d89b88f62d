/* The cells through which volumes are reached outside of sandboxes. One a volume, shared by all
 * requests; it holds an empty root, the volume below it, and its files are worked on with the volume as
 * their root. These cells are in no table: what a daemon that died leaves is unknown to the next,
 * and removed. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/keeper.h"
#include "core/volume_private.h"
#include "core/wait.h"

#define LOG_MODULE "volume"
#define CELL_ROOT "/volume"
#define CELL_USER "root"
#define CELL_MEMORY (256ull * 1024 * 1024) /* page cache is counted too */
#define CELL_DISK (16ull * 1024 * 1024)    /* of its own: it writes nothing outside the volume */
#define CELL_CPU_MILLIS 2000
#define CELL_PIDS 64
#define IDLE_MS 20000 /* a client that works on files does not pause for longer */
#define LONG_MS 3600000
#define RETRY_MS 5000

static struct volume_entry *by_cell(struct core *core, const char *cell)
{
    struct volumes *vs = &core->volumes;
    for (size_t i = 0; i < vs->n; i++)
        if (vs->items[i].state != VOLUME_CELL_NONE && strcmp(vs->items[i].cell, cell) == 0)
            return &vs->items[i];
    return NULL;
}

static int make_cell(struct core *core, const char *volume, const char *cell, struct err *err)
{
    static const struct keeper_limits limits = { .memory_bytes = CELL_MEMORY,
                                                 .disk_bytes = CELL_DISK,
                                                 .cpu_millis = CELL_CPU_MILLIS,
                                                 .pids = CELL_PIDS };
    int r = keeper_ask_make(core, cell, KEEPER_IMAGE_NONE, &limits, err);
    if (r >= 0)
        r = volumes_show(core, cell, volume, CELL_ROOT, false, err);
    if (r < 0 && keeper_ask_cell(core, KEEPER_DELETE, cell, NULL) < 0)
        log_warn("a volume's cell stays until the next start cell=%s", cell);
    return r;
}

/* Waits while it comes or goes. 0: `e` is up; 1: the caller shall make it. The lock is held. */
static int await(struct core *core, const char *volume, struct volume_entry **ret_e)
{
    for (;;) {
        struct volume_entry *e = volumes_find(core, NULL, volume);
        if (!e)
            return -ENOENT;
        *ret_e = e;
        if (e->state == VOLUME_CELL_NONE && !e->restoring)
            return 1;
        if (e->state == VOLUME_CELL_UP && !e->died && !e->restoring)
            return 0;
        (void)pthread_cond_wait(&core->volumes.changed, &core->table.lock);
    }
}

/* The new cell, in a place that was kept for it. The lock is held. */
static int come_up(struct core *core, struct volume_entry *e, struct err *err)
{
    char volume[ID_SIZE], cell[ID_SIZE];
    if (id_random(cell) < 0)
        return err_set(err, EIO, "cannot make an id");
    memcpy(volume, e->v.id, ID_SIZE);
    memcpy(e->cell, cell, ID_SIZE);
    e->state = VOLUME_CELL_COMING;
    e->died = false;
    e->inside++; /* nobody removes it meanwhile */
    (void)pthread_mutex_unlock(&core->table.lock);
    int r = make_cell(core, volume, cell, err);
    (void)pthread_mutex_lock(&core->table.lock);
    e = by_cell(core, cell);
    e->inside--;
    e->state = r < 0 ? VOLUME_CELL_NONE : VOLUME_CELL_UP;
    e->up_ms = e->idle_ms = clock_mono_ms();
    (void)pthread_cond_broadcast(&core->volumes.changed);
    return r;
}

static int fill(const struct volume_entry *e, struct sandbox *ret_s)
{
    struct sandbox s = { .state = SANDBOX_RUNNING, .root = CELL_ROOT };
    sandbox_spec_init(&s.spec);
    s.spec.user = strdup(CELL_USER);
    if (!s.spec.user)
        return -ENOMEM;
    memcpy(s.id, e->cell, ID_SIZE);
    memcpy(s.owner, e->v.owner, sizeof(s.owner));
    *ret_s = s;
    return 0;
}

int volume_enter(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                 struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = volumes_find(core, owner, who);
    int r = e ? 1 : -ENOENT;
    char id[ID_SIZE];
    if (e)
        memcpy(id, e->v.id, ID_SIZE);
    while (r > 0) {
        r = await(core, id, &e);
        if (r > 0) {
            r = come_up(core, e, err);
            r = r < 0 ? r : 1; /* and look again: the table may have moved */
        } else {
            break;
        }
    }
    if (r == 0)
        r = fill(e, ret_s);
    if (r == 0)
        e->inside++;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r == -ENOENT && !(err && err->code))
        return volume_missing(err, who);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate a volume") : r;
}

void volume_leave(struct core *core, const struct sandbox *s)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = by_cell(core, s->id);
    if (e && e->inside > 0 && --e->inside == 0) {
        e->idle_ms = clock_mono_ms();
        (void)pthread_cond_broadcast(&core->volumes.changed);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
}

void volumes_look(struct core *core, int64_t before_ms, const struct keeper_row *rows, size_t n)
{
    struct volumes *vs = &core->volumes;
    (void)pthread_mutex_lock(&core->table.lock);
    for (size_t i = 0; i < vs->n; i++) {
        struct volume_entry *e = &vs->items[i];
        if (e->state != VOLUME_CELL_UP || e->up_ms >= before_ms)
            continue;
        const struct keeper_row *row = keeper_rows_find(rows, n, e->cell);
        if (!row || !row->running) {
            log_warn("the cell of a volume died volume=%s", e->v.id);
            e->died = true;
            (void)pthread_cond_broadcast(&vs->changed);
        }
    }
    volumes_note_buckets(core);
    (void)pthread_mutex_unlock(&core->table.lock);
}

/* ---- the thread that ends them ---- */

/* NULL, and when to look again; or one whose time is over. */
static struct volume_entry *next_over(struct volumes *vs, int64_t now, int64_t *ret_until)
{
    int64_t until = now + LONG_MS;
    for (size_t i = 0; i < vs->n; i++) {
        struct volume_entry *e = &vs->items[i];
        if (e->state != VOLUME_CELL_UP || e->inside || e->unsure || e->restoring)
            continue;
        int64_t end = e->died ? now : e->idle_ms + IDLE_MS;
        if (end <= now)
            return e;
        if (end < until)
            until = end;
    }
    *ret_until = until;
    return NULL;
}

static void end_one(struct core *core, struct volume_entry *e)
{
    char cell[ID_SIZE];
    memcpy(cell, e->cell, ID_SIZE);
    e->state = VOLUME_CELL_GOING;
    (void)pthread_mutex_unlock(&core->table.lock);
    struct err err = ERR_INIT;
    int r = keeper_ask_cell(core, KEEPER_DELETE, cell, &err);
    if (r < 0)
        log_warn("a volume's cell does not end yet cell=%s err=\"%s\"", cell, err.msg);
    (void)pthread_mutex_lock(&core->table.lock);
    e = by_cell(core, cell);
    if (!e)
        return;
    e->state = r < 0 ? VOLUME_CELL_UP : VOLUME_CELL_NONE;
    e->idle_ms = clock_mono_ms() - IDLE_MS + RETRY_MS;
    (void)pthread_cond_broadcast(&core->volumes.changed);
}

static void *run(void *ctx)
{
    struct core *core = ctx;
    struct volumes *vs = &core->volumes;
    int64_t until;
    (void)pthread_mutex_lock(&core->table.lock);
    while (!vs->stop) {
        struct volume_entry *e = next_over(vs, clock_mono_ms(), &until);
        if (e)
            end_one(core, e);
        else if (!volumes_find_lost(core))
            (void)wait_until(&vs->changed, &core->table.lock, volumes_next_lost(vs, until));
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    return NULL;
}

int volumes_start(struct core *core, struct err *err)
{
    int r = thread_start(&core->volumes.thread, run, core, err);
    core->volumes.started = r >= 0;
    return r;
}

void volumes_stop(struct core *core)
{
    struct volumes *vs = &core->volumes;
    if (!vs->started)
        return;
    (void)pthread_mutex_lock(&core->table.lock);
    vs->stop = true;
    (void)pthread_cond_broadcast(&vs->changed);
    (void)pthread_mutex_unlock(&core->table.lock);
    (void)pthread_join(vs->thread, NULL);
    vs->started = false;
}

#include "core/volume_checkpoint.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/disk.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/table.h"
#include "core/volume_private.h"

#define LOG_MODULE "volume"
#define TAKE_TRIES 3 /* a keeper that dies meanwhile is started again */

static int missing(struct err *err, const char *volume, const char *who)
{
    return err_fail(err, FAIL_CHECKPOINT_NOT_FOUND,
                    "volume '%.64s' has no checkpoint '%.64s'; `warren volume checkpoints` shows "
                    "what there is",
                    volume, who);
}

/* ---- with the table's lock held ---- */

static struct volume_checkpoint *find(struct core *core, const char *volume_id, const char *who)
{
    struct volumes *vs = &core->volumes;
    for (size_t i = 0; i < vs->n_points; i++) {
        struct volume_checkpoint *c = &vs->points[i];
        if (strcmp(c->volume, volume_id) == 0 &&
            (strcmp(c->id, who) == 0 || (c->name[0] && strcmp(c->name, who) == 0)))
            return c;
    }
    return NULL;
}

static int add(struct volumes *vs, const struct volume_checkpoint *c)
{
    struct volume_checkpoint *points = reallocarray(vs->points, vs->n_points + 1, sizeof(*points));
    if (!points)
        return -ENOMEM;
    vs->points = points;
    vs->points[vs->n_points++] = *c;
    return 0;
}

static void drop(struct volumes *vs, struct volume_checkpoint *c)
{
    size_t at = (size_t)(c - vs->points);
    memmove(c, c + 1, (vs->n_points - at - 1) * sizeof(*c));
    vs->n_points--;
}

bool volumes_sees(const struct box *b, const char *volume_id)
{
    for (size_t k = 0; k < b->s.spec.n_mounts; k++)
        if (strcmp(b->s.spec.mounts[k].volume, volume_id) == 0)
            return true;
    return false;
}

bool volumes_at_rest(const struct box *b)
{
    return (b->s.state == SANDBOX_STOPPED && !b->starting) || b->s.state == SANDBOX_GONE;
}

/* ---- at rest ---- */

static int save(struct core *core, const struct volume_checkpoint *c, struct err *err)
{
    const struct store_volume_checkpoint row = { .id = c->id,
                                                 .owner = c->owner,
                                                 .volume = c->volume,
                                                 .name = c->name,
                                                 .comment = c->comment,
                                                 .created_ms = c->created_ms,
                                                 .bytes = (int64_t)c->bytes };
    return store_volume_checkpoint_put(core->store, &row, err);
}

static int load_row(void *ctx, const struct store_volume_checkpoint *row)
{
    struct core *core = ctx;
    struct volume_checkpoint c = { .created_ms = row->created_ms, .bytes = (uint64_t)row->bytes };
    if (!id_valid(row->id) || !id_valid(row->volume) || !name_valid(row->owner) ||
        strlen(row->name) > NAME_MAX_LEN || strlen(row->comment) > VOLUME_COMMENT_MAX) {
        log_error("the record of a volume's checkpoint was skipped");
        return 0;
    }
    if (!volumes_by_id(core, row->volume)) /* its volume's end was cut off here */
        return 0;
    memcpy(c.id, row->id, ID_SIZE);
    memcpy(c.volume, row->volume, ID_SIZE);
    (void)snprintf(c.owner, sizeof(c.owner), "%s", row->owner);
    (void)snprintf(c.name, sizeof(c.name), "%s", row->name);
    (void)snprintf(c.comment, sizeof(c.comment), "%s", row->comment);
    return add(&core->volumes, &c);
}

int volume_checkpoints_load(struct core *core, struct err *err)
{
    return store_volume_checkpoint_each(core->store, load_row, core, err);
}

static int forget_files(struct core *core, const char *id, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_VOLUME_POINT_RM };
    memcpy(q.point, id, sizeof(q.point));
    return keeper_ask(core, &q, NULL, err);
}

/* A row comes after its files and goes before them: files without a row are nobody's. */
int volume_checkpoints_adopt(struct core *core, struct err *err)
{
    _cleanup_free_ struct keeper_row *rows = NULL;
    const struct volumes *vs = &core->volumes;
    size_t n = 0;
    int r = keeper_ask_list(core, KEEPER_VOLUME_POINT_LIST, &rows, &n, err);
    for (size_t i = 0; r >= 0 && i < n; i++) {
        bool known = false;
        for (size_t k = 0; k < vs->n_points && !known; k++)
            known = strcmp(vs->points[k].id, rows[i].id) == 0;
        if (known)
            continue;
        (void)store_volume_checkpoint_remove(core->store, rows[i].id, NULL);
        if (forget_files(core, rows[i].id, NULL) < 0)
            log_warn("files of no checkpoint stay checkpoint=%s", rows[i].id);
    }
    return r;
}

static void remove_one(struct core *core, const char *id)
{
    if (store_volume_checkpoint_remove(core->store, id, NULL) < 0 ||
        forget_files(core, id, NULL) < 0)
        log_warn("a checkpoint stays until the next start checkpoint=%s", id);
}

void volume_checkpoints_drop(struct core *core, const char *volume)
{
    struct volumes *vs = &core->volumes;
    for (bool more = true; more;) {
        char id[ID_SIZE] = "";
        (void)pthread_mutex_lock(&core->table.lock);
        for (size_t i = 0; i < vs->n_points && !id[0]; i++)
            if (strcmp(vs->points[i].volume, volume) == 0) {
                memcpy(id, vs->points[i].id, ID_SIZE);
                drop(vs, &vs->points[i]);
            }
        (void)pthread_mutex_unlock(&core->table.lock);
        more = id[0] != '\0';
        if (more)
            remove_one(core, id);
    }
}

/* ---- making one ---- */

static void tell(struct core *core, const struct volume_checkpoint *c, const char *type)
{
    char data[NAME_MAX_LEN + 2 * ID_SIZE + 64];
    int n = snprintf(data, sizeof(data), "{\"id\":\"%s\",\"name\":\"%s\",\"volume\":\"%s\"}", c->id,
                     c->name, c->volume);
    event_emit(core, c->owner, NULL, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_info("%s checkpoint=%s volume=%s frozen_us=%llu", type, c->id, c->volume,
             (unsigned long long)c->frozen_us);
}

/* The ids of those that see it, each ID_SIZE bytes, for the keeper. */
static int list_cells(struct core *core, const char *volume, struct err *err)
{
    _cleanup_fd_ int fd = memfd_create("cells", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r = fd < 0 ? -errno : 0;
    (void)pthread_mutex_lock(&core->table.lock);
    for (size_t i = 0; i < core->table.n && r >= 0; i++) {
        const struct box *b = core->table.sorted[i];
        if (volumes_sees(b, volume) && !volumes_at_rest(b))
            r = fd_write_full(fd, b->s.id, ID_SIZE);
    }
    const struct volume_entry *e = volumes_by_id(core, volume);
    if (r >= 0 && e && e->state == VOLUME_CELL_UP)
        r = fd_write_full(fd, e->cell, ID_SIZE);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r < 0 ? err_set(err, -r, "cannot list who sees the volume") : take_fd(fd);
}

static int take_once(struct core *core, const struct keeper_request *q, int cells,
                     struct keeper_reply *reply, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r = keeper_ask_begin(core, q, &cells, 1, &fd, err);
    if (r < 0)
        return r;
    r = keeper_ask_next(fd, reply);
    return r < 0 ? r : keeper_ask_result(reply, err);
}

static int take_files(struct core *core, struct volume_checkpoint *c, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_VOLUME_POINT_PUT };
    struct keeper_reply reply = { 0 };
    memcpy(q.volume, c->volume, sizeof(q.volume));
    memcpy(q.point, c->id, sizeof(q.point));
    _cleanup_fd_ int cells = list_cells(core, c->volume, err);
    if (cells < 0)
        return cells;
    int r = -ECONNRESET;
    for (int i = 0; i < TAKE_TRIES && r == -ECONNRESET; i++)
        r = take_once(core, &q, cells, &reply, err);
    if (r < 0)
        return err && err->code ? r : err_set(err, -r, "the keeper does not answer");
    c->frozen_us = reply.frozen_us;
    (void)volume_used(core, c->volume, &c->bytes, NULL);
    return 0;
}

static int describe(const char *name, const char *comment, struct volume_checkpoint *c,
                    struct err *err)
{
    if (name && (!name_valid(name) || id_valid(name)))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'name' must be at most %d letters, digits, '.', '_' or '-', a letter or "
                        "digit first, and not have the shape of an id",
                        NAME_MAX_LEN);
    if (comment && strlen(comment) > VOLUME_COMMENT_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'comment' must have at most %d bytes",
                        VOLUME_COMMENT_MAX);
    if (id_random(c->id) < 0)
        return err_set(err, EIO, "cannot make an id");
    (void)snprintf(c->name, sizeof(c->name), "%s", name ? name : "");
    (void)snprintf(c->comment, sizeof(c->comment), "%s", comment ? comment : "");
    c->created_ms = clock_now_ms();
    return 0;
}

/* The volume stays as long as somebody is inside; volume_release. */
static int hold(struct core *core, const char *owner, const char *volume,
                struct volume_checkpoint *c, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = volumes_find(core, owner, volume);
    int r = e ? 0 : volume_missing(err, volume);
    if (e && volume_is_bucket(&e->v))
        r = volume_refuse_bucket(err, &e->v);
    else if (e && e->restoring)
        r = err_fail(err, FAIL_VOLUME_IN_USE,
                     "volume '%.64s' is going back to a checkpoint; try again", volume);
    if (r >= 0 && c->name[0] && find(core, e->v.id, c->name))
        r = err_fail(err, FAIL_NAME_TAKEN, "the volume has a checkpoint '%s' already", c->name);
    if (r >= 0) {
        e->inside++;
        memcpy(c->volume, e->v.id, ID_SIZE);
        memcpy(c->owner, e->v.owner, sizeof(c->owner));
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

static void release(struct core *core, const char *volume_id)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = volumes_by_id(core, volume_id);
    if (e && e->inside > 0 && --e->inside == 0)
        e->idle_ms = clock_mono_ms();
    (void)pthread_cond_broadcast(&core->volumes.changed);
    (void)pthread_mutex_unlock(&core->table.lock);
}

/* Another of that name may have come meanwhile. */
static int keep(struct core *core, const struct volume_checkpoint *c, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    int r =
        c->name[0] && find(core, c->volume, c->name)
            ? err_fail(err, FAIL_NAME_TAKEN, "the volume has a checkpoint '%s' already", c->name)
            : 0;
    if (r >= 0 && add(&core->volumes, c) < 0)
        r = err_set(err, ENOMEM, "cannot allocate a checkpoint");
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r < 0)
        return r;
    r = save(core, c, err);
    if (r >= 0)
        return 0;
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_checkpoint *at = find(core, c->volume, c->id);
    if (at)
        drop(&core->volumes, at);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

int volume_checkpoint_create(struct core *core, const char *owner, const char *volume,
                             const char *name, const char *comment, struct volume_checkpoint *ret_c,
                             struct err *err)
{
    struct volume_checkpoint c = { 0 };
    int r = describe(name, comment, &c, err);
    if (r >= 0)
        r = disk_admit(core, err);
    if (r >= 0)
        r = hold(core, owner, volume, &c, err);
    if (r < 0)
        return r;
    r = take_files(core, &c, err);
    if (r >= 0)
        r = keep(core, &c, err);
    if (r < 0)
        (void)forget_files(core, c.id, NULL);
    release(core, c.volume);
    if (r < 0)
        return r;
    tell(core, &c, "volume.checkpoint.added");
    *ret_c = c;
    return 0;
}

/* ---- reading, removing ---- */

int volume_checkpoint_get(struct core *core, const char *owner, const char *volume, const char *who,
                          struct volume_checkpoint *ret_c, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct volume_entry *e = volumes_find(core, owner, volume);
    const struct volume_checkpoint *c = e ? find(core, e->v.id, who) : NULL;
    if (c)
        *ret_c = *c;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (!e)
        return volume_missing(err, volume);
    return c ? 0 : missing(err, volume, who);
}

int volume_checkpoint_list(struct core *core, const char *owner, const char *volume,
                           struct volume_checkpoint **ret_cs, size_t *ret_n, struct err *err)
{
    const struct volumes *vs = &core->volumes;
    struct volume_checkpoint *list = NULL;
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    const struct volume_entry *e = volumes_find(core, owner, volume);
    if (e)
        list = calloc(vs->n_points + 1, sizeof(*list));
    for (size_t i = 0; list && i < vs->n_points; i++)
        if (strcmp(vs->points[i].volume, e->v.id) == 0)
            list[n++] = vs->points[i];
    (void)pthread_mutex_unlock(&core->table.lock);
    if (!e)
        return volume_missing(err, volume);
    if (!list)
        return err_set(err, ENOMEM, "cannot allocate the checkpoints");
    *ret_cs = list;
    *ret_n = n;
    return 0;
}

int volume_checkpoint_remove(struct core *core, const char *owner, const char *volume,
                             const char *who, struct err *err)
{
    struct volume_checkpoint gone;
    int r = volume_checkpoint_get(core, owner, volume, who, &gone, err);
    if (r >= 0)
        r = store_volume_checkpoint_remove(core->store, gone.id, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_checkpoint *c = find(core, gone.volume, gone.id);
    if (c)
        drop(&core->volumes, c);
    (void)pthread_mutex_unlock(&core->table.lock);
    if (!c) /* another request was faster */
        return missing(err, volume, who);
    r = forget_files(core, gone.id, err);
    tell(core, &gone, "volume.checkpoint.removed");
    return r;
}

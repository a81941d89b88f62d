#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/disk.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/quota.h"
#include "core/volume_private.h"

#define LOG_MODULE "volume"
#define MIB (1024ull * 1024)
#define VOLUMES_MAX 1000 /* of one owner */
#define REMOVE_TRIES 100 /* with their pauses half a second */
#define REMOVE_PAUSE_US 5000

int volume_missing(struct err *err, const char *who)
{
    return err_fail(err, FAIL_VOLUME_NOT_FOUND,
                    "no volume '%.64s' here; `warren volume ls` shows what there is", who);
}

/* ---- with the table's lock held ---- */

static bool is_of(const struct volume_entry *e, const char *owner)
{
    return !owner || strcmp(e->v.owner, owner) == 0;
}

struct volume_entry *volumes_by_id(struct core *core, const char *id)
{
    struct volumes *vs = &core->volumes;
    for (size_t i = 0; i < vs->n; i++)
        if (strcmp(vs->items[i].v.id, id) == 0)
            return &vs->items[i];
    return NULL;
}

/* An id before a name: no name has the shape of one. */
static struct volume_entry *find_any(struct core *core, const char *owner, const char *who)
{
    struct volumes *vs = &core->volumes;
    for (size_t i = 0; i < vs->n; i++) {
        struct volume_entry *e = &vs->items[i];
        if (is_of(e, owner) &&
            (strcmp(e->v.id, who) == 0 || (owner && strcmp(e->v.name, who) == 0)))
            return e;
    }
    return NULL;
}

struct volume_entry *volumes_find(struct core *core, const char *owner, const char *who)
{
    struct volume_entry *e = find_any(core, owner, who);
    return e && !e->unsure ? e : NULL;
}

int volumes_add(struct volumes *vs, const struct volume_entry *e)
{
    struct volume_entry *items = reallocarray(vs->items, vs->n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    vs->items = items;
    vs->items[vs->n++] = *e;
    return 0;
}

static void drop(struct volumes *vs, struct volume_entry *e)
{
    size_t at = (size_t)(e - vs->items);
    memmove(e, e + 1, (vs->n - at - 1) * sizeof(*e)); /* the order is that of creation */
    vs->n--;
}

static unsigned seen_by(struct core *core, const char *id)
{
    const struct table *t = &core->table;
    unsigned n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct sandbox_spec *spec = &t->sorted[i]->s.spec;
        bool sees = false;
        for (size_t k = 0; k < spec->n_mounts && !sees; k++)
            sees = strcmp(spec->mounts[k].volume, id) == 0;
        n += sees;
    }
    return n;
}

static void copy_out(struct core *core, const struct volume_entry *e, struct volume *ret_v)
{
    *ret_v = e->v;
    ret_v->sandboxes = seen_by(core, e->v.id);
}

int volumes_resolve(struct core *core, const char *owner, struct sandbox_spec *spec,
                    struct err *err)
{
    for (size_t i = 0; i < spec->n_mounts; i++) {
        struct sandbox_mount *m = &spec->mounts[i];
        const struct volume_entry *e = volumes_find(core, owner, m->name);
        if (!e)
            return volume_missing(err, m->name);
        memcpy(m->volume, e->v.id, sizeof(m->volume));
        memcpy(m->name, e->v.name, sizeof(m->name));
    }
    return 0;
}

int64_t volumes_in_use_mb(struct core *core, const char *owner)
{
    const struct volumes *vs = &core->volumes;
    int64_t mb = 0;
    for (size_t i = 0; i < vs->n; i++)
        if (strcmp(vs->items[i].v.owner, owner) == 0)
            mb += (int64_t)(vs->items[i].v.size_bytes / MIB);
    return mb;
}

bool volumes_any(struct core *core, const char *owner)
{
    const struct volumes *vs = &core->volumes;
    for (size_t i = 0; i < vs->n; i++)
        if (strcmp(vs->items[i].v.owner, owner) == 0)
            return true;
    return false;
}

static int check_quota(struct core *core, const char *owner, uint64_t before, uint64_t after,
                       struct err *err)
{
    int64_t was[QUOTA_COUNT] = { 0 }, will[QUOTA_COUNT] = { 0 };
    was[QUOTA_DISK_MB] = (int64_t)(before / MIB);
    will[QUOTA_DISK_MB] = (int64_t)(after / MIB);
    return quota_check(core, owner, was, will, err);
}

/* ---- public ---- */

void volumes_tell(struct core *core, const struct volume *v, const char *type)
{
    char data[NAME_MAX_LEN + ID_SIZE + 32];
    int n = snprintf(data, sizeof(data), "{\"id\":\"%s\",\"name\":\"%s\"}", v->id, v->name);
    event_emit(core, v->owner, NULL, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_info("%s volume=%s owner=%s size_mb=%llu", type, v->id, v->owner,
             (unsigned long long)(v->size_bytes / MIB));
}

static int check(const char *name, uint64_t size_bytes, struct err *err)
{
    if (name && (!name_valid(name) || id_valid(name)))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'name' must be at most %d letters, digits, '.', '_' or '-', a letter or "
                        "digit first, and not have the shape of an id",
                        NAME_MAX_LEN);
    if (size_bytes < VOLUME_SIZE_MB_MIN * MIB || size_bytes > VOLUME_SIZE_MB_MAX * MIB)
        return err_fail(err, FAIL_INVALID_FIELD, "'size_mb' must be from %d to %d",
                        VOLUME_SIZE_MB_MIN, VOLUME_SIZE_MB_MAX);
    return 0;
}

/* It has its name and its share of the quota from here on, and is seen by nobody. */
static int reserve(struct core *core, const struct volume_entry *e, struct err *err)
{
    unsigned own = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    for (size_t i = 0; i < core->volumes.n; i++)
        own += is_of(&core->volumes.items[i], e->v.owner);
    int r = find_any(core, e->v.owner, e->v.name)
                ? err_fail(err, FAIL_NAME_TAKEN, "there is a volume '%s' already", e->v.name)
                : check_quota(core, e->v.owner, 0, e->v.size_bytes, err);
    if (r >= 0 && own >= VOLUMES_MAX)
        r = err_fail(err, FAIL_CAPACITY, "a team may have %d volumes", VOLUMES_MAX);
    if (r >= 0 && volumes_add(&core->volumes, e) < 0)
        r = err_set(err, ENOMEM, "cannot allocate a volume");
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

static void settle(struct core *core, const char *id, bool stays)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = volumes_by_id(core, id);
    if (e && stays)
        e->unsure = false;
    else if (e)
        drop(&core->volumes, e);
    (void)pthread_cond_broadcast(&core->volumes.changed); /* who waits for its cell looks again */
    (void)pthread_mutex_unlock(&core->table.lock);
}

/* An empty one has its row before its files, so that it has no end in between. One with a
 * checkpoint's files has it after them: with a row and no files it would be taken for an empty one. */
static int fill(struct core *core, const struct volume *v, const struct volume_checkpoint *from,
                struct err *err)
{
    int r = from ? volume_checkpoints_fill(core, v, from->id, err) : volumes_save(core, v, err);
    if (r < 0)
        return r;
    return from ? volumes_save(core, v, err)
                : keeper_ask_volume(core, KEEPER_VOLUME_PUT, v->id, v->size_bytes, err);
}

int volumes_make(struct core *core, const char *owner, const struct volume_ask *ask,
                 struct volume *ret_v, struct err *err)
{
    struct volume_entry e = { .v = { .size_bytes = ask->size_bytes, .created_ms = clock_now_ms() },
                              .unsure = true };
    struct volume *v = &e.v;
    const char *name = ask->name;
    int r = check(name, ask->bucket ? VOLUME_SIZE_MB_MIN * MIB : ask->size_bytes, err);
    if (r >= 0 && !ask->bucket)
        r = disk_admit(core, err);
    if (r < 0)
        return r;
    if (ask->bucket)
        v->bucket = *ask->bucket;
    if (strlen(owner) >= sizeof(v->owner) || id_random(v->id) < 0)
        return err_set(err, EIO, "cannot make an id");
    (void)snprintf(v->owner, sizeof(v->owner), "%s", owner);
    (void)snprintf(v->name, sizeof(v->name), "%s", name ? name : v->id);
    r = reserve(core, &e, err);
    if (r < 0)
        return r;
    r = ask->bucket ? volumes_save(core, v, err) : fill(core, v, ask->from, err);
    if (r < 0) {
        (void)store_volume_remove(core->store, v->id, NULL);
        if (!ask->bucket)
            (void)keeper_ask_volume(core, KEEPER_VOLUME_RM, v->id, 0, NULL);
    }
    settle(core, v->id, r >= 0);
    if (r < 0)
        return r;
    volumes_tell(core, v, "volume.added");
    *ret_v = *v;
    return 0;
}

int volume_create(struct core *core, const char *owner, const char *name, uint64_t size_bytes,
                  struct volume *ret_v, struct err *err)
{
    const struct volume_ask ask = { .name = name, .size_bytes = size_bytes };
    return volumes_make(core, owner, &ask, ret_v, err);
}

int volume_create_bucket(struct core *core, const char *owner, const char *name,
                         const struct bucket *bucket, struct volume *ret_v, struct err *err)
{
    const struct volume_ask ask = { .name = name, .bucket = bucket };
    int r = bucket_check(core, owner, bucket, err);
    return r < 0 ? r : volumes_make(core, owner, &ask, ret_v, err);
}

bool volume_is_bucket(const struct volume *v)
{
    return v->bucket.endpoint[0] != '\0';
}

int volume_refuse_bucket(struct err *err, const struct volume *v)
{
    return err_fail_as(err, EINVAL, FAIL_NOT_SUPPORTED,
                       "volume '%s' is a bucket: its size and its versions are the object store's",
                       v->name);
}

int volume_get(struct core *core, const char *owner, const char *who, struct volume *ret_v,
               struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct volume_entry *e = volumes_find(core, owner, who);
    if (e)
        copy_out(core, e, ret_v);
    (void)pthread_mutex_unlock(&core->table.lock);
    return e ? 0 : volume_missing(err, who);
}

int volume_list(struct core *core, const char *owner, struct volume **ret_vs, size_t *ret_n,
                struct err *err)
{
    struct volumes *vs = &core->volumes;
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume *list = calloc(vs->n + 1, sizeof(*list));
    for (size_t i = 0; list && i < vs->n; i++)
        if (is_of(&vs->items[i], owner) && !vs->items[i].unsure)
            copy_out(core, &vs->items[i], &list[n++]);
    (void)pthread_mutex_unlock(&core->table.lock);
    if (!list)
        return err_set(err, ENOMEM, "cannot allocate the volumes");
    *ret_vs = list;
    *ret_n = n;
    return 0;
}

int volume_resize(struct core *core, const char *owner, const char *who, uint64_t size_bytes,
                  struct volume *ret_v, struct err *err)
{
    struct volume old = { 0 };
    int r = check(NULL, size_bytes, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = volumes_find(core, owner, who);
    r = e ? check_quota(core, owner, e->v.size_bytes, size_bytes, err) : volume_missing(err, who);
    if (r >= 0 && volume_is_bucket(&e->v))
        r = volume_refuse_bucket(err, &e->v);
    if (r >= 0) {
        old = e->v;
        e->v.size_bytes = size_bytes;
        copy_out(core, e, ret_v);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r < 0)
        return r;
    r = volumes_save(core, ret_v, err);
    if (r >= 0)
        r = keeper_ask_volume(core, KEEPER_VOLUME_PUT, old.id, size_bytes, err);
    if (r >= 0) {
        volumes_tell(core, ret_v, "volume.updated");
        return 0;
    }
    (void)volumes_save(core, &old, NULL);
    (void)pthread_mutex_lock(&core->table.lock);
    e = volumes_by_id(core, old.id);
    if (e)
        e->v.size_bytes = old.size_bytes;
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

static int in_use(struct err *err, const char *who, unsigned sandboxes)
{
    if (sandboxes)
        return err_fail(err, FAIL_VOLUME_IN_USE,
                        "%u sandbox%s volume '%.64s'; delete what does first", sandboxes,
                        sandboxes == 1 ? " has" : "es have", who);
    return err_fail(err, FAIL_VOLUME_IN_USE, "a request is at work in volume '%.64s'; try again",
                    who);
}

int volumes_end_cell(struct core *core, const char *id, const char *cell, struct err *err)
{
    int r = keeper_ask_cell(core, KEEPER_DELETE, cell, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = volumes_by_id(core, id);
    if (e)
        e->state = VOLUME_CELL_NONE;
    (void)pthread_mutex_unlock(&core->table.lock);
    return 0;
}

/* A request that has sent its last byte is still at work for a moment: its client may ask for the
 * end of the volume already. */
void volumes_let_requests_end(struct core *core, const char *owner, const char *who)
{
    for (int i = 0; i < REMOVE_TRIES; i++) {
        (void)pthread_mutex_lock(&core->table.lock);
        struct volume_entry *e = volumes_find(core, owner, who);
        bool busy = e && (e->inside || e->restoring || e->state == VOLUME_CELL_GOING);
        (void)pthread_mutex_unlock(&core->table.lock);
        if (!busy)
            return;
        (void)usleep(REMOVE_PAUSE_US);
    }
}

int volume_remove(struct core *core, const char *owner, const char *who, struct err *err)
{
    struct volume v = { 0 };
    char cell[ID_SIZE] = "";
    int r = 0;
    volumes_let_requests_end(core, owner, who);
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = volumes_find(core, owner, who);
    if (!e)
        r = volume_missing(err, who);
    else if ((copy_out(core, e, &v), v.sandboxes) || e->inside || e->restoring ||
             e->state == VOLUME_CELL_GOING)
        r = in_use(err, who, v.sandboxes);
    if (r >= 0) {
        e->unsure = true; /* no sandbox and no request finds it any more */
        if (e->state == VOLUME_CELL_UP)
            memcpy(cell, e->cell, ID_SIZE);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r < 0)
        return r;
    if (cell[0])
        r = volumes_end_cell(core, v.id, cell, err);
    if (r >= 0)
        r = store_volume_remove(core->store, v.id, err);
    if (r >= 0 && !volume_is_bucket(&v) &&
        keeper_ask_volume(core, KEEPER_VOLUME_RM, v.id, 0, NULL) < 0)
        log_warn("its files stay until the next start volume=%s", v.id);
    if (r >= 0)
        volume_checkpoints_drop(core, v.id);
    settle(core, v.id, r < 0);
    if (r >= 0)
        volumes_tell(core, &v, "volume.removed");
    return r;
}

int volume_used(struct core *core, const char *id, uint64_t *ret_bytes, struct err *err)
{
    return keeper_ask_volume_used(core, id, ret_bytes, err);
}

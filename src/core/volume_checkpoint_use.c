/* What checkpoints of volumes are for: going back, and going on elsewhere. */
#include <errno.h>
#include <string.h>

#include "core/keeper.h"
#include "core/table.h"
#include "core/volume_private.h"

#define NAMED_MAX 5    /* sandboxes that a refusal names */
#define NAMED_SIZE 256 /* with their separators */

int volume_checkpoints_fill(struct core *core, const struct volume *v, const char *checkpoint,
                            struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_VOLUME_RESTORE };
    memcpy(q.volume, v->id, sizeof(q.volume));
    memcpy(q.point, checkpoint, sizeof(q.point));
    q.limits.disk_bytes = v->size_bytes;
    return keeper_ask(core, &q, NULL, err);
}

/* With the table's lock held: is it its own, but for sandboxes that are stopped? */
static int check_alone(struct core *core, const struct volume_entry *e, struct err *err)
{
    char names[NAMED_SIZE] = "";
    size_t n = 0, at = 0;
    for (size_t i = 0; i < core->table.n; i++) {
        const struct box *b = core->table.sorted[i];
        if (!volumes_sees(b, e->v.id) || volumes_at_rest(b))
            continue;
        if (n++ < NAMED_MAX) {
            int put = snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "", b->s.id);
            at += put > 0 && (size_t)put < sizeof(names) - at ? (size_t)put : 0;
        }
    }
    if (n > 0)
        return err_fail(err, FAIL_VOLUME_IN_USE,
                        "sandbox%s %s%s %s volume '%s'; stop what does first", n > 1 ? "es" : "",
                        names, n > NAMED_MAX ? ", …" : "", n > 1 ? "have" : "has", e->v.name);
    if (e->inside || e->restoring || e->state == VOLUME_CELL_GOING)
        return err_fail(err, FAIL_VOLUME_IN_USE, "a request is at work in volume '%s'; try again",
                        e->v.name);
    return 0;
}

static int claim(struct core *core, const char *owner, const char *volume, struct volume *ret_v,
                 char cell[ID_SIZE], struct err *err)
{
    volumes_let_requests_end(core, owner, volume);
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = volumes_find(core, owner, volume);
    int r = e ? check_alone(core, e, err) : volume_missing(err, volume);
    if (r >= 0) {
        e->restoring = true;
        *ret_v = e->v;
        if (e->state == VOLUME_CELL_UP)
            memcpy(cell, e->cell, ID_SIZE);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

static void unclaim(struct core *core, const char *id)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = volumes_by_id(core, id);
    if (e)
        e->restoring = false;
    (void)pthread_cond_broadcast(&core->volumes.changed);
    (void)pthread_mutex_unlock(&core->table.lock);
}

int volume_checkpoint_restore(struct core *core, const char *owner, const char *volume,
                              const char *who, struct volume *ret_v, struct err *err)
{
    struct volume_checkpoint c;
    struct volume v = { 0 };
    char cell[ID_SIZE] = "";
    int r = volume_checkpoint_get(core, owner, volume, who, &c, err);
    if (r >= 0)
        r = claim(core, owner, volume, &v, cell, err);
    if (r < 0)
        return r;
    if (cell[0])
        r = volumes_end_cell(core, v.id, cell, err);
    if (r >= 0)
        r = volume_checkpoints_fill(core, &v, c.id, err);
    unclaim(core, v.id);
    if (r < 0)
        return r;
    volumes_tell(core, &v, "volume.restored");
    return volume_get(core, owner, v.id, ret_v, err);
}

int volume_checkpoint_fork(struct core *core, const char *owner, const char *volume,
                           const char *who, const char *name, uint64_t size_bytes,
                           struct volume *ret_v, struct err *err)
{
    struct volume_checkpoint c;
    struct volume v;
    int r = volume_get(core, owner, volume, &v, err);
    if (r >= 0)
        r = volume_checkpoint_get(core, owner, v.id, who, &c, err);
    if (r < 0)
        return r;
    const struct volume_ask ask = { .name = name,
                                    .size_bytes = size_bytes ? size_bytes : v.size_bytes,
                                    .from = &c };
    return volumes_make(core, owner, &ask, ret_v, err);
}

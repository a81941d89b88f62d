/* How volumes come into cells. */
#include <errno.h>

#include "core/keeper.h"
#include "core/volume_private.h"

/* One whose files are being exchanged is waited for: that takes a moment. */
static int await_restored(struct core *core, const char *id, struct volume *ret_v)
{
    const struct volume_entry *e;
    (void)pthread_mutex_lock(&core->table.lock);
    while ((e = volumes_by_id(core, id)) && e->restoring)
        (void)pthread_cond_wait(&core->volumes.changed, &core->table.lock);
    if (e)
        *ret_v = e->v;
    (void)pthread_mutex_unlock(&core->table.lock);
    return e ? 0 : -ENOENT;
}

int volumes_show(struct core *core, const char *cell, const char *volume, const char *path,
                 bool read_only, struct err *err)
{
    struct volume v;
    if (await_restored(core, volume, &v) < 0)
        return volume_missing(err, volume);
    if (volume_is_bucket(&v))
        return bucket_attach(core, v.owner, &v.bucket, cell, v.id, path, read_only, err);
    return keeper_ask_attach(core, cell, volume, path, read_only, err);
}

int volumes_attach(struct core *core, const char *id, const struct sandbox_spec *spec,
                   struct err *err)
{
    int r = 0;
    for (size_t i = 0; i < spec->n_mounts && r >= 0; i++) {
        const struct sandbox_mount *m = &spec->mounts[i];
        r = volumes_show(core, id, m->volume, m->path, m->read_only, err);
    }
    return r;
}

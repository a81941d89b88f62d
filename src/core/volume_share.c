/* volume_share - whether several sandboxes may use one volume at the same time. A socket in it
 * would lead from one to the other and pass descriptors: sharing is fine where the kernel
 * prevents that (kernel/fence.h), or where the operator allows it. */
#include <errno.h>
#include <string.h>

#include "core/keeper.h"
#include "core/table.h"
#include "core/volume_private.h"

void volumes_learn_sharing(struct core *core)
{
    const struct keeper_request ask = { .version = KEEPER_VERSION, .op = KEEPER_PROBE };
    struct keeper_reply probe;
    (void)pthread_mutex_lock(&core->table.lock);
    bool known = core->volumes.sharing != VOLUME_SHARING_UNKNOWN;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (known || keeper_ask(core, &ask, &probe, NULL) < 0)
        return; /* unknown means no */
    (void)pthread_mutex_lock(&core->table.lock);
    core->volumes.sharing =
        probe.probe & KEEPER_HAS_FENCE ? VOLUME_SHARING_FINE : VOLUME_SHARING_REFUSED;
    (void)pthread_mutex_unlock(&core->table.lock);
}

static const struct box *other_with(const struct table *t, const struct box *b, const char *volume)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct box *other = t->sorted[i];
        if (other != b && volumes_sees(other, volume) && !volumes_at_rest(other))
            return other;
    }
    return NULL;
}

int volumes_admit(struct core *core, const struct box *b, struct err *err)
{
    if (core->volumes.sharing == VOLUME_SHARING_FINE)
        return 0;
    for (size_t i = 0; i < b->s.spec.n_mounts; i++) {
        const struct sandbox_mount *m = &b->s.spec.mounts[i];
        const struct volume_entry *e = volumes_by_id(core, m->volume);
        const struct box *other =
            e && volume_is_bucket(&e->v) ? NULL : other_with(&core->table, b, m->volume);
        if (other)
            return err_fail(
                err, FAIL_VOLUME_IN_USE,
                "volume '%s' is in use by sandbox %s, and this host cannot keep sockets "
                "in a shared volume apart; stop that sandbox, or have the operator set "
                "--share-volumes=always",
                m->name, other->s.id);
    }
    return 0;
}

/* Buckets whose server ended while a sandbox sees them: they are shown again, with pauses that grow while the
 * store does not answer. What ended while nobody looked is found by asking for all of them now and then,
 * since showing one that is shown is nothing. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/event.h"
#include "core/table.h"
#include "core/volume_private.h"

#define LOG_MODULE "volume"
#define PAUSE_FIRST_MS 1000
#define PAUSE_MOST_MS 60000
#define TRIES_MAX 6 /* from here on the pauses are as long as they get */

/* ---- with the table's lock held ---- */

static void note(struct volumes *vs, const struct volume_lost *lost)
{
    for (size_t i = 0; i < vs->n_lost; i++)
        if (strcmp(vs->lost[i].sandbox, lost->sandbox) == 0 &&
            strcmp(vs->lost[i].volume, lost->volume) == 0) {
            vs->lost[i].told |= lost->told;
            return;
        }
    struct volume_lost *items = reallocarray(vs->lost, vs->n_lost + 1, sizeof(*items));
    if (!items)
        return; /* the next look finds it */
    vs->lost = items;
    vs->lost[vs->n_lost++] = *lost;
    (void)pthread_cond_broadcast(&vs->changed);
}

static void tell(struct core *core, const struct volume *v, const char *sandbox, const char *type)
{
    char data[NAME_MAX_LEN + ID_SIZE + 32];
    int n = snprintf(data, sizeof(data), "{\"id\":\"%s\",\"name\":\"%s\"}", v->id, v->name);
    event_emit(core, v->owner, sandbox, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_warn("%s volume=%s sandbox=%s", type, v->id, sandbox);
}

void volumes_note_buckets(struct core *core)
{
    for (size_t i = 0; i < core->table.n; i++) {
        const struct box *b = core->table.sorted[i];
        for (size_t k = 0; b->s.state == SANDBOX_RUNNING && k < b->s.spec.n_mounts; k++) {
            const char *id = b->s.spec.mounts[k].volume;
            const struct volume_entry *e = volumes_by_id(core, id);
            struct volume_lost lost = { 0 };
            if (!e || !volume_is_bucket(&e->v))
                continue;
            memcpy(lost.sandbox, b->s.id, ID_SIZE);
            memcpy(lost.volume, id, ID_SIZE);
            note(&core->volumes, &lost);
        }
    }
}

static const struct box *find_box(struct core *core, const char *id)
{
    for (size_t i = 0; i < core->table.n; i++)
        if (strcmp(core->table.sorted[i]->s.id, id) == 0)
            return core->table.sorted[i];
    return NULL;
}

int64_t volumes_next_lost(const struct volumes *vs, int64_t until)
{
    for (size_t i = 0; i < vs->n_lost; i++)
        if (vs->lost[i].due_ms < until)
            until = vs->lost[i].due_ms;
    return until;
}

/* Takes out one whose time has come. */
static bool take_due(struct volumes *vs, int64_t now, struct volume_lost *ret_lost)
{
    for (size_t i = 0; i < vs->n_lost; i++)
        if (vs->lost[i].due_ms <= now) {
            *ret_lost = vs->lost[i];
            vs->lost[i] = vs->lost[--vs->n_lost];
            return true;
        }
    return false;
}

/* ---- from the keeper, and in the volumes' thread ---- */

void volumes_bucket_lost(struct core *core, const char *cell, const char *volume)
{
    struct volume_lost lost = { .told = true };
    struct volume v = { 0 };
    (void)pthread_mutex_lock(&core->table.lock);
    struct volume_entry *e = volumes_by_id(core, volume);
    const struct box *b = find_box(core, cell);
    if (e && e->state == VOLUME_CELL_UP && strcmp(e->cell, cell) == 0) {
        e->died = true; /* a new one comes up for the next request */
        (void)pthread_cond_broadcast(&core->volumes.changed);
    }
    bool seen = e && b && b->s.state == SANDBOX_RUNNING;
    if (seen) {
        v = e->v;
        memcpy(lost.sandbox, b->s.id, ID_SIZE);
        memcpy(lost.volume, e->v.id, ID_SIZE);
        note(&core->volumes, &lost);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    if (seen)
        tell(core, &v, lost.sandbox, "volume.lost");
}

/* The places where a sandbox that runs sees it. */
static struct sandbox_mount *places(struct core *core, const struct volume_lost *lost,
                                    struct volume *ret_v, size_t *ret_n)
{
    struct sandbox_mount *list = NULL;
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    const struct box *b = find_box(core, lost->sandbox);
    const struct volume_entry *e = volumes_find(core, NULL, lost->volume);
    if (e && b && b->s.state == SANDBOX_RUNNING)
        list = calloc(b->s.spec.n_mounts + 1, sizeof(*list));
    for (size_t i = 0; list && i < b->s.spec.n_mounts; i++)
        if (strcmp(b->s.spec.mounts[i].volume, lost->volume) == 0)
            list[n++] = b->s.spec.mounts[i];
    if (list)
        *ret_v = e->v;
    (void)pthread_mutex_unlock(&core->table.lock);
    *ret_n = n;
    return list;
}

bool volumes_find_lost(struct core *core)
{
    struct volume_lost lost;
    struct volume v = { 0 };
    struct err err = ERR_INIT;
    size_t n = 0;
    if (!take_due(&core->volumes, clock_mono_ms(), &lost))
        return false;
    (void)pthread_mutex_unlock(&core->table.lock);
    _cleanup_free_ struct sandbox_mount *at = places(core, &lost, &v, &n);
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = volumes_show(core, lost.sandbox, v.id, at[i].path, at[i].read_only, &err);
    if (r >= 0 && n > 0 && lost.told)
        tell(core, &v, lost.sandbox, "volume.found");
    if (r < 0)
        log_warn("a bucket is not shown again yet volume=%s sandbox=%s err=\"%s\"", v.id,
                 lost.sandbox, err.msg);
    (void)pthread_mutex_lock(&core->table.lock);
    if (r < 0 && r != -ESRCH) {
        int64_t pause = (int64_t)PAUSE_FIRST_MS
                        << (lost.tries < TRIES_MAX ? lost.tries++ : TRIES_MAX);
        lost.due_ms = clock_mono_ms() + (pause < PAUSE_MOST_MS ? pause : PAUSE_MOST_MS);
        note(&core->volumes, &lost);
    }
    return true;
}

/* Volumes at rest: their rows, and what is made true of them at start. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/keeper.h"
#include "core/volume_private.h"

#define LOG_MODULE "volume"

int volumes_save(struct core *core, const struct volume *v, struct err *err)
{
    _cleanup_free_ char *bucket = volume_is_bucket(v) ? bucket_text(&v->bucket) : strdup("");
    if (!bucket)
        return err_set(err, ENOMEM, "cannot allocate a volume's record");
    struct store_volume row = { .id = v->id,
                                .owner = v->owner,
                                .name = v->name,
                                .bucket = bucket,
                                .size_bytes = (int64_t)v->size_bytes,
                                .created_ms = v->created_ms };
    return store_volume_put(core->store, &row, err);
}

static int load_row(void *ctx, const struct store_volume *row)
{
    struct core *core = ctx;
    struct volume_entry e = { .v = { .size_bytes = (uint64_t)row->size_bytes,
                                     .created_ms = row->created_ms } };
    bool is_bucket = *row->bucket != '\0';
    if (!id_valid(row->id) || !name_valid(row->name) || !name_valid(row->owner) ||
        (is_bucket ? bucket_read(row->bucket, &e.v.bucket) < 0 : row->size_bytes <= 0)) {
        log_error("a volume's record was skipped");
        return 0;
    }
    memcpy(e.v.id, row->id, ID_SIZE);
    (void)snprintf(e.v.owner, sizeof(e.v.owner), "%s", row->owner);
    (void)snprintf(e.v.name, sizeof(e.v.name), "%s", row->name);
    return volumes_add(&core->volumes, &e);
}

int volumes_load(struct core *core, struct err *err)
{
    int r = store_volume_each(core->store, load_row, core, err);
    if (r >= 0)
        r = volume_checkpoints_load(core, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the volumes") : r;
}

/* A row comes before its files and goes before them: files without a row are nobody's, and a row
 * without files is of a volume that nobody was told of. */
int volumes_adopt(struct core *core, bool restored, struct err *err)
{
    _cleanup_free_ struct keeper_row *rows = NULL;
    size_t n = 0;
    int r = keeper_ask_list(core, KEEPER_VOLUME_LIST, &rows, &n, err);
    if (r < 0)
        return r;
    keeper_rows_sort(rows, n);
    for (size_t i = 0; i < n; i++)
        if (!volumes_by_id(core, rows[i].id) &&
            keeper_ask_volume(core, KEEPER_VOLUME_RM, rows[i].id, 0, NULL) < 0)
            log_warn("files of no volume stay volume=%s", rows[i].id);
    for (size_t i = 0; i < core->volumes.n; i++) {
        const struct volume *v = &core->volumes.items[i].v;
        bool there = keeper_rows_find(rows, n, v->id);
        if (volume_is_bucket(v) || (there && !restored))
            continue;
        if (!there)
            log_warn("a volume had no files and is empty now volume=%s", v->id);
        r = keeper_ask_volume(core, KEEPER_VOLUME_PUT, v->id, v->size_bytes, err);
        if (r < 0)
            return r;
    }
    return volume_checkpoints_adopt(core, err);
}

void volumes_done(struct volumes *vs)
{
    free(vs->items);
    free(vs->points);
    free(vs->lost);
    vs->items = NULL;
    vs->points = NULL;
    vs->lost = NULL;
    vs->n = vs->n_points = vs->n_lost = 0;
}

/* What is in the object storage, for daemons that did not put it there. */
#include <errno.h>
#include <string.h>

#include "core/archive_private.h"
#include "core/checkpoints.h"
#include "core/disk.h"
#include "core/event.h"
#include "core/image.h"
#include "core/parcel.h"

struct listing {
    struct core *core;
    size_t skip; /* of a key: "archives/<owner>/" */
    struct archive_entry *items;
    size_t n, cap;
};

static int add_entry(void *ctx, const struct s3_object *o, struct err *err)
{
    struct listing *l = ctx;
    if (strlen(o->key) < l->skip || !id_valid(o->key + l->skip))
        return 0; /* not ours */
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        struct archive_entry *items = reallocarray(l->items, cap, sizeof(*items));
        if (!items)
            return err_set(err, ENOMEM, "cannot allocate a list");
        l->items = items;
        l->cap = cap;
    }
    struct archive_entry *e = &l->items[l->n++];
    *e = (struct archive_entry){ .archived_ms = o->modified_ms, .manifest_bytes = o->size };
    memcpy(e->id, o->key + l->skip, ID_SIZE);
    (void)pthread_mutex_lock(&l->core->table.lock);
    for (size_t i = 0; i < l->core->checkpoints.n && !e->known; i++)
        e->known = strcmp(l->core->checkpoints.items[i].id, e->id) == 0;
    (void)pthread_mutex_unlock(&l->core->table.lock);
    return 0;
}

int archive_list(struct core *core, const char *owner, struct archive_entry **ret_entries,
                 size_t *ret_n, struct err *err)
{
    char prefix[ARCHIVE_KEY];
    struct listing l = { .core = core };
    archive_key_manifest(owner, "", prefix);
    l.skip = strlen(prefix);
    if (!core->archives.s3)
        return err_fail(err, FAIL_ARCHIVE_UNAVAILABLE,
                        "this daemon has no object storage: start it with --archive");
    int r = s3_list(core->archives.s3, prefix, add_entry, &l, NULL, err);
    if (r < 0) {
        free(l.items);
        return r;
    }
    *ret_entries = l.items;
    *ret_n = l.n;
    return 0;
}

/* Holds from its first layer until the checkpoint needs them. */
static int adopt(struct archive_run *run, struct archive_manifest *m, struct checkpoint *ret_c,
                 struct err *err)
{
    struct core *core = run->core;
    struct image_hold hold;
    image_hold_begin(core, m->c.owner, &hold);
    int r = archive_read_layers(run, &hold.room, m, m->c.tree, err);
    if (r >= 0) {
        m->c.archived_bytes = archive_stream_stored(&m->files);
        m->c.away = true;
        r = archive_record(core, &m->c, err);
    }
    if (r >= 0)
        r = checkpoints_save(core, &m->c, err);
    if (r >= 0) {
        (void)pthread_mutex_lock(&core->table.lock);
        r = checkpoint_copy(&m->c, ret_c);
        if (r >= 0)
            r = checkpoints_add(&core->checkpoints, &m->c);
        (void)pthread_mutex_unlock(&core->table.lock);
        if (r < 0)
            r = err_set(err, -r, "cannot allocate a checkpoint");
    }
    image_hold_end(core, &hold);
    return r;
}

/* Who wrote it is not known. CRIU reads memory as root: files only; and volumes, secrets and the like are ours to
 * give. What it was taken for there it is not here: no pause or archived sandbox goes on from it. */
static int make_ours(struct checkpoint *c, const char digest[DIGEST_SIZE], struct err *err)
{
    char *spec = parcel_spec_text(c->spec, err);
    if (!spec)
        return -ENOMEM;
    free(c->spec);
    c->spec = spec;
    c->memory = false;
    c->memory_bytes = 0;
    c->archived_ms = c->created_ms;
    memcpy(c->manifest, digest, sizeof(c->manifest));
    (void)snprintf(c->reason, sizeof(c->reason), "%s", "import");
    return 0;
}

int archive_import(struct core *core, const char *owner, const char *id,
                   const struct archive_tell *tell, struct checkpoint *ret_c, struct err *err)
{
    struct archive_run run = { .core = core, .tell = tell, .at = { .stage = "image" } };
    struct archive_manifest m = { .n_layers = 0 };
    struct checkpoint old = { 0 };
    char key[ARCHIVE_KEY], digest[DIGEST_SIZE];
    if (!core->archives.s3)
        return err_fail(err, FAIL_ARCHIVE_UNAVAILABLE,
                        "this daemon has no object storage: start it with --archive");
    if (!id_valid(id))
        return err_fail(err, FAIL_ARCHIVE_NOT_FOUND, "no archive '%.64s' there", id);
    if (checkpoint_get(core, owner, NULL, id, &old, NULL) >= 0) {
        *ret_c = old; /* it is one of ours already */
        return 0;
    }
    archive_key_manifest(owner, id, key);
    int r = disk_admit(core, err);
    if (r < 0)
        return r;
    r = archive_manifest_get(core->archives.s3, key, &m, digest, err);
    if (r == -ENOENT)
        return err_fail(err, FAIL_ARCHIVE_NOT_FOUND,
                        "no archive '%.64s' there; `warren archive ls` shows what there is", id);
    if (r >= 0 && (strcmp(m.c.id, id) != 0 || strcmp(m.c.owner, owner) != 0))
        r = err_fail(err, FAIL_ARCHIVE_CORRUPT, "the archive is another checkpoint's");
    if (r >= 0)
        r = make_ours(&m.c, digest, err);
    if (r >= 0)
        r = adopt(&run, &m, ret_c, err);
    archive_manifest_done(&m);
    if (r >= 0)
        event_emit(core, owner, ret_c->sandbox, "checkpoint.imported", NULL);
    return r;
}

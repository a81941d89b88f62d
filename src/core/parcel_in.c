#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "core/bundle.h"
#include "core/checkpoints.h"
#include "core/disk.h"
#include "core/images.h"
#include "core/keeper.h"
#include "core/network.h"
#include "core/parcel.h"
#include "core/proof.h"
#include "core/spec.h"

#define HEAD_MAX (4 * 1024 * 1024)
#define SPEC_MAX (1024 * 1024)

struct parcel_import {
    struct core *core;
    char owner[OWNER_MAX];
    struct blob_writer *blob;
    struct image_hold hold;
};

static int invalid(struct err *err, const char *what)
{
    return err_fail(err, FAIL_INVALID_ARCHIVE, "not a checkpoint's archive: %s", what);
}

/* ---- what belongs to a place stays there ---- */

static char *taken(char **from)
{
    char *text = *from;
    *from = NULL;
    return text;
}

static struct pairs taken_pairs(struct pairs *from)
{
    struct pairs p = *from;
    *from = (struct pairs){ NULL, NULL, 0 };
    return p;
}

void parcel_spec(struct sandbox_spec *from, struct sandbox_spec *ret_to)
{
    struct sandbox_spec to;
    size_t rules = 0;
    (void)network_proxy(from->network, &rules); /* what follows may hold a password */
    if (from->network)
        from->network[rules] = '\0';
    sandbox_spec_init(&to);
    to.image = taken(&from->image);
    to.user = taken(&from->user);
    to.workdir = taken(&from->workdir);
    to.network = taken(&from->network);
    to.network_limits = from->network_limits;
    to.cpu_millis = from->cpu_millis;
    to.memory_bytes = from->memory_bytes;
    to.disk_bytes = from->disk_bytes;
    to.pids = from->pids;
    to.nofile = from->nofile;
    to.env = taken_pairs(&from->env);
    to.image_env = taken_pairs(&from->image_env);
    to.metadata = taken_pairs(&from->metadata);
    to.notes = taken_pairs(&from->notes);
    to.timeout_ms = from->timeout_ms;
    to.idle_timeout_ms = from->idle_timeout_ms;
    to.on_timeout = from->on_timeout;
    to.on_idle = from->on_idle;
    to.freeze_after_ms = from->freeze_after_ms;
    to.autosave = from->autosave;
    to.preview = from->preview;
    to.wake = from->wake;
    to.restart = from->restart;
    *ret_to = to;
}

char *parcel_spec_text(const char *text, struct err *err)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec = { 0 }, plain = { 0 };
    if (spec_from_json(text, &spec, err) < 0)
        return NULL;
    parcel_spec(&spec, &plain);
    char *out = spec_to_json(&plain, false);
    if (!out)
        (void)err_set(err, ENOMEM, "cannot describe a checkpoint");
    return out;
}

/* ---- its head ---- */

static const char *text_of(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));
    return text ? text : "";
}

/* Checked as a client's request is. */
static int read_spec(const json_t *head, struct checkpoint *c, uint64_t *ret_disk, struct err *err)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec = { 0 }, plain = { 0 };
    const json_t *o = json_object_get(head, "spec");
    _cleanup_free_ char *text = json_is_object(o) ? json_dumps(o, JSON_COMPACT) : NULL;
    if (!text || strlen(text) > SPEC_MAX)
        return invalid(err, "it does not say what the sandbox was");
    int r = spec_from_json(text, &spec, err);
    if (r < 0)
        return invalid(err, "it does not say what the sandbox was");
    parcel_spec(&spec, &plain);
    if (!plain.image || !image_name_valid(plain.image) || !plain.user || plain.disk_bytes == 0)
        return invalid(err, "it does not say what the sandbox was");
    r = spec_check(&plain, err);
    if (r < 0)
        return r;
    *ret_disk = plain.disk_bytes;
    c->spec = spec_to_json(&plain, false);
    return c->spec ? 0 : err_set(err, ENOMEM, "cannot describe a checkpoint");
}

static int read_texts(const json_t *head, const char *name, struct checkpoint *c, struct err *err)
{
    _cleanup_free_ char *pairs = json_dumps(json_object_get(head, "metadata"), JSON_COMPACT);
    const char *comment = text_of(head, "comment");
    name = name ? name : text_of(head, "name");
    if (*name && (!name_valid(name) || id_valid(name)))
        return invalid(err, "its name is none");
    if (strlen(comment) > CHECKPOINT_COMMENT_MAX)
        return invalid(err, "its comment is too long");
    if (pairs && (strlen(pairs) > SPEC_MAX || pairs_read(pairs, &c->metadata) < 0))
        return invalid(err, "its metadata are not names and texts");
    (void)snprintf(c->name, sizeof(c->name), "%s", name);
    c->comment = strdup(comment);
    return c->comment ? 0 : err_set(err, ENOMEM, "cannot describe a checkpoint");
}

static int read_head(const struct bundle *a, json_t **ret_head, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(HEAD_MAX);
    int r = bundle_text(a, PARCEL_HEAD, &text, err);
    if (r < 0)
        return r == -EINVAL ? invalid(err, "it has no " PARCEL_HEAD) : r;
    json_t *o = json_shallow(text.data, text.len) ? json_loadb(text.data, text.len, 0, NULL) : NULL;
    if (!json_is_object(o) || strcmp(text_of(o, "format"), PARCEL_FORMAT) != 0) {
        json_decref(o);
        return invalid(err, "its " PARCEL_HEAD " is none");
    }
    if (json_integer_value(json_object_get(o, "version")) != PARCEL_VERSION) {
        json_decref(o);
        return invalid(err, "another version of Warren made it");
    }
    *ret_head = o;
    return 0;
}

/* ---- what it lies on ---- */

/* What a parcel is put together from: what came in it, and what its owner has here anyway. Digests alone are no key to
 * what belongs to others. */
struct sources {
    const struct bundle *came;
    struct proof_set *seen;
    struct room *room;
};

static int add_layer(struct core *core, const struct sources *from, const json_t *o,
                     struct image_layer *l, struct err *err)
{
    char parent[DIGEST_SIZE], chain[DIGEST_SIZE];
    const char *digest = text_of(o, "digest"), *diff_id = text_of(o, "diff_id");
    memcpy(parent, l->chain, sizeof(parent));
    if (!digest_valid(digest) || !digest_valid(diff_id))
        return invalid(err, "a layer has no digest");
    if (digest_chain(parent, diff_id, chain) < 0)
        return err_set(err, EIO, "cannot hash a chain");
    if (proof_set_has(from->seen, chain) && image_find_layer(core, chain, l) == 0)
        return 0;
    if (!bundle_has(from->came, digest))
        return err_fail(err, FAIL_IMAGE_NOT_FOUND,
                        "the archive was made without its image, which is not here either: layer "
                        "%s is missing",
                        digest);
    return image_add_layer(core, from->room, parent, digest, image_layer_type(core, digest),
                           diff_id, l, err);
}

static int add_layers(struct core *core, const struct sources *from, const json_t *head,
                      char tree[KEEPER_IMAGE_SIZE], struct err *err)
{
    const json_t *list = json_object_get(head, "layers"), *o;
    struct image_layer l = { .chain = "", .tree = KEEPER_IMAGE_NONE };
    size_t i;
    int r = 0;
    if (!json_is_array(list) || json_array_size(list) > OCI_LAYERS_MAX)
        return invalid(err, "it does not say what it lies on");
    json_array_foreach((json_t *)(uintptr_t)list, i, o) {
        r = add_layer(core, from, o, &l, err);
        if (r < 0)
            return r;
    }
    memcpy(tree, l.tree, KEEPER_IMAGE_SIZE);
    return 0;
}

/* ---- its files ---- */

static int lay_files(struct core *core, const struct sources *from, const json_t *head,
                     uint64_t disk_bytes, struct checkpoint *c, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_POINT_LAY };
    struct keeper_reply reply = { 0 };
    const char *digest = text_of(json_object_get(head, "files"), "digest");
    _cleanup_fd_ int blob = -1, sock = -1;
    if (!digest_valid(digest) || !bundle_has(from->came, digest) ||
        blob_open(core, digest, &blob, NULL, NULL) < 0)
        return invalid(err, "its files are not in it");
    memcpy(q.point, c->id, sizeof(q.point));
    q.limits.disk_bytes = disk_bytes;
    int r = keeper_ask_begin(core, &q, &blob, 1, &sock, err);
    if (r >= 0)
        r = keeper_ask_finish(sock, 0, "wrote the checkpoint", &reply, err);
    if (r >= 0)
        c->bytes = reply.size_bytes;
    return r;
}

static int keep(struct core *core, struct checkpoint *c, struct checkpoint *ret_c, struct err *err)
{
    int r = checkpoints_save(core, c, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    r = checkpoint_copy(c, ret_c);
    if (r >= 0)
        r = checkpoints_add(&core->checkpoints, c);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r < 0 ? err_set(err, ENOMEM, "cannot allocate a checkpoint") : 0;
}

/* ---- all of it ---- */

/* Files before the row, as always: what dies in between is nobody's, and goes at the next start. */
static int make(struct parcel_import *imp, const struct sources *from, const json_t *head,
                const char *name, struct checkpoint *ret_c, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { .created_ms = clock_now_ms(),
                                                       .reason = "import" };
    struct core *core = imp->core;
    uint64_t disk_bytes = 0;
    char id[ID_SIZE];
    memcpy(c.owner, imp->owner, sizeof(c.owner));
    int r = id_random(c.id) < 0 || id_random(c.sandbox) < 0 ? err_set(err, EIO, "cannot make an id")
                                                            : read_spec(head, &c, &disk_bytes, err);
    memcpy(id, c.id, sizeof(id));
    if (r >= 0)
        r = read_texts(head, name, &c, err);
    if (r >= 0)
        r = add_layers(core, from, head, c.tree, err);
    if (r >= 0)
        r = lay_files(core, from, head, disk_bytes, &c, err);
    if (r < 0)
        return r;
    r = keep(core, &c, ret_c, err);
    if (r < 0) {
        (void)store_checkpoint_remove(core->store, id, NULL);
        (void)checkpoints_forget(core, id, NULL);
    }
    return r;
}

int parcel_import_begin(struct core *core, const char *owner, struct parcel_import **ret_imp,
                        struct err *err)
{
    int r = disk_admit(core, err);
    if (r < 0)
        return r;
    struct parcel_import *imp = strlen(owner) < OWNER_MAX ? calloc(1, sizeof(*imp)) : NULL;
    if (!imp)
        return err_set(err, ENOMEM, "cannot allocate an import");
    imp->core = core;
    memcpy(imp->owner, owner, strlen(owner) + 1);
    image_hold_begin(core, imp->owner, &imp->hold);
    r = blob_begin(core, &imp->hold.room, &imp->blob, err);
    if (r < 0)
        parcel_import_abort(imp);
    else
        *ret_imp = imp;
    return r;
}

int parcel_import_write(struct parcel_import *imp, const void *p, size_t n, struct err *err)
{
    int r = disk_go_on(imp->core, err);
    return r < 0 ? r : blob_write(imp->blob, p, n, err);
}

static int finish(struct parcel_import *imp, char digest[DIGEST_SIZE], const char *name,
                  struct checkpoint *ret_c, struct err *err)
{
    _cleanup_(bundle_freep) struct bundle *a = NULL;
    struct sources from = { .room = &imp->hold.room };
    json_t *head = NULL;
    int r = blob_finish(take_ptr(imp->blob), NULL, digest, NULL, err);
    if (r >= 0)
        r = bundle_open_any(imp->core, &imp->hold.room, digest, &a, err);
    if (r >= 0 && !a)
        r = invalid(err, "it has other files");
    if (r >= 0)
        r = read_head(a, &head, err);
    if (r >= 0)
        r = proof_set_new(imp->core, imp->owner, &from.seen, err);
    from.came = a;
    if (r >= 0)
        r = make(imp, &from, head, name, ret_c, err);
    proof_set_free(from.seen);
    json_decref(head);
    return r;
}

int parcel_import_finish(struct parcel_import *imp, const char *name, struct checkpoint *ret_c,
                         struct err *err)
{
    struct core *core = imp->core;
    char digest[DIGEST_SIZE] = "";
    int r = finish(imp, digest, name, ret_c, err);
    if (digest[0])
        blob_release_unused(core, imp->owner, digest); /* its members are blobs by now */
    parcel_import_abort(imp);
    return r;
}

void parcel_import_abort(struct parcel_import *imp)
{
    if (!imp)
        return;
    blob_abort(imp->blob);
    image_hold_end(imp->core, &imp->hold);
    free(imp);
}

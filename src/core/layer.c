/* Layers: unpacking one, finding one, letting one go. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/id.h"
#include "base/log.h"
#include "core/disk.h"
#include "core/images.h"
#include "core/keeper.h"
#include "core/pool.h"
#include "core/table.h"

#define LOG_MODULE "image"
#define HOLD_MARGIN_MS 1000 /* file times and ours come from clocks of different grain */
#define UNPACK_WAIT_S 3600  /* a desktop's layers on a loaded machine */

/* A layer on its way: others that want the same chain wait, and its parent stays. */
struct making {
    struct making *next;
    char chain[DIGEST_SIZE]; /* "": not known yet */
    char parent[DIGEST_SIZE];
};

/* ---- holds ---- */

void image_hold_begin(struct core *core, const char *owner, struct image_hold *hold)
{
    struct images *im = &core->images;
    room_open(core, owner, &hold->room);
    hold->since_ms = clock_now_ms() - HOLD_MARGIN_MS;
    (void)pthread_mutex_lock(&im->lock);
    hold->next = im->holds;
    im->holds = hold;
    (void)pthread_mutex_unlock(&im->lock);
}

/* ---- adding ---- */

int layer_record(struct core *core, const struct layer *l, struct err *err)
{
    struct store_layer row = {
        .chain = l->l.chain,
        .parent = l->parent,
        .diff_id = l->l.diff_id,
        .tree = l->l.tree,
        .digest = l->l.digest,
        .media_type = l->l.media_type,
        .compressed_bytes = (int64_t)l->l.compressed_bytes,
        .size_bytes = (int64_t)l->l.size_bytes,
        .owner = l->owner,
        .kept = l->kept,
        .created_ms = l->created_ms,
    };
    return store_layer_put(core->store, &row, err);
}

static int random_tree(char tree[KEEPER_IMAGE_SIZE])
{
    unsigned char raw[(KEEPER_IMAGE_SIZE - 1) / 2];
    int r = random_bytes(raw, sizeof(raw));
    if (r == 0)
        hex_encode(raw, sizeof(raw), tree);
    return r;
}

/* Have the keeper make a tree of `most` bytes at most; fills diff_id, tree and size_bytes. */
static int unpack(struct core *core, const char *parent_tree, int blob, uint64_t most,
                  unsigned ratio, struct image_layer *l, struct err *err)
{
    struct keeper_request req;
    struct keeper_reply reply;
    _cleanup_fd_ int sock = -1;
    memset(&req, 0, sizeof(req));
    req.version = KEEPER_VERSION;
    req.op = KEEPER_LAYER_PUT;
    req.limits.disk_bytes = most;
    req.ratio = ratio;
    int r = random_tree(req.image);
    if (r < 0)
        return err_set(err, -r, "cannot name a tree");
    (void)snprintf(req.parent, sizeof(req.parent), "%s", parent_tree);
    r = keeper_ask_begin(core, &req, &blob, 1, &sock, err);
    if (r < 0)
        return r;
    r = keeper_ask_finish(sock, UNPACK_WAIT_S, "unpacked the image", &reply, err);
    if (r < 0)
        return r;
    reply.diff_id[sizeof(reply.diff_id) - 1] = '\0';
    (void)snprintf(l->diff_id, sizeof(l->diff_id), "sha256:%s", reply.diff_id);
    memcpy(l->tree, req.image, sizeof(l->tree));
    l->size_bytes = reply.size_bytes;
    return 0;
}

static void drop_tree(struct core *core, const char *tree)
{
    struct err err = ERR_INIT;
    int r = keeper_ask_image_rm(core, tree, &err);
    if (r < 0 && r != -ENOENT)
        log_warn("tree stays until the next start tree=%s err=\"%s\"", tree, err.msg);
}

/* Unpack with all the room that the owner has left; afterwards the room holds only what the
 * layer took. */
static int unpack_in_room(struct core *core, struct room *room, const char *parent_tree, int blob,
                          struct image_layer *l, struct err *err)
{
    uint64_t most = core->layer_bytes;
    int r = room_lend(room, core->layer_bytes, &most, err);
    if (r < 0)
        return r;
    r = unpack(core, parent_tree, blob, most, room->inside ? 0 : core->layer_ratio, l, err);
    if (r == -EFBIG && most != core->layer_bytes) {
        (void)room_settle(room, 0, NULL);
        return room_exceeded(room, most, err);
    }
    if (r == -EFBIG)
        (void)err_fail(err, FAIL_LAYER_TOO_LARGE,
                       "a layer may unpack to %llu MiB here (the daemon's option image-layer-mb)",
                       (unsigned long long)most >> 20);
    int settled = room_settle(room, r < 0 ? 0 : l->size_bytes, r < 0 ? NULL : err);
    if (settled < 0)
        drop_tree(core, l->tree);
    return r < 0 ? r : settled;
}

/* What the caller brought is what its manifest will say, whatever was there first. */
static void as_brought(struct image_layer *found, const struct image_layer *brought)
{
    memcpy(found->digest, brought->digest, sizeof(found->digest));
    memcpy(found->media_type, brought->media_type, sizeof(found->media_type));
    found->compressed_bytes = brought->compressed_bytes;
}

/* Adds an unpacked layer, unless another was quicker: then this one's tree goes. */
static int keep(struct core *core, struct layer *l, struct image_layer *ret_layer, struct err *err)
{
    struct images *im = &core->images;
    (void)pthread_mutex_lock(&im->lock);
    struct layer *other = images_layer(im, l->l.chain);
    if (other) {
        other->touched_ms = clock_now_ms();
        *ret_layer = other->l;
        as_brought(ret_layer, &l->l);
    }
    (void)pthread_mutex_unlock(&im->lock);
    if (other) {
        drop_tree(core, l->l.tree);
        return 0;
    }
    int r = layer_record(core, l, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&im->lock);
    r = images_add_layer(im, l);
    (void)pthread_mutex_unlock(&im->lock);
    if (r < 0)
        return err_set(err, -r, "cannot allocate a layer");
    *ret_layer = l->l;
    return 0;
}

static int make(struct core *core, struct room *room, const char *parent_chain,
                const char *parent_tree, const char *diff_id, struct image_layer *want,
                struct image_layer *ret_layer, struct err *err)
{
    struct layer l = { .l = *want, .created_ms = clock_now_ms() };
    memcpy(l.owner, room->owner, sizeof(l.owner));
    _cleanup_fd_ int blob = -1;
    int r = disk_go_on(core, err);
    if (r < 0)
        return r;
    r = blob_open(core, want->digest, &blob, &l.l.compressed_bytes, err);
    if (r < 0)
        return err_fail_as(err, ENOENT, FAIL_INVALID_IMAGE, "the layer '%s' is missing",
                           want->digest);
    r = unpack_in_room(core, room, parent_tree, blob, &l.l, err);
    if (r < 0)
        return err_wrap(err, r, "layer '%.19s'", want->digest);
    if (diff_id && strcmp(diff_id, l.l.diff_id) != 0)
        r = err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                        "the layer '%s' holds '%s', and its image says '%s'", want->digest,
                        l.l.diff_id, diff_id);
    if (r == 0)
        r = digest_chain(parent_chain, l.l.diff_id, l.l.chain);
    (void)snprintf(l.parent, sizeof(l.parent), "%s", parent_chain);
    l.touched_ms = clock_now_ms();
    if (r == 0)
        r = keep(core, &l, ret_layer, err);
    if (r < 0)
        drop_tree(core, l.l.tree);
    return r;
}

static bool is_making(const struct images *im, const char *chain)
{
    for (const struct making *m = im->making; m; m = m->next)
        if (chain[0] && strcmp(m->chain, chain) == 0)
            return true;
    return false;
}

/* Waits until nobody makes that chain. 1: it is there, and was brought by the same blob (another
 * one must be looked into: its bytes may not be what it claims). 0: *m is entered, make it. */
static int enter(struct core *core, struct making *m, const struct image_layer *want,
                 char ret_parent_tree[KEEPER_IMAGE_SIZE], struct image_layer *ret_layer,
                 struct err *err)
{
    struct images *im = &core->images;
    int r = 0;
    (void)pthread_mutex_lock(&im->lock);
    while (is_making(im, m->chain))
        (void)pthread_cond_wait(&im->made, &im->lock);
    struct layer *l = m->chain[0] ? images_layer(im, m->chain) : NULL;
    struct layer *below = m->parent[0] ? images_layer(im, m->parent) : NULL;
    if (below)
        below->touched_ms = clock_now_ms();
    if (l && strcmp(l->l.digest, want->digest) == 0) {
        l->touched_ms = clock_now_ms();
        *ret_layer = l->l;
        r = 1;
    } else if (m->parent[0] && !below) {
        r = err_fail(err, FAIL_IMAGE_NOT_FOUND, "the layer below is not here any more");
    } else {
        (void)snprintf(ret_parent_tree, KEEPER_IMAGE_SIZE, "%s", below ? below->l.tree : "");
        m->next = im->making;
        im->making = m;
    }
    (void)pthread_mutex_unlock(&im->lock);
    return r;
}

static void leave(struct core *core, struct making *m)
{
    struct images *im = &core->images;
    (void)pthread_mutex_lock(&im->lock);
    for (struct making **at = &im->making; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    (void)pthread_cond_broadcast(&im->made);
    (void)pthread_mutex_unlock(&im->lock);
}

int image_add_layer(struct core *core, struct room *room, const char *parent_chain,
                    const char *digest, const char *media_type, const char *diff_id,
                    struct image_layer *ret_layer, struct err *err)
{
    struct making m = { .next = NULL };
    struct image_layer want = { .size_bytes = 0 };
    char parent_tree[KEEPER_IMAGE_SIZE] = "";
    if (!digest_valid(digest) || (diff_id && !digest_valid(diff_id)) ||
        strlen(media_type) >= sizeof(want.media_type))
        return err_fail(err, FAIL_INVALID_IMAGE, "'%.80s' is not a layer", digest);
    (void)snprintf(want.digest, sizeof(want.digest), "%s", digest);
    (void)snprintf(want.media_type, sizeof(want.media_type), "%s", media_type);
    (void)snprintf(m.parent, sizeof(m.parent), "%s", parent_chain ? parent_chain : "");
    if (diff_id && digest_chain(m.parent, diff_id, m.chain) < 0)
        return err_set(err, EIO, "cannot hash a chain");
    int r = enter(core, &m, &want, parent_tree, ret_layer, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = make(core, room, m.parent, parent_tree, diff_id, &want, ret_layer, err);
    leave(core, &m);
    return r;
}

int image_find_layer(struct core *core, const char *chain, struct image_layer *ret_layer)
{
    struct images *im = &core->images;
    (void)pthread_mutex_lock(&im->lock);
    struct layer *l = images_layer(im, chain);
    if (l) {
        l->touched_ms = clock_now_ms();
        *ret_layer = l->l;
    }
    (void)pthread_mutex_unlock(&im->lock);
    return l ? 0 : -ENOENT;
}

int image_keep_layer(struct core *core, const char *chain, struct err *err)
{
    struct images *im = &core->images;
    struct layer copy;
    (void)pthread_mutex_lock(&im->lock);
    struct layer *l = images_layer(im, chain);
    if (l) {
        l->kept = true;
        copy = *l;
    }
    (void)pthread_mutex_unlock(&im->lock);
    return l ? layer_record(core, &copy, err) : err_set(err, ENOENT, "there is no such layer");
}

/* ---- letting go ---- */

/* With the lock held. */
static bool needed(const struct images *im, const struct layer *l, bool prune)
{
    if (images_chain_used(im, l->l.chain) || (l->kept && !prune) ||
        l->touched_ms >= images_held_since(im))
        return true;
    for (size_t i = 0; i < im->n_layers; i++)
        if (strcmp(im->layers[i].parent, l->l.chain) == 0)
            return true;
    for (const struct making *m = im->making; m; m = m->next)
        if (strcmp(m->parent, l->l.chain) == 0 || strcmp(m->chain, l->l.chain) == 0)
            return true;
    return false;
}

static bool prunes(const struct image_pruned *p, const struct layer *l)
{
    return p && (!p->owner || strcmp(p->owner, l->owner) == 0);
}

static void note_pruned(struct image_pruned *p, const struct layer *l)
{
    char(*layers)[DIGEST_SIZE] = p ? reallocarray(p->layers, p->n + 1, sizeof(*layers)) : NULL;
    if (!layers)
        return;
    p->layers = layers;
    memcpy(p->layers[p->n++], l->l.chain, DIGEST_SIZE);
    p->freed_bytes += l->l.size_bytes;
}

void blob_release(struct core *core, const char *digest)
{
    struct images *im = &core->images;
    (void)pthread_mutex_lock(&im->lock);
    bool used = images_blob_used(im, digest);
    bool held = im->holds != NULL;
    (void)pthread_mutex_unlock(&im->lock);
    if (!used && !held) /* while somebody holds, the next prune or start removes it */
        blob_remove(core, digest);
}

void blob_release_unused(struct core *core, const char *owner, const char *digest)
{
    struct images *im = &core->images;
    (void)pthread_mutex_lock(&im->lock);
    bool used = images_blob_used(im, digest);
    bool alone = !im->holds || !im->holds->next;
    (void)pthread_mutex_unlock(&im->lock);
    if (!used && alone) { /* another import may have found the blob */
        blob_remove(core, digest);
        return;
    }
    uint64_t size = 0;
    if (!used && blob_exists(core, digest, &size))
        stored_add_left(core, owner, size);
}

void layer_release(struct core *core, const char *chain, struct image_pruned *pruned)
{
    struct images *im = &core->images;
    char at[DIGEST_SIZE];
    (void)snprintf(at, sizeof(at), "%s", chain);
    while (at[0]) {
        struct layer l;
        (void)pthread_mutex_lock(&im->lock);
        const struct layer *found = images_layer(im, at);
        bool taken =
            found && !needed(im, found, prunes(pruned, found)) && images_take_layer(im, at, &l);
        (void)pthread_mutex_unlock(&im->lock);
        if (!taken)
            return;
        /* Nobody can start from it any more; who has begun to is in the table. */
        if (box_tree_used(core, l.l.tree)) {
            (void)pthread_mutex_lock(&im->lock);
            (void)images_add_layer(im, &l);
            (void)pthread_mutex_unlock(&im->lock);
            return;
        }
        warm_pool_forget(core, l.l.tree);
        struct err err = ERR_INIT;
        if (store_layer_remove(core->store, l.l.chain, l.l.tree, &err) < 0)
            log_warn("a layer's record stays until the next start err=\"%s\"", err.msg);
        drop_tree(core, l.l.tree);
        blob_release(core, l.l.digest);
        note_pruned(pruned, &l);
        memcpy(at, l.parent, sizeof(at));
    }
}

/* ---- holds: the end ---- */

/* With the lock held: layers of nothing that came or were found since; free(). */
static char (*orphans_since(struct images *im, int64_t since_ms, size_t *ret_n))[DIGEST_SIZE]
{
    size_t n = 0;
    char(*chains)[DIGEST_SIZE] = calloc(im->n_layers + 1, sizeof(*chains));
    for (size_t i = 0; chains && i < im->n_layers; i++)
        if (im->layers[i].touched_ms >= since_ms && !images_chain_used(im, im->layers[i].l.chain))
            memcpy(chains[n++], im->layers[i].l.chain, DIGEST_SIZE);
    *ret_n = n;
    return chains;
}

/* What was brought in and no image came to use goes: an import that failed leaves nothing. */
void image_hold_end(struct core *core, struct image_hold *hold)
{
    struct images *im = &core->images;
    size_t n = 0;
    (void)pthread_mutex_lock(&im->lock);
    for (struct image_hold **at = &im->holds; *at; at = &(*at)->next)
        if (*at == hold) {
            *at = hold->next;
            break;
        }
    char(*chains)[DIGEST_SIZE] = orphans_since(im, hold->since_ms, &n);
    (void)pthread_mutex_unlock(&im->lock);
    for (size_t i = 0; i < n; i++)
        layer_release(core, chains[i], NULL);
    free(chains);
    room_close(&hold->room);
}

void content_release(struct core *core, struct content *c)
{
    struct err err = ERR_INIT;
    if (store_content_remove(core->store, c->digest, &err) < 0)
        log_warn("an image's record stays until the next start err=\"%s\"", err.msg);
    if (c->n)
        layer_release(core, c->layers[c->n - 1].chain, NULL);
    for (size_t i = 0; i < c->n; i++)
        blob_release(core, c->layers[i].digest);
    content_free(c);
}

void image_tree_release(struct core *core, const char *tree)
{
    struct images *im = &core->images;
    char chain[DIGEST_SIZE] = "";
    (void)pthread_mutex_lock(&im->lock);
    const struct layer *l = images_layer_of_tree(im, tree);
    if (l && !images_chain_used(im, l->l.chain))
        memcpy(chain, l->l.chain, sizeof(chain));
    (void)pthread_mutex_unlock(&im->lock);
    if (chain[0])
        layer_release(core, chain, NULL);
}

bool image_tree_known(struct core *core, const char *tree)
{
    struct images *im = &core->images;
    (void)pthread_mutex_lock(&im->lock);
    bool known = images_layer_of_tree(im, tree) != NULL;
    (void)pthread_mutex_unlock(&im->lock);
    return known;
}

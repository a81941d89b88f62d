/* Orphans: what a crash, a failed import or a build's cache left behind. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/images.h"
#include "core/keeper.h"
#include "core/table.h"

#define LOG_MODULE "image"

/* The chains of all layers, or of those that an owner's builds keep; free(*ret). */
static size_t chains_of(struct images *im, const char *owner, char (**ret_chains)[DIGEST_SIZE])
{
    size_t n = 0;
    (void)pthread_mutex_lock(&im->lock);
    char(*chains)[DIGEST_SIZE] = calloc(im->n_layers + 1, sizeof(*chains));
    for (size_t i = 0; chains && i < im->n_layers; i++)
        if (!owner || (im->layers[i].kept && strcmp(im->layers[i].owner, owner) == 0))
            memcpy(chains[n++], im->layers[i].l.chain, DIGEST_SIZE);
    (void)pthread_mutex_unlock(&im->lock);
    *ret_chains = chains;
    return n;
}

static void drop_nameless(struct core *core)
{
    struct images *im = &core->images;
    for (;;) {
        struct content *gone = NULL;
        (void)pthread_mutex_lock(&im->lock);
        if (!im->holds) /* a new one has no name for a moment */
            for (size_t i = 0; i < im->n_contents && !gone; i++)
                if (images_names_of(im, im->contents[i]) == 0)
                    gone = images_take_content(im, im->contents[i]->digest);
        (void)pthread_mutex_unlock(&im->lock);
        if (!gone)
            return;
        content_release(core, gone);
    }
}

struct blob_sweep {
    struct core *core;
    struct image_pruned *pruned;
};

static int drop_blob(void *ctx, const char *digest, int64_t touched_ms, uint64_t size)
{
    struct blob_sweep *s = ctx;
    struct images *im = &s->core->images;
    (void)pthread_mutex_lock(&im->lock);
    bool needed = images_blob_used(im, digest) || touched_ms >= images_held_since(im);
    (void)pthread_mutex_unlock(&im->lock);
    if (needed)
        return 0;
    blob_remove(s->core, digest);
    if (s->pruned)
        s->pruned->freed_bytes += size;
    return 0;
}

static void sweep_blobs(struct core *core, struct image_pruned *pruned)
{
    struct blob_sweep blobs = { core, pruned };
    if (blobs_each(core, drop_blob, &blobs) < 0)
        log_warn("blobs of nothing stay until the next start");
}

static void sweep(struct core *core, struct image_pruned *pruned)
{
    char(*chains)[DIGEST_SIZE] = NULL;
    drop_nameless(core);
    size_t n = chains_of(&core->images, NULL, &chains);
    for (size_t i = 0; i < n; i++)
        layer_release(core, chains[i], pruned);
    free(chains);
    sweep_blobs(core, pruned);
}

/* Two teams' builds may have come to the same layer, which one of them brought in. */
static void hand_over(struct core *core, const char *owner, const char *chain)
{
    struct images *im = &core->images;
    _cleanup_free_ char *other = NULL;
    struct layer copy;
    if (store_build_other(core->store, chain, owner, &other, NULL) <= 0)
        return;
    (void)pthread_mutex_lock(&im->lock);
    struct layer *l = images_layer(im, chain);
    if (l) {
        (void)snprintf(l->owner, sizeof(l->owner), "%s", other);
        im->changes++;
        copy = *l;
    }
    (void)pthread_mutex_unlock(&im->lock);
    struct err err = ERR_INIT;
    if (l && layer_record(core, &copy, &err) < 0)
        log_warn("a layer's new team is forgotten at the next start err=\"%s\"", err.msg);
}

static int prune_team(struct core *core, struct image_pruned *pruned, struct err *err)
{
    char(*chains)[DIGEST_SIZE] = NULL;
    int r = store_build_forget(core->store, pruned->owner, err);
    if (r < 0)
        return r;
    size_t n = chains_of(&core->images, pruned->owner, &chains);
    for (size_t i = 0; i < n; i++)
        hand_over(core, pruned->owner, chains[i]);
    for (size_t i = 0; i < n; i++)
        layer_release(core, chains[i], pruned);
    free(chains);
    uint64_t left = stored_left(core, pruned->owner);
    if (left) { /* of its failed imports; nobody knows which blobs these are, but nothing needs them */
        sweep_blobs(core, NULL);
        stored_clear_left(core);
        pruned->freed_bytes += left;
    }
    return 0;
}

int image_prune(struct core *core, const char *owner, struct image_pruned *ret_pruned,
                struct err *err)
{
    *ret_pruned = (struct image_pruned){ .owner = owner };
    int r = 0;
    if (owner) {
        r = prune_team(core, ret_pruned, err);
    } else {
        sweep(core, ret_pruned);
        ret_pruned->freed_bytes += blobs_drop_partial(core);
        stored_clear_left(core);
    }
    log_info("pruned team=%s layers=%zu bytes=%llu", owner ? owner : "-", ret_pruned->n,
             (unsigned long long)ret_pruned->freed_bytes);
    return r;
}

int images_sweep(struct core *core, struct err *err)
{
    _cleanup_free_ struct keeper_row *rows = NULL;
    size_t n = 0;
    int r = keeper_ask_list(core, KEEPER_IMAGE_LIST, &rows, &n, err);
    for (size_t i = 0; r >= 0 && i < n; i++) /* imports that were cut */
        if (!image_tree_known(core, rows[i].image) && !box_tree_used(core, rows[i].image))
            (void)keeper_ask_image_rm(core, rows[i].image, NULL);
    if (r >= 0)
        sweep(core, NULL);
    return r;
}

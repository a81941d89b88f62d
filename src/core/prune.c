/* Orphans: what a crash, a failed import or a build's cache left behind. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/images.h"
#include "core/keeper.h"
#include "core/table.h"

#define LOG_MODULE "image"

/* The chains of all layers; free(*ret). */
static size_t all_chains(struct images *im, char (**ret_chains)[DIGEST_SIZE])
{
    (void)pthread_mutex_lock(&im->lock);
    size_t n = im->n_layers;
    char(*chains)[DIGEST_SIZE] = calloc(n + 1, sizeof(*chains));
    for (size_t i = 0; chains && i < n; i++)
        memcpy(chains[i], im->layers[i].l.chain, DIGEST_SIZE);
    (void)pthread_mutex_unlock(&im->lock);
    *ret_chains = chains;
    return chains ? n : 0;
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

static void sweep(struct core *core, struct image_pruned *pruned)
{
    char(*chains)[DIGEST_SIZE] = NULL;
    struct blob_sweep blobs = { core, pruned };
    drop_nameless(core);
    size_t n = all_chains(&core->images, &chains);
    for (size_t i = 0; i < n; i++)
        layer_release(core, chains[i], pruned);
    free(chains);
    if (blobs_each(core, drop_blob, &blobs) < 0)
        log_warn("blobs of nothing stay until the next start");
}

int image_prune(struct core *core, struct image_pruned *ret_pruned, struct err *err)
{
    *ret_pruned = (struct image_pruned){ .n = 0 };
    sweep(core, ret_pruned);
    ret_pruned->freed_bytes += blobs_drop_partial(core);
    stored_clear_left(core);
    log_info("pruned layers=%zu bytes=%llu", ret_pruned->n,
             (unsigned long long)ret_pruned->freed_bytes);
    return 0;
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

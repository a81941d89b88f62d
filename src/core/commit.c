/* Commit: what a sandbox is now becomes an image, its image's layers and one more. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/disk.h"
#include "core/images.h"
#include "core/table.h"

#define LOG_MODULE "image"

/* What the sandbox lies on. */
struct ground {
    struct image_layer *layers; /* lowest first, with room for one more */
    size_t n;
    struct image_config config;
};

static void ground_done(struct ground *g)
{
    free(g->layers);
    image_config_done(&g->config);
}

/* With the lock held: the image it was made from, as long as it is there. */
static const struct content *content_of(struct images *im, const char *owner, const char *name,
                                        const char *chain)
{
    const struct image_name *n = images_find(im, owner, name);
    if (n && n->content->n && strcmp(n->content->layers[n->content->n - 1].chain, chain) == 0)
        return n->content;
    for (size_t i = 0; i < im->n_contents; i++)
        if (im->contents[i]->n &&
            strcmp(im->contents[i]->layers[im->contents[i]->n - 1].chain, chain) == 0)
            return im->contents[i];
    return NULL;
}

static size_t chain_length(struct images *im, const char *chain)
{
    size_t n = 0;
    for (const struct layer *l = images_layer(im, chain); l && n < OCI_LAYERS_MAX; n++)
        l = l->parent[0] ? images_layer(im, l->parent) : NULL;
    return n;
}

/* Without its image (which was replaced): the layers alone. */
static int ground_of_layers(struct images *im, const char *chain, struct ground *g)
{
    const struct layer *l = images_layer(im, chain);
    for (size_t i = g->n; i-- > 0 && l;) {
        g->layers[i] = l->l;
        l = l->parent[0] ? images_layer(im, l->parent) : NULL;
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < g->n; i++)
        r = image_config_add(&g->config, g->layers[i].diff_id, "a layer of an image of old", 0);
    return r;
}

static int find_ground(struct core *core, const struct box *b, struct ground *g, struct err *err)
{
    struct images *im = &core->images;
    int r = -ENOENT;
    (void)pthread_mutex_lock(&im->lock);
    const struct layer *top = images_layer_of_tree(im, b->tree);
    if (top) {
        const struct content *c = content_of(im, b->s.owner, b->s.spec.image, top->l.chain);
        g->n = c ? c->n : chain_length(im, top->l.chain);
        g->layers = calloc(g->n + 1, sizeof(*g->layers));
        r = g->layers ? 0 : -ENOMEM;
        if (r == 0 && c) {
            memcpy(g->layers, c->layers, c->n * sizeof(*c->layers));
            r = image_config_copy(&c->parsed, &g->config);
        } else if (r == 0) {
            r = ground_of_layers(im, top->l.chain, g);
        }
    }
    (void)pthread_mutex_unlock(&im->lock);
    return r < 0 ? err_set(err, -r, "cannot find the image below the sandbox") : 0;
}

static int set_text(char **at, const char *text)
{
    if (!text)
        return 0;
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*at);
    *at = copy;
    return 0;
}

static int set_list(char ***at, char *const *list)
{
    char **copy = NULL;
    if (!list)
        return 0;
    int r = strings_copy(list, &copy);
    if (r < 0)
        return r;
    strings_free(*at);
    *at = copy;
    return 0;
}

static int add_pairs(struct pairs *to, const struct pairs *more)
{
    int r = 0;
    for (size_t i = 0; r == 0 && more && i < more->n; i++)
        r = pairs_add(to, more->names[i], more->values[i]);
    return r;
}

static int change(struct image_config *c, const struct image_changes *ch)
{
    int r = set_list(&c->cmd, ch->cmd);
    if (r == 0)
        r = set_list(&c->entrypoint, ch->entrypoint);
    if (r == 0)
        r = add_pairs(&c->env, ch->env);
    if (r == 0)
        r = add_pairs(&c->labels, ch->labels);
    if (r == 0)
        r = set_text(&c->workdir, ch->workdir);
    if (r == 0)
        r = set_text(&c->user, ch->user);
    return r;
}

static int commit(struct core *core, struct room *room, const struct box *b, struct ground *g,
                  const struct image_changes *changes, char **ret_config, struct err *err)
{
    struct image_layer diff;
    char by[64];
    int r = find_ground(core, b, g, err);
    if (r >= 0)
        r = image_diff(core, room, b->s.id, &diff, err);
    if (r < 0)
        return r;
    r = image_add_layer(core, room, g->n ? g->layers[g->n - 1].chain : "", diff.digest,
                        diff.media_type, diff.diff_id, &g->layers[g->n], err);
    if (r < 0) {
        blob_release_unused(core, room->owner, diff.digest);
        return r;
    }
    g->n++;
    (void)snprintf(by, sizeof(by), "warren commit %s", b->s.id);
    g->config.created_ms = clock_now_ms();
    r = change(&g->config, changes);
    if (r == 0)
        r = image_config_add(&g->config, diff.diff_id, by, g->config.created_ms);
    *ret_config = r < 0 ? NULL : image_config_text(&g->config);
    return *ret_config ? 0 : err_set(err, ENOMEM, "cannot write a configuration");
}

int image_commit(struct core *core, const char *owner, const char *who, const char *name,
                 const struct image_changes *changes, struct image *ret_image, struct err *err)
{
    struct ground g = { .n = 0 };
    struct image_hold hold;
    struct box *b;
    _cleanup_free_ char *config = NULL;
    char normal[IMAGE_NAME_MAX];
    int r = image_name_normal(name, normal, err);
    if (r >= 0)
        r = disk_admit(core, err);
    if (r >= 0)
        r = sandbox_hold_settled(core, owner, who, &b, err);
    if (r < 0)
        return r;
    image_hold_begin(core, owner, &hold);
    hold.room.inside = true;
    r = commit(core, &hold.room, b, &g, changes, &config, err);
    box_release(core, b);
    if (r >= 0)
        r = image_create(core, owner, normal, false, config, NULL, g.layers, g.n, ret_image, err);
    ground_done(&g);
    image_hold_end(core, &hold);
    return r;
}

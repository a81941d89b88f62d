#include "core/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/checkpoint.h"
#include "core/images.h"
#include "core/private.h"
#include "core/table.h"

typedef char digest_text[DIGEST_SIZE];

struct proof_set {
    digest_text *items; /* sorted */
    size_t n, cap;
};

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int add(struct proof_set *set, const char *digest)
{
    if (set->n == set->cap) {
        size_t cap = set->cap ? set->cap * 2 : 64;
        digest_text *items = reallocarray(set->items, cap, sizeof(*items));
        if (!items)
            return -ENOMEM;
        set->items = items;
        set->cap = cap;
    }
    memcpy(set->items[set->n++], digest, DIGEST_SIZE);
    return 0;
}

static int add_image(struct core *core, struct proof_set *set, const struct image *image)
{
    _cleanup_free_ struct image_layer *layers = NULL;
    size_t n = 0;
    int r = image_layers(core, image, &layers, &n, NULL);
    if (r < 0)
        return r == -ENOMEM ? r : 0; /* removed meanwhile: its layers prove nothing */
    for (size_t i = 0; i < n && r >= 0; i++) {
        r = add(set, layers[i].digest);
        if (r >= 0)
            r = add(set, layers[i].chain);
    }
    return r;
}

/* The trees below an owner's files, each KEEPER_IMAGE_SIZE; free(). */
static char (*trees_of(struct core *core, const char *owner, size_t *ret_n))[KEEPER_IMAGE_SIZE]
{
    const struct table *t = &core->table;
    const struct checkpoints *cs = &core->checkpoints;
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    char(*trees)[KEEPER_IMAGE_SIZE] = calloc(t->n + cs->n + 1, sizeof(*trees));
    for (size_t i = 0; trees && i < t->n; i++)
        if (strcmp(t->sorted[i]->s.owner, owner) == 0)
            memcpy(trees[n++], t->sorted[i]->tree, KEEPER_IMAGE_SIZE);
    for (size_t i = 0; trees && i < cs->n; i++)
        if (strcmp(cs->items[i].owner, owner) == 0)
            memcpy(trees[n++], cs->items[i].tree, KEEPER_IMAGE_SIZE);
    (void)pthread_mutex_unlock(&core->table.lock);
    *ret_n = n;
    return trees;
}

/* By its files alone, not by the bytes it came as. */
static int add_trees(struct core *core, struct proof_set *set, const char *owner)
{
    struct images *im = &core->images;
    size_t n = 0;
    _cleanup_free_ char(*trees)[KEEPER_IMAGE_SIZE] = trees_of(core, owner, &n);
    int r = trees ? 0 : -ENOMEM;
    (void)pthread_mutex_lock(&im->lock);
    for (size_t i = 0; i < n && r >= 0; i++)
        for (const struct layer *l = images_layer_of_tree(im, trees[i]); l && r >= 0;
             l = l->parent[0] ? images_layer(im, l->parent) : NULL)
            r = add(set, l->l.chain);
    (void)pthread_mutex_unlock(&im->lock);
    return r;
}

int proof_set_new(struct core *core, const char *owner, struct proof_set **ret_set, struct err *err)
{
    _cleanup_free_ struct image *images = NULL;
    size_t n = 0;
    int r = image_list(core, owner, NULL, &images, &n, err);
    if (r < 0)
        return r;
    struct proof_set *set = calloc(1, sizeof(*set));
    r = set ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = add_image(core, set, &images[i]);
    if (r >= 0)
        r = add_trees(core, set, owner);
    if (r < 0) {
        proof_set_free(set);
        return err_set(err, -r, "cannot list the layers of images");
    }
    if (set->n > 0)
        qsort(set->items, set->n, sizeof(*set->items), compare);
    *ret_set = set;
    return 0;
}

void proof_set_free(struct proof_set *set)
{
    if (!set)
        return;
    free(set->items);
    free(set);
}

bool proof_set_has(const struct proof_set *set, const char *digest_or_chain)
{
    return set->n > 0 &&
           bsearch(digest_or_chain, set->items, set->n, sizeof(*set->items), compare) != NULL;
}

/* ---- what was fetched ---- */

void proof_add(struct core *core, const char *owner, const char *digest)
{
    struct registries *r = &core->registries;
    (void)pthread_mutex_lock(&r->lock);
    if (!r->proofs)
        r->proofs = calloc(PROOFS_MAX, sizeof(*r->proofs)); /* NULL: then nothing is remembered */
    if (r->proofs) {
        struct proof *p = &r->proofs[r->nproofs++ % PROOFS_MAX];
        (void)snprintf(p->owner, sizeof(p->owner), "%s", owner);
        memcpy(p->digest, digest, sizeof(p->digest));
    }
    (void)pthread_mutex_unlock(&r->lock);
}

bool proof_known(struct core *core, const char *owner, const char *digest)
{
    struct registries *r = &core->registries;
    bool found = false;
    (void)pthread_mutex_lock(&r->lock);
    size_t n = r->nproofs < PROOFS_MAX ? r->nproofs : PROOFS_MAX;
    for (size_t i = 0; i < n && !found; i++)
        found = strcmp(r->proofs[i].digest, digest) == 0 && strcmp(r->proofs[i].owner, owner) == 0;
    (void)pthread_mutex_unlock(&r->lock);
    return found;
}

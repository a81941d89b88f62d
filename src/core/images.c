#include "core/images.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/reach.h"

#define LOG_MODULE "image"

/* ---- lookups ---- */

struct layer *images_layer(struct images *im, const char *chain)
{
    for (size_t i = 0; i < im->n_layers; i++)
        if (strcmp(im->layers[i].l.chain, chain) == 0)
            return &im->layers[i];
    return NULL;
}

struct layer *images_layer_of_tree(struct images *im, const char *tree)
{
    for (size_t i = 0; i < im->n_layers; i++)
        if (strcmp(im->layers[i].l.tree, tree) == 0)
            return &im->layers[i];
    return NULL;
}

struct content *images_content(struct images *im, const char *digest)
{
    for (size_t i = 0; i < im->n_contents; i++)
        if (strcmp(im->contents[i]->digest, digest) == 0)
            return im->contents[i];
    return NULL;
}

struct image_name *images_own(struct images *im, const char *owner, const char *name)
{
    for (size_t i = 0; i < im->n_names; i++)
        if (strcmp(im->names[i].name, name) == 0 && strcmp(im->names[i].owner, owner) == 0)
            return &im->names[i];
    return NULL;
}

/* A first part with a dot is a registry's host, as everywhere, and never a team. */
static bool is_host(const char *part)
{
    return strchr(part, '.') || strcmp(part, "localhost") == 0;
}

struct image_name *images_find(struct images *im, const char *asker, const char *ref)
{
    struct reach reach = reach_of(asker, ref);
    struct image_name *best = NULL;
    int rank = 0;
    if (is_host(reach.team))
        reach.team[0] = '\0';
    for (size_t i = 0; i < im->n_names; i++) {
        struct image_name *n = &im->names[i];
        int r = reach_rank(&reach, n->owner, n->name, n->public);
        if (r > rank) {
            rank = r;
            best = n;
        }
    }
    return best;
}

unsigned images_names_of(const struct images *im, const struct content *c)
{
    unsigned n = 0;
    for (size_t i = 0; i < im->n_names; i++)
        n += im->names[i].content == c;
    return n;
}

static bool has_chain(const struct content *c, const char *chain)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->layers[i].chain, chain) == 0)
            return true;
    return false;
}

bool images_chain_used(const struct images *im, const char *chain)
{
    for (size_t i = 0; i < im->n_contents; i++)
        if (has_chain(im->contents[i], chain))
            return true;
    return false;
}

bool images_blob_used(const struct images *im, const char *digest)
{
    for (size_t i = 0; i < im->n_contents; i++)
        for (size_t k = 0; k < im->contents[i]->n; k++)
            if (strcmp(im->contents[i]->layers[k].digest, digest) == 0)
                return true;
    for (size_t i = 0; i < im->n_layers; i++)
        if (strcmp(im->layers[i].l.digest, digest) == 0)
            return true;
    return false;
}

int64_t images_held_since(const struct images *im)
{
    int64_t since = INT64_MAX;
    for (const struct image_hold *h = im->holds; h; h = h->next)
        if (h->since_ms < since)
            since = h->since_ms;
    return since;
}

void images_describe(const struct images *im, const char *asker, const struct image_name *n,
                     struct image *ret_image)
{
    const struct content *c = n->content;
    struct image i = { .public = n->public,
                       .layers = (unsigned)c->n,
                       .created_ms = c->parsed.created_ms ? c->parsed.created_ms : n->created_ms };
    memcpy(i.name, n->name, sizeof(i.name));
    memcpy(i.owner, n->owner, sizeof(i.owner));
    (void)reach_name(asker, n->owner, n->name, i.as, sizeof(i.as)); /* fits: see IMAGE_REF_MAX */
    memcpy(i.id, c->id, sizeof(i.id));
    memcpy(i.digest, c->digest, sizeof(i.digest));
    memcpy(i.chain, c->layers[c->n - 1].chain, sizeof(i.chain));
    memcpy(i.tree, c->layers[c->n - 1].tree, sizeof(i.tree));
    (void)snprintf(i.os, sizeof(i.os), "%.31s", c->parsed.os ? c->parsed.os : "linux");
    (void)snprintf(i.architecture, sizeof(i.architecture), "%.31s",
                   c->parsed.architecture ? c->parsed.architecture : oci_machine());
    for (size_t k = 0; k < c->n; k++) {
        i.size_bytes += c->layers[k].size_bytes;
        for (size_t o = 0; o < im->n_contents; o++)
            if (im->contents[o] != c && has_chain(im->contents[o], c->layers[k].chain)) {
                i.shared_bytes += c->layers[k].size_bytes;
                break;
            }
    }
    *ret_image = i;
}

/* ---- what a team's images take ---- */

static int by_chain(const void *pa, const void *pb)
{
    const struct image_layer *const *a = pa, *const *b = pb;
    return strcmp((*a)->chain, (*b)->chain);
}

/* The layers of the owner's images, each once and in order; free(). */
static const struct image_layer **layers_of(const struct images *im, const char *owner,
                                            size_t *ret_n)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < im->n_names; i++)
        if (strcmp(im->names[i].owner, owner) == 0)
            n += im->names[i].content->n;
    const struct image_layer **list = calloc(n + 1, sizeof(*list));
    *ret_n = 0;
    if (!list)
        return NULL;
    n = 0;
    for (size_t i = 0; i < im->n_names; i++)
        for (size_t k = 0; strcmp(im->names[i].owner, owner) == 0 && k < im->names[i].content->n;
             k++)
            list[n++] = &im->names[i].content->layers[k];
    if (n)
        qsort(list, n, sizeof(*list), by_chain);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(list[kept - 1]->chain, list[i]->chain) != 0)
            list[kept++] = list[i];
    *ret_n = kept;
    return list;
}

static uint64_t both(const struct image_layer *l)
{
    return l->size_bytes + l->compressed_bytes;
}

uint64_t images_bytes(const struct images *im, const char *owner)
{
    size_t n;
    uint64_t bytes = 0;
    _cleanup_free_ const struct image_layer **list = layers_of(im, owner, &n);
    for (size_t i = 0; i < n; i++)
        bytes += both(list[i]);
    for (size_t i = 0; i < im->n_layers; i++) {
        const struct image_layer *l = &im->layers[i].l;
        bool own = strcmp(im->layers[i].owner, owner) == 0;
        if (own && !images_chain_used(im, l->chain))
            bytes += both(l);
    }
    return bytes;
}

uint64_t images_bytes_more(const struct images *im, const char *owner, const struct content *c)
{
    size_t n;
    uint64_t bytes = 0;
    _cleanup_free_ const struct image_layer **list = layers_of(im, owner, &n);
    for (size_t i = 0; i < c->n; i++) {
        const struct image_layer *l = &c->layers[i];
        if (!n || !bsearch(&l, list, n, sizeof(*list), by_chain))
            bytes += both(l);
    }
    return bytes;
}

/* ---- changes ---- */

int images_add_layer(struct images *im, const struct layer *l)
{
    struct layer *layers = reallocarray(im->layers, im->n_layers + 1, sizeof(*layers));
    if (!layers)
        return -ENOMEM;
    im->layers = layers;
    im->layers[im->n_layers++] = *l;
    im->changes++;
    return 0;
}

bool images_take_layer(struct images *im, const char *chain, struct layer *ret_l)
{
    struct layer *l = images_layer(im, chain);
    if (!l)
        return false;
    *ret_l = *l;
    *l = im->layers[--im->n_layers];
    im->changes++;
    return true;
}

int images_add_content(struct images *im, struct content *c)
{
    struct content **contents = reallocarray(im->contents, im->n_contents + 1, sizeof(*contents));
    if (!contents) {
        content_free(c);
        return -ENOMEM;
    }
    im->contents = contents;
    im->contents[im->n_contents++] = c;
    im->changes++;
    return 0;
}

struct content *images_take_content(struct images *im, const char *digest)
{
    for (size_t i = 0; i < im->n_contents; i++)
        if (strcmp(im->contents[i]->digest, digest) == 0) {
            struct content *c = im->contents[i];
            im->contents[i] = im->contents[--im->n_contents];
            im->changes++;
            return c;
        }
    return NULL;
}

int images_put_name(struct images *im, const struct image_name *n)
{
    struct image_name *at = images_own(im, n->owner, n->name);
    if (!at) {
        struct image_name *names = reallocarray(im->names, im->n_names + 1, sizeof(*names));
        if (!names)
            return -ENOMEM;
        im->names = names;
        at = &im->names[im->n_names++];
    }
    *at = *n;
    im->changes++;
    return 0;
}

bool images_take_name(struct images *im, const char *owner, const char *name)
{
    struct image_name *at = images_own(im, owner, name);
    if (at)
        *at = im->names[--im->n_names];
    im->changes++;
    return at != NULL;
}

/* ---- contents ---- */

void content_free(struct content *c)
{
    if (!c)
        return;
    free(c->manifest);
    free(c->config);
    free(c->layers);
    image_config_done(&c->parsed);
    free(c);
}

/* The manifest lists these layers, the configuration their diff ids, in the same order. */
static int check_layers(struct content *c, struct err *err)
{
    struct oci_manifest m;
    int r = oci_manifest_parse(c->manifest, strlen(c->manifest), &m, err);
    if (r < 0)
        return r;
    if (m.n != c->n || c->n == 0 || c->parsed.n_diff_ids != c->n)
        r = err_fail(err, FAIL_INVALID_IMAGE,
                     "the manifest has %zu layers and the configuration %zu", m.n,
                     c->parsed.n_diff_ids);
    if (r == 0 && strcmp(m.config.digest, c->id) != 0)
        r = err_fail(err, FAIL_INVALID_IMAGE, "the manifest is of another configuration");
    for (size_t i = 0; r == 0 && i < c->n; i++)
        if (strcmp(m.layers[i].digest, c->layers[i].digest) != 0 ||
            strcmp(c->parsed.diff_ids[i], c->layers[i].diff_id) != 0)
            r = err_fail(err, FAIL_INVALID_IMAGE,
                         "layer %zu is not the one that the manifest and the configuration say",
                         i + 1);
    oci_manifest_done(&m);
    return r;
}

static char *make_manifest(const struct content *c)
{
    struct oci_blob config = { .media_type = OCI_CONFIG, .size = strlen(c->config) };
    struct oci_blob *layers = calloc(c->n + 1, sizeof(*layers));
    if (!layers)
        return NULL;
    memcpy(config.digest, c->id, sizeof(config.digest));
    for (size_t i = 0; i < c->n; i++) {
        layers[i].size = c->layers[i].compressed_bytes;
        memcpy(layers[i].digest, c->layers[i].digest, sizeof(layers[i].digest));
        memcpy(layers[i].media_type, c->layers[i].media_type, sizeof(layers[i].media_type));
    }
    char *text = oci_manifest_text(&config, layers, c->n);
    free(layers);
    return text;
}

int content_new(const char *manifest, const char *config, const struct image_layer *layers,
                size_t n, int64_t created_ms, struct content **ret_c, struct err *err)
{
    _cleanup_(content_freep) struct content *c = calloc(1, sizeof(*c));
    if (!c || !(c->config = strdup(config)) || !(c->layers = calloc(n + 1, sizeof(*layers))))
        return err_set(err, ENOMEM, "cannot allocate an image");
    if (n)
        memcpy(c->layers, layers, n * sizeof(*layers));
    c->n = n;
    c->created_ms = created_ms;
    if (digest_of(config, strlen(config), c->id) < 0)
        return err_set(err, EIO, "cannot hash a configuration");
    int r = image_config_parse(config, strlen(config), &c->parsed, err);
    if (r < 0)
        return r;
    c->manifest = manifest ? strdup(manifest) : make_manifest(c);
    if (!c->manifest)
        return err_set(err, ENOMEM, "cannot allocate a manifest");
    if (digest_of(c->manifest, strlen(c->manifest), c->digest) < 0)
        return err_set(err, EIO, "cannot hash a manifest");
    r = check_layers(c, err);
    if (r < 0)
        return r;
    *ret_c = take_ptr(c);
    return 0;
}

/* ---- loading ---- */

static void copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from ? from : "");
}

static int load_layer(void *ctx, const struct store_layer *row)
{
    struct layer l = { .kept = row->kept != 0, .created_ms = row->created_ms };
    if (strlen(row->tree) != KEEPER_IMAGE_SIZE - 1 || !digest_valid(row->chain))
        return 0;
    copy(l.l.chain, sizeof(l.l.chain), row->chain);
    copy(l.parent, sizeof(l.parent), row->parent);
    copy(l.l.diff_id, sizeof(l.l.diff_id), row->diff_id);
    copy(l.l.tree, sizeof(l.l.tree), row->tree);
    copy(l.l.digest, sizeof(l.l.digest), row->digest);
    copy(l.l.media_type, sizeof(l.l.media_type), row->media_type);
    l.l.compressed_bytes = (uint64_t)row->compressed_bytes;
    l.l.size_bytes = (uint64_t)row->size_bytes;
    if (strlen(row->owner) < sizeof(l.owner))
        copy(l.owner, sizeof(l.owner), row->owner);
    return images_add_layer(ctx, &l);
}

/* The layers of a recorded content, from its texts and the table of layers. */
static int load_layers(struct images *im, const struct store_content *row,
                       struct image_layer **ret_layers, size_t *ret_n, struct err *err)
{
    struct oci_manifest m;
    struct image_config config;
    int r = oci_manifest_parse(row->manifest, strlen(row->manifest), &m, err);
    if (r < 0)
        return r;
    r = image_config_parse(row->config, strlen(row->config), &config, err);
    if (r < 0) {
        oci_manifest_done(&m);
        return r;
    }
    struct image_layer *layers = calloc(m.n + 1, sizeof(*layers));
    char chain[DIGEST_SIZE] = "";
    if (!layers || config.n_diff_ids != m.n)
        r = err_set(err, layers ? EPROTO : ENOMEM, "cannot read a recorded image");
    for (size_t i = 0; r == 0 && i < m.n; i++) {
        char next[DIGEST_SIZE];
        r = digest_chain(chain, config.diff_ids[i], next);
        memcpy(chain, next, sizeof(chain));
        const struct layer *l = r < 0 ? NULL : images_layer(im, chain);
        if (!l) {
            r = err_set(err, ENOENT, "layer %zu of a recorded image is missing", i + 1);
            break;
        }
        layers[i] = l->l;
        memcpy(layers[i].digest, m.layers[i].digest, sizeof(layers[i].digest));
        memcpy(layers[i].media_type, m.layers[i].media_type, sizeof(layers[i].media_type));
        layers[i].compressed_bytes = m.layers[i].size;
    }
    *ret_n = m.n;
    oci_manifest_done(&m);
    image_config_done(&config);
    if (r < 0)
        free(layers);
    else
        *ret_layers = layers;
    return r;
}

static int load_content(void *ctx, const struct store_content *row)
{
    struct images *im = ctx;
    struct err err = ERR_INIT;
    _cleanup_free_ struct image_layer *layers = NULL;
    struct content *c = NULL;
    size_t n = 0;
    int r = load_layers(im, row, &layers, &n, &err);
    if (r == 0)
        r = content_new(row->manifest, row->config, layers, n, row->created_ms, &c, &err);
    if (r < 0) {
        log_error("image skipped digest=%.80s err=\"%s\"", row->digest, err.msg);
        return 0;
    }
    return images_add_content(im, c);
}

static int load_name(void *ctx, const struct store_name *row)
{
    struct images *im = ctx;
    struct image_name n = { .public = row->public != 0, .created_ms = row->created_ms };
    n.content = images_content(im, row->digest);
    if (!n.content || strlen(row->owner) >= sizeof(n.owner) || strlen(row->name) >= sizeof(n.name))
        return 0;
    copy(n.owner, sizeof(n.owner), row->owner);
    copy(n.name, sizeof(n.name), row->name);
    return images_put_name(im, &n);
}

int images_load(struct core *core, struct err *err)
{
    struct images *im = &core->images;
    int r = store_layer_each(core->store, load_layer, im, err);
    if (r >= 0)
        r = store_content_each(core->store, load_content, im, err);
    if (r >= 0)
        r = store_name_each(core->store, load_name, im, err);
    if (r >= 0)
        r = images_adopt_old(core, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the images") : r;
}

void images_done(struct images *im)
{
    for (size_t i = 0; i < im->n_contents; i++)
        content_free(im->contents[i]);
    free(im->contents);
    free(im->layers);
    free(im->names);
    im->contents = NULL;
    im->layers = NULL;
    im->names = NULL;
    im->n_contents = im->n_layers = im->n_names = 0;
}

#include "core/image.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/event.h"
#include "core/images.h"
#include "core/pool.h"
#include "core/reach.h"
#include "core/table.h"
#include "core/template.h"

#define LOG_MODULE "image"
#define TAG_MAX 128
#define LATEST ":latest"

/* ---- names ---- */

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool tag_valid(const char *tag)
{
    size_t n = strlen(tag);
    if (n == 0 || n > TAG_MAX || tag[0] == '.' || tag[0] == '-')
        return false;
    for (const char *p = tag; *p; p++)
        if (!is_lower(*p) && !(*p >= 'A' && *p <= 'Z') && !strchr("._-", *p))
            return false;
    return true;
}

static const char *tag_at(const char *name)
{
    const char *slash = strrchr(name, '/'), *colon = strrchr(name, ':');
    return colon && (!slash || colon > slash) ? colon : NULL;
}

bool image_name_valid(const char *name)
{
    size_t n = strnlen(name, IMAGE_NAME_MAX);
    if (n == 0 || n == IMAGE_NAME_MAX || !is_lower(name[0]))
        return false;
    const char *tag = tag_at(name);
    size_t end = tag ? (size_t)(tag - name) : n;
    for (size_t i = 0; i < end; i++) {
        if (!is_lower(name[i]) && !strchr("._/:-", name[i]))
            return false;
        if (name[i] == '/' && (i + 1 == end || !is_lower(name[i + 1])))
            return false;
    }
    return end > 0 && is_lower(name[end - 1]) && (!tag || tag_valid(tag + 1));
}

int image_name_normal(const char *name, char ret_name[IMAGE_NAME_MAX], struct err *err)
{
    if (!image_name_valid(name))
        return err_fail(err, FAIL_INVALID_REFERENCE,
                        "'%.64s' is no image's name: [host[:port]/]name[:tag], the name in a-z, "
                        "0-9, '.', '_', '/' and '-', %d bytes at most",
                        name, IMAGE_NAME_MAX - 1);
    (void)snprintf(ret_name, IMAGE_NAME_MAX, "%s", name);
    const char *tag = tag_at(ret_name);
    if (tag && strcmp(tag, LATEST) == 0)
        ret_name[tag - ret_name] = '\0';
    return 0;
}

/* Those that come as recipes (images/) and are made on demand, and the templates that come with them. */
#define CURE(image_)                                                               \
    "; make it on the daemon's host: `sudo warren-image " image_ "` (in a clone: " \
    "`sudo ./dev image " image_ "`)"

const char *image_cure(const char *name)
{
    static const struct {
        const char *name, *cure;
    } built_in[] = {
        { "base", CURE("base") },
        { "code-interpreter", CURE("code-interpreter") },
        { "code-interpreter-v1", CURE("code-interpreter") }, /* as E2B calls it */
        { "interpreter-all", CURE("interpreter-all") },
        { "claude", CURE("claude") },
        { "desktop", CURE("desktop") },
        { "desktop-up", CURE("desktop") },
    };
    for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
        if (strcmp(name, built_in[i].name) == 0)
            return built_in[i].cure;
    return "";
}

static int not_found(struct err *err, const char *name)
{
    const char *cure = image_cure(name);
    if (*cure)
        return err_fail(err, FAIL_IMAGE_NOT_FOUND, "no image '%s' here yet%s", name, cure);
    return err_fail(err, FAIL_IMAGE_NOT_FOUND,
                    "no image '%.128s' here; `warren image ls` shows what there is, another team's "
                    "as team/name",
                    name);
}

/* The reference in its stored form. A text that is no image name as a whole may be "team/name". */
static int normal_ref(const char *text, char ret_ref[IMAGE_REF_MAX])
{
    char name[IMAGE_NAME_MAX];
    size_t n = strcspn(text, "/");
    n = text[n] && !image_name_valid(text) ? n + 1 : 0;
    if (n > OWNER_MAX || image_name_normal(text + n, name, NULL) < 0)
        return -EINVAL;
    int len = snprintf(ret_ref, IMAGE_REF_MAX, "%.*s%s", (int)n, text, name);
    return len < 0 || len >= IMAGE_REF_MAX ? -EINVAL : 0;
}

/* ---- looking ---- */

int image_resolve(struct core *core, const char *owner, const char *name, struct image *ret_image,
                  struct image_config *ret_config, struct err *err)
{
    struct images *im = &core->images;
    char ref[IMAGE_REF_MAX];
    int r = normal_ref(name, ref);
    if (r < 0)
        return not_found(err, name);
    (void)pthread_mutex_lock(&im->lock);
    const struct image_name *n = images_find(im, owner, ref);
    if (n) {
        images_describe(im, owner, n, ret_image);
        struct layer *top = images_layer(im, ret_image->chain);
        if (top) /* found, so a hold keeps it even if the image goes */
            top->touched_ms = clock_now_ms();
        if (ret_config)
            r = image_config_copy(&n->content->parsed, ret_config);
    }
    (void)pthread_mutex_unlock(&im->lock);
    if (r < 0)
        return err_set(err, -r, "cannot copy a configuration");
    return n ? 0 : not_found(err, name);
}

bool image_meant(struct core *core, const char *asker, const char *text, const struct image *image)
{
    struct images *im = &core->images;
    char ref[IMAGE_REF_MAX];
    if (normal_ref(text, ref) < 0)
        return false;
    (void)pthread_mutex_lock(&im->lock);
    const struct image_name *n = images_find(im, asker, ref);
    bool meant = n && strcmp(n->owner, image->owner) == 0 && strcmp(n->name, image->name) == 0;
    (void)pthread_mutex_unlock(&im->lock);
    return meant;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct image *)a)->as, ((const struct image *)b)->as);
}

int image_list(struct core *core, const char *owner, const char *prefix, struct image **ret_images,
               size_t *ret_n, struct err *err)
{
    struct images *im = &core->images;
    size_t n = 0, skip = prefix ? strlen(prefix) : 0;
    (void)pthread_mutex_lock(&im->lock);
    struct image *list = calloc(im->n_names + 1, sizeof(*list));
    for (size_t i = 0; list && i < im->n_names; i++) {
        const struct image_name *name = &im->names[i];
        char as[IMAGE_REF_MAX];
        if (reach_name(owner, name->owner, name->name, as, sizeof(as)) < 0 ||
            (skip && strncmp(as, prefix, skip) != 0) || images_find(im, owner, as) != name)
            continue;
        images_describe(im, owner, name, &list[n++]);
    }
    (void)pthread_mutex_unlock(&im->lock);
    if (!list)
        return err_set(err, ENOMEM, "cannot allocate the images");
    qsort(list, n, sizeof(*list), compare);
    *ret_images = list;
    *ret_n = n;
    return 0;
}

int image_layers(struct core *core, const struct image *image, struct image_layer **ret_layers,
                 size_t *ret_n, struct err *err)
{
    struct images *im = &core->images;
    struct image_layer *layers = NULL;
    (void)pthread_mutex_lock(&im->lock);
    const struct content *c = images_content(im, image->digest);
    if (c && (layers = calloc(c->n + 1, sizeof(*layers)))) {
        memcpy(layers, c->layers, c->n * sizeof(*layers));
        *ret_n = c->n;
    }
    (void)pthread_mutex_unlock(&im->lock);
    if (!layers)
        return c ? err_set(err, ENOMEM, "cannot allocate layers") : not_found(err, image->name);
    *ret_layers = layers;
    return 0;
}

int image_texts(struct core *core, const struct image *image, char **ret_manifest,
                char **ret_config, struct err *err)
{
    struct images *im = &core->images;
    char *manifest = NULL, *config = NULL;
    (void)pthread_mutex_lock(&im->lock);
    const struct content *c = images_content(im, image->digest);
    if (c) {
        manifest = strdup(c->manifest);
        config = strdup(c->config);
    }
    (void)pthread_mutex_unlock(&im->lock);
    if (!c)
        return not_found(err, image->name);
    if (!manifest || !config) {
        free(manifest);
        free(config);
        return err_set(err, ENOMEM, "cannot copy an image");
    }
    if (ret_manifest)
        *ret_manifest = take_ptr(manifest);
    if (ret_config)
        *ret_config = take_ptr(config);
    free(manifest);
    free(config);
    return 0;
}

/* ---- naming ---- */

static void tell(struct core *core, const char *type, const struct image *image)
{
    char data[IMAGE_NAME_MAX + 128];
    int n = snprintf(data, sizeof(data), "{\"name\":\"%s\",\"digest\":\"%s\"}", image->name,
                     image->digest);
    event_emit(core, image->owner, NULL, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
}

/* With the lock held: the content that the name had, if nothing else names it; it is out of the
 * memory then. */
static struct content *orphan(struct images *im, const struct content *old)
{
    if (!old || images_names_of(im, old) > 0)
        return NULL;
    return images_take_content(im, old->digest);
}

/* Check that the owner's quota has room for what this content adds. Opens the room in any case. */
static int claim(struct core *core, const char *owner, const char *digest, struct room *room,
                 struct err *err)
{
    struct images *im = &core->images;
    room_open(core, owner, room);
    (void)pthread_mutex_lock(&im->lock);
    const struct content *c = images_content(im, digest);
    uint64_t more = c ? images_bytes_more(im, owner, c) : 0;
    (void)pthread_mutex_unlock(&im->lock);
    return more ? room_take_named(room, more, err) : 0;
}

/* Points a name at a content that is in memory already; fills *ret_image. */
static int point(struct core *core, const struct image_name *name, const char *digest,
                 struct image *ret_image, struct err *err)
{
    struct images *im = &core->images;
    struct store_name row = { .owner = name->owner,
                              .name = name->name,
                              .digest = digest,
                              .public = name->public,
                              .created_ms = name->created_ms };
    struct room room;
    int r = claim(core, name->owner, digest, &room, err);
    if (r >= 0)
        r = store_name_put(core->store, &row, err);
    if (r < 0) {
        room_close(&room);
        return r;
    }
    struct image_name n = *name;
    struct content *gone = NULL;
    char old_tree[KEEPER_IMAGE_SIZE] = "";
    (void)pthread_mutex_lock(&im->lock);
    n.content = images_content(im, digest);
    const struct image_name *was = images_own(im, n.owner, n.name);
    const struct content *old = was ? was->content : NULL;
    if (old && old->n)
        memcpy(old_tree, old->layers[old->n - 1].tree, sizeof(old_tree));
    r = n.content ? images_put_name(im, &n) : -ENOENT;
    if (r >= 0) {
        gone = old != n.content ? orphan(im, old) : NULL;
        images_describe(im, n.owner, &n, ret_image);
    }
    (void)pthread_mutex_unlock(&im->lock);
    room_close(&room); /* from here on the name itself counts */
    if (r < 0)
        return err_set(err, -r, "cannot name an image");
    warm_pool_replace(core, old_tree[0] ? old_tree : NULL, ret_image->tree);
    if (gone)
        content_release(core, gone);
    tell(core, "image.added", ret_image);
    log_info("added image=%s digest=%s bytes=%llu", ret_image->name, ret_image->digest,
             (unsigned long long)ret_image->size_bytes);
    return 0;
}

/* Puts it into the database and the memory, unless it is there already. Takes c. */
static int add_content(struct core *core, struct content *c, struct err *err)
{
    struct images *im = &core->images;
    struct store_content row = { .digest = c->digest,
                                 .chain = c->layers[c->n - 1].chain,
                                 .manifest = c->manifest,
                                 .config = c->config,
                                 .created_ms = c->created_ms };
    int r = store_content_put(core->store, &row, err);
    if (r < 0) {
        content_free(c);
        return r;
    }
    (void)pthread_mutex_lock(&im->lock);
    if (images_content(im, c->digest))
        content_free(c);
    else
        r = images_add_content(im, c);
    (void)pthread_mutex_unlock(&im->lock);
    return r < 0 ? err_set(err, -r, "cannot allocate an image") : 0;
}

static int name_of(const char *owner, const char *name, bool public, struct image_name *ret_n,
                   struct err *err)
{
    struct image_name n = { .public = public, .created_ms = clock_now_ms() };
    int r = image_name_normal(name, n.name, err);
    if (r < 0)
        return r;
    if (strlen(owner) >= sizeof(n.owner))
        return err_set(err, EINVAL, "an owner's name is too long");
    memcpy(n.owner, owner, strlen(owner) + 1);
    *ret_n = n;
    return 0;
}

int image_create(struct core *core, const char *owner, const char *name, bool public,
                 const char *config, const char *manifest, const struct image_layer *layers,
                 size_t n, struct image *ret_image, struct err *err)
{
    struct image_name as;
    struct content *c = NULL;
    char digest[DIGEST_SIZE];
    int r = name_of(owner, name, public, &as, err);
    if (r >= 0)
        r = content_new(manifest, config, layers, n, as.created_ms, &c, err);
    if (r < 0)
        return r;
    memcpy(digest, c->digest, sizeof(digest));
    r = add_content(core, c, err);
    if (r >= 0)
        r = point(core, &as, digest, ret_image, err);
    if (r < 0) { /* no name leads to the content: remove it */
        (void)pthread_mutex_lock(&core->images.lock);
        struct content *gone = orphan(&core->images, images_content(&core->images, digest));
        (void)pthread_mutex_unlock(&core->images.lock);
        if (gone)
            content_release(core, gone);
    }
    return r;
}

int image_tag(struct core *core, const char *owner, const char *name, const char *as,
              struct image *ret_image, struct err *err)
{
    struct image_hold hold;
    struct image_name n;
    struct image image;
    image_hold_begin(core, owner, &hold);
    int r = image_resolve(core, owner, name, &image, NULL, err);
    if (r >= 0)
        r = name_of(owner, as, false, &n, err);
    if (r >= 0) {
        n.public = image.public && strcmp(image.owner, owner) == 0;
        r = point(core, &n, image.digest, ret_image, err);
    }
    image_hold_end(core, &hold);
    return r;
}

static int in_use(struct err *err, const char *name)
{
    return err_fail(err, FAIL_IMAGE_IN_USE,
                    "a sandbox uses image '%.128s'; delete its sandboxes first", name);
}

/* Whether no other name keeps the tree that sandboxes of it stand on: two imports of one tar are two
 * images of one tree. */
static bool last_of_tree(const struct images *im, const struct content *c)
{
    unsigned n = 0;
    for (size_t i = 0; i < im->n_names; i++) {
        const struct content *other = im->names[i].content;
        n += strcmp(other->layers[other->n - 1].chain, c->layers[c->n - 1].chain) == 0;
    }
    return n == 1;
}

int image_remove(struct core *core, const char *owner, const char *name, struct err *err)
{
    struct images *im = &core->images;
    char ref[IMAGE_REF_MAX];
    struct image image = { 0 };
    bool last = false;
    if (normal_ref(name, ref) < 0)
        return not_found(err, name);
    (void)pthread_mutex_lock(&im->lock);
    const struct image_name *n = images_find(im, owner, ref);
    if (n) {
        images_describe(im, owner, n, &image);
        last = last_of_tree(im, n->content);
    }
    (void)pthread_mutex_unlock(&im->lock);
    if (!n)
        return not_found(err, name);
    if (strcmp(image.owner, owner) != 0)
        return err_fail(err, FAIL_FORBIDDEN, "image '%.128s' is another team's", name);
    if (last ? box_tree_used(core, image.tree) : box_image_used(core, &image))
        return in_use(err, name);
    if (template_uses_image(core, &image))
        return err_fail(err, FAIL_IMAGE_IN_USE,
                        "a template uses image '%.128s'; delete its templates first", name);
    int r = store_name_remove(core->store, owner, image.name, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&im->lock);
    (void)images_take_name(im, owner, image.name);
    struct content *gone = orphan(im, images_content(im, image.digest));
    (void)pthread_mutex_unlock(&im->lock);
    if (gone)
        content_release(core, gone);
    tell(core, "image.removed", &image);
    log_info("removed image=%s", image.name);
    return 0;
}

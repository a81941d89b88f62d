#include "core/image.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/pool.h"
#include "core/table.h"

#define LOG_MODULE "image"

bool image_name_valid(const char *name)
{
    size_t n = strnlen(name, IMAGE_NAME_MAX);
    if (n == 0 || n == IMAGE_NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!alnum && (i == 0 || !strchr("._/:-", c)))
            return false;
    }
    return true;
}

/* With the lock held. */
static struct image *find(struct images *im, const char *name)
{
    for (size_t i = 0; i < im->n; i++)
        if (strcmp(im->items[i].name, name) == 0)
            return &im->items[i];
    return NULL;
}

static int put(struct images *im, const struct image *image)
{
    struct image *at = find(im, image->name);
    if (!at) {
        struct image *items = reallocarray(im->items, im->n + 1, sizeof(*items));
        if (!items)
            return -ENOMEM;
        im->items = items;
        at = &im->items[im->n++];
    }
    *at = *image;
    return 0;
}

static int load_row(void *ctx, const struct store_image *row)
{
    struct image image = { .size_bytes = (uint64_t)row->size_bytes, .created_ms = row->created_ms };
    if (!image_name_valid(row->name) || strlen(row->tree) != KEEPER_IMAGE_SIZE - 1)
        return 0;
    (void)snprintf(image.name, sizeof(image.name), "%s", row->name);
    (void)snprintf(image.tree, sizeof(image.tree), "%s", row->tree);
    (void)snprintf(image.digest, sizeof(image.digest), "%s", row->digest);
    return put(ctx, &image);
}

int images_load(struct core *core, struct err *err)
{
    int r = store_image_each(core->store, load_row, &core->images, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the images") : r;
}

void images_done(struct images *im)
{
    free(im->items);
    im->items = NULL;
    im->n = 0;
}

static int not_found(struct err *err, const char *name)
{
    return err_name(err, ENOENT, "image_not_found",
                    "no image '%.128s' here; `warren image ls` shows what there is", name);
}

int image_get(struct core *core, const char *name, struct image *ret_image, struct err *err)
{
    struct images *im = &core->images;
    (void)pthread_mutex_lock(&im->lock);
    const struct image *found = find(im, name);
    if (found)
        *ret_image = *found;
    (void)pthread_mutex_unlock(&im->lock);
    return found ? 0 : not_found(err, name);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct image *)a)->name, ((const struct image *)b)->name);
}

int image_list(struct core *core, struct image **ret_images, size_t *ret_n, struct err *err)
{
    struct images *im = &core->images;
    (void)pthread_mutex_lock(&im->lock);
    size_t n = im->n;
    struct image *copy = calloc(n + 1, sizeof(*copy));
    if (copy && n)
        memcpy(copy, im->items, n * sizeof(*copy));
    (void)pthread_mutex_unlock(&im->lock);
    if (!copy)
        return err_set(err, ENOMEM, "cannot allocate the images");
    qsort(copy, n, sizeof(*copy), compare);
    *ret_images = copy;
    *ret_n = n;
    return 0;
}

bool image_tree_named(struct core *core, const char *tree)
{
    struct images *im = &core->images;
    bool named = false;
    (void)pthread_mutex_lock(&im->lock);
    for (size_t i = 0; i < im->n && !named; i++)
        named = strcmp(im->items[i].tree, tree) == 0;
    (void)pthread_mutex_unlock(&im->lock);
    return named;
}

void image_tree_release(struct core *core, const char *tree)
{
    if (image_tree_named(core, tree) || box_tree_used(core, tree))
        return;
    warm_pool_forget(core, tree);
    struct err err = ERR_INIT;
    int r = keeper_ask_image_rm(core, tree, &err);
    if (r < 0 && r != -ENOENT)
        log_warn("tree stays until the next start tree=%s err=\"%s\"", tree, err.msg);
}

static void tell(struct core *core, const char *type, const struct image *image)
{
    char data[IMAGE_NAME_MAX + 128];
    int n = snprintf(data, sizeof(data), "{\"name\":\"%s\",\"digest\":\"%s\"}", image->name,
                     image->digest);
    event_emit(core, OWNER_DEFAULT, NULL, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
}

int image_record(struct core *core, const struct image *image, struct err *err)
{
    struct images *im = &core->images;
    struct store_image row = { .name = image->name,
                               .tree = image->tree,
                               .digest = image->digest,
                               .size_bytes = (int64_t)image->size_bytes,
                               .created_ms = image->created_ms };
    int r = store_image_put(core->store, &row, err);
    if (r < 0)
        return r;
    struct image old = { .tree = "" };
    (void)pthread_mutex_lock(&im->lock);
    const struct image *at = find(im, image->name);
    if (at)
        old = *at;
    r = put(im, image);
    (void)pthread_mutex_unlock(&im->lock);
    if (r < 0)
        return err_set(err, -r, "cannot allocate an image");
    warm_pool_replace(core, old.tree[0] ? old.tree : NULL, image->tree);
    if (old.tree[0])
        image_tree_release(core, old.tree);
    tell(core, "image.added", image);
    log_info("added image=%s digest=%s bytes=%llu", image->name, image->digest,
             (unsigned long long)image->size_bytes);
    return 0;
}

int image_remove(struct core *core, const char *name, struct err *err)
{
    struct images *im = &core->images;
    struct image image;
    int r = image_get(core, name, &image, err);
    if (r < 0)
        return r;
    if (box_tree_used(core, image.tree))
        return err_name(err, EBUSY, "image_in_use",
                        "a sandbox uses image '%s'; delete its sandboxes first", name);
    r = store_image_remove(core->store, name, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&im->lock);
    struct image *at = find(im, name);
    if (at)
        *at = im->items[--im->n];
    (void)pthread_mutex_unlock(&im->lock);
    image_tree_release(core, image.tree);
    tell(core, "image.removed", &image);
    log_info("removed image=%s", name);
    return 0;
}

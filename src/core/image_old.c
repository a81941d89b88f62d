/* Images of a state from before there were layers: one tree, no blob, a name for everybody. Each
 * becomes an image of one layer; its tree stays as it is. What its bytes were is not known any more, so
 * its diff id is made up, and an export must say so. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/images.h"

#define LOG_MODULE "image"
#define OLD_MAX 4096

struct old {
    char name[IMAGE_NAME_MAX];
    char tree[KEEPER_IMAGE_SIZE], digest[DIGEST_SIZE];
    int64_t size_bytes, created_ms;
};

struct olds {
    struct old *items;
    size_t n;
};

static int collect(void *ctx, const struct store_image *row)
{
    struct olds *o = ctx;
    if (o->n == OLD_MAX || strlen(row->tree) != KEEPER_IMAGE_SIZE - 1 ||
        !image_name_valid(row->name))
        return 0;
    struct old *items = reallocarray(o->items, o->n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    o->items = items;
    struct old *at = &items[o->n++];
    *at = (struct old){ .size_bytes = row->size_bytes, .created_ms = row->created_ms };
    (void)snprintf(at->name, sizeof(at->name), "%s", row->name);
    (void)snprintf(at->tree, sizeof(at->tree), "%s", row->tree);
    (void)snprintf(at->digest, sizeof(at->digest), "%s", row->digest);
    return 0;
}

static int adopt_one(struct core *core, const struct old *o, struct err *err)
{
    struct layer l = { .created_ms = o->created_ms };
    struct image_config config = { .created_ms = o->created_ms };
    struct image image;
    (void)snprintf(l.l.diff_id, sizeof(l.l.diff_id), "sha256:%s", o->tree);
    memcpy(l.l.chain, l.l.diff_id, sizeof(l.l.chain));
    memcpy(l.l.tree, o->tree, sizeof(l.l.tree));
    (void)snprintf(l.l.digest, sizeof(l.l.digest), "%s",
                   digest_valid(o->digest) ? o->digest : l.l.diff_id);
    (void)snprintf(l.l.media_type, sizeof(l.l.media_type), "%s", OCI_LAYER);
    l.l.size_bytes = (uint64_t)o->size_bytes;
    int r = layer_record(core, &l, err);
    if (r >= 0 && !images_layer(&core->images, l.l.chain))
        r = images_add_layer(&core->images, &l);
    if (r >= 0)
        r = image_config_add(&config, l.l.diff_id, "warren image import", o->created_ms);
    _cleanup_free_ char *text = r < 0 ? NULL : image_config_text(&config);
    image_config_done(&config);
    if (r >= 0 && !text)
        r = err_set(err, ENOMEM, "cannot write a configuration");
    if (r >= 0)
        r = image_create(core, OWNER_DEFAULT, o->name, true, text, NULL, &l.l, 1, &image, err);
    return r < 0 ? r : store_image_remove(core->store, o->name, err);
}

int images_adopt_old(struct core *core, struct err *err)
{
    struct olds o = { NULL, 0 };
    int r = store_image_each(core->store, collect, &o, err);
    for (size_t i = 0; r >= 0 && i < o.n; i++) {
        r = adopt_one(core, &o.items[i], err);
        if (r >= 0)
            log_info("an image of old now has a layer image=%s", o.items[i].name);
    }
    free(o.items);
    return r;
}

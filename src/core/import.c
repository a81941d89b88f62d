/* Imports: the archive is kept as a blob while it arrives, then looked into. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/bundle.h"
#include "core/disk.h"
#include "core/images.h"

struct image_import {
    struct core *core;
    char owner[OWNER_MAX];
    char name[IMAGE_NAME_MAX];
    bool public;
    struct blob_writer *blob;
    struct image_hold hold;
};

static void import_free(struct image_import *imp)
{
    blob_abort(imp->blob);
    image_hold_end(imp->core, &imp->hold);
    free(imp);
}

int image_import_begin(struct core *core, const char *owner, const char *name, bool public,
                       struct image_import **ret_imp, struct err *err)
{
    char normal[IMAGE_NAME_MAX];
    int r = image_name_normal(name, normal, err);
    if (r >= 0)
        r = disk_admit(core, err);
    if (r < 0)
        return r;
    struct image_import *imp = strlen(owner) < OWNER_MAX ? calloc(1, sizeof(*imp)) : NULL;
    if (!imp)
        return err_set(err, ENOMEM, "cannot allocate an import");
    imp->core = core;
    imp->public = public;
    memcpy(imp->owner, owner, strlen(owner) + 1);
    memcpy(imp->name, normal, sizeof(imp->name));
    image_hold_begin(core, imp->owner, &imp->hold);
    r = blob_begin(core, &imp->hold.room, &imp->blob, err);
    if (r < 0) {
        import_free(imp);
        return r;
    }
    *ret_imp = imp;
    return 0;
}

int image_import_write(struct image_import *imp, const void *p, size_t n, struct err *err)
{
    int r = disk_go_on(imp->core, err);
    return r < 0 ? r : blob_write(imp->blob, p, n, err);
}

const char *image_layer_type(struct core *core, const char *digest)
{
    unsigned char head[4] = { 0 };
    _cleanup_fd_ int fd = -1;
    if (blob_open(core, digest, &fd, NULL, NULL) < 0 ||
        read(fd, head, sizeof(head)) != (ssize_t)sizeof(head))
        return OCI_LAYER;
    if (head[0] == 0x1f && head[1] == 0x8b)
        return OCI_LAYER_GZIP;
    if (memcmp(head, "\x28\xb5\x2f\xfd", sizeof(head)) == 0)
        return OCI_LAYER_ZSTD;
    return OCI_LAYER;
}

/* A root filesystem is an image of one layer with an empty configuration. */
static int finish_rootfs(struct image_import *imp, const char *digest, struct image *ret_image,
                         struct err *err)
{
    struct image_layer layer;
    struct image_config config = { .created_ms = clock_now_ms() };
    int r = image_add_layer(imp->core, &imp->hold.room, "", digest,
                            image_layer_type(imp->core, digest), NULL, &layer, err);
    if (r < 0)
        return r;
    if (image_config_add(&config, layer.diff_id, "warren image import", config.created_ms) < 0)
        r = err_set(err, ENOMEM, "cannot allocate a configuration");
    _cleanup_free_ char *text = r < 0 ? NULL : image_config_text(&config);
    image_config_done(&config);
    if (r >= 0 && !text)
        r = err_set(err, ENOMEM, "cannot write a configuration");
    return r < 0 ? r
                 : image_create(imp->core, imp->owner, imp->name, imp->public, text, NULL, &layer,
                                1, ret_image, err);
}

static int finish(struct image_import *imp, char digest[DIGEST_SIZE], struct image *ret_image,
                  struct err *err)
{
    _cleanup_(bundle_freep) struct bundle *a = NULL;
    int r = blob_finish(take_ptr(imp->blob), NULL, digest, NULL, err);
    if (r >= 0)
        r = bundle_open(imp->core, &imp->hold.room, digest, &a, err);
    if (r < 0)
        return r;
    if (!a)
        return finish_rootfs(imp, digest, ret_image, err);
    return bundle_image(a, imp->owner, imp->name, imp->public, ret_image, err);
}

int image_import_finish(struct image_import *imp, struct image *ret_image, struct err *err)
{
    struct core *core = imp->core;
    char digest[DIGEST_SIZE] = "";
    int r = finish(imp, digest, ret_image, err);
    if (digest[0])
        /* The archive's members are blobs of their own by now, or it was refused. */
        blob_release_unused(core, imp->owner, digest);
    import_free(imp);
    return r;
}

void image_import_abort(struct image_import *imp)
{
    if (imp)
        import_free(imp);
}

/* image - what sandboxes start from: a configuration on a chain of layers, by name.
 *
 * A layer is known by its chain id and stored once: the keeper has one read-only tree for each
 * chain (a snapshot of its parent's with the layer applied), the blob store has the layer's
 * bytes as they came. An image is a manifest and a configuration over such a chain; owners'
 * names point at it. reach.h decides whose image a name means. ":latest" is the same as no tag.
 * Content that no name, sandbox or hold needs is removed. Calls block for as long as the disk
 * and the keeper take. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/blob.h"
#include "core/core.h"
#include "core/digest.h"
#include "core/oci.h"
#include "core/room.h"
#include "wire/keeper.h"

#define IMAGE_NAME_MAX 256                         /* "[host[:port]/]repo[:tag]" */
#define IMAGE_REF_MAX (OWNER_MAX + IMAGE_NAME_MAX) /* "team/" before such a name */

struct image {
    char name[IMAGE_NAME_MAX]; /* without ":latest" */
    char owner[OWNER_MAX];
    char as[IMAGE_REF_MAX];   /* how the asker reaches it */
    bool public;              /* every owner may use it */
    char id[DIGEST_SIZE];     /* of its configuration */
    char digest[DIGEST_SIZE]; /* of its manifest */
    char chain[DIGEST_SIZE];  /* of its last layer */
    char tree[KEEPER_IMAGE_SIZE];
    uint64_t size_bytes;   /* unpacked, all layers */
    uint64_t shared_bytes; /* of layers that other images have too */
    unsigned layers;
    char os[32], architecture[32];
    int64_t created_ms;
};

/* True for a name that an image may have: [host[:port]/]repo[:tag]. */
bool image_name_valid(const char *name);
/* The name as it is kept. -EINVAL, invalid_reference. */
int image_name_normal(const char *name, char ret_name[IMAGE_NAME_MAX], struct err *err);

/* Of a built-in image, or a template that comes with one: how to make it, to stand behind "it is not
 * here"; "" of any other name. */
const char *image_cure(const char *name);
/* -ENOENT, image_not_found. ret_config may be NULL; image_config_done it. */
int image_resolve(struct core *core, const char *owner, const char *name, struct image *ret_image,
                  struct image_config *ret_config, struct err *err);
/* Whether `text` means exactly this image to the asker. */
bool image_meant(struct core *core, const char *asker, const char *text, const struct image *image);
/* Own and public images whose name for this owner begins with `prefix` (NULL: all), sorted by
 * it. free(*ret_images). */
int image_list(struct core *core, const char *owner, const char *prefix, struct image **ret_images,
               size_t *ret_n, struct err *err);
int image_tag(struct core *core, const char *owner, const char *name, const char *as,
              struct image *ret_image, struct err *err);
int image_remove(struct core *core, const char *owner, const char *name, struct err *err);

/* ---- making one: layers first, then the image over them ---- */

struct image_layer {
    char digest[DIGEST_SIZE]; /* of the blob */
    char media_type[OCI_TYPE_MAX];
    uint64_t compressed_bytes; /* the blob's size; 0: there is no blob (an image of old) */
    char diff_id[DIGEST_SIZE];
    char chain[DIGEST_SIZE];
    char tree[KEEPER_IMAGE_SIZE];
    uint64_t size_bytes; /* unpacked */
};

/* From here until image_hold_end nothing that is made or found is removed as an orphan, in any
 * thread: whoever brings layers in holds from its first blob to its image_create. At the end, layers
 * that came meanwhile and that no image uses are removed, unless they are kept for a build. */
struct image_hold {
    struct image_hold *next;
    int64_t since_ms;
    struct room room; /* incoming bytes, charged to the owner */
};
void image_hold_begin(struct core *core, const char *owner, struct image_hold *hold);
void image_hold_end(struct core *core, struct image_hold *hold);

/* Unpacks a blob on parent_chain ("": the first layer). Fine to call again: an existing chain is
 * found, and calls for the same chain wait for each other. diff_id, if not NULL, must turn out
 * to be the layer's (-EBADMSG, invalid_image). The unpacked bytes are taken from the room
 * (-EDQUOT, quota_exceeded) and bounded by the daemon's options (-EFBIG, layer_too_large). */
int image_add_layer(struct core *core, struct room *room, const char *parent_chain,
                    const char *digest, const char *media_type, const char *diff_id,
                    struct image_layer *ret_layer, struct err *err);
/* A layer that is there already, without a blob at hand: -ENOENT if it is not. */
int image_find_layer(struct core *core, const char *chain, struct image_layer *ret_layer);
/* Not an orphan even without an image (a build's cache), until image_prune. */
int image_keep_layer(struct core *core, const char *chain, struct err *err);

/* Names it; a name that is taken is moved to the new image. manifest NULL: an OCI manifest is
 * made. The texts are kept byte for byte. The layers' diff ids must be the configuration's. */
int image_create(struct core *core, const char *owner, const char *name, bool public,
                 const char *config, const char *manifest, const struct image_layer *layers,
                 size_t n, struct image *ret_image, struct err *err);

/* ---- reading it back ---- */

/* The layers, lowest first; free(*ret_layers). */
int image_layers(struct core *core, const struct image *image, struct image_layer **ret_layers,
                 size_t *ret_n, struct err *err);
/* The texts byte for byte, malloc'd; either may be NULL. */
int image_texts(struct core *core, const struct image *image, char **ret_manifest,
                char **ret_config, struct err *err);

/* ---- sandboxes ---- */

/* What a sandbox (by id) changed, as a layer blob (gzip); frozen while it is read if it runs. The
 * layer's digest, media_type, compressed_bytes and diff_id are filled; it is not unpacked. */
int image_diff(struct core *core, struct room *room, const char *sandbox_id,
               struct image_layer *ret_layer, struct err *err);

struct image_changes { /* NULL: as it was */
    char *const *cmd, *const *entrypoint;
    const struct pairs *env, *labels; /* added */
    const char *workdir, *user;
};
/* The sandbox's files now as one more layer on its image, under `name`. */
int image_commit(struct core *core, const char *owner, const char *who, const char *name,
                 const struct image_changes *changes, struct image *ret_image, struct err *err);

/* ---- in and out ---- */

/* Import while the bytes arrive: begin, write as they come, then finish or abort (both free). What
 * it is (root filesystem, docker save archive, OCI layout) is found out by itself. */
struct image_import;
int image_import_begin(struct core *core, const char *owner, const char *name, bool public,
                       struct image_import **ret_imp, struct err *err);
int image_import_write(struct image_import *imp, const void *p, size_t n, struct err *err);
int image_import_finish(struct image_import *imp, struct image *ret_image, struct err *err);
void image_import_abort(struct image_import *imp);

enum image_format { IMAGE_OCI, IMAGE_DOCKER };
/* A tar that `docker load` takes. Appends the next part to out and returns 1, 0 at the end. */
struct image_export;
int image_export_begin(struct core *core, const struct image *image, enum image_format format,
                       struct image_export **ret_exp, struct err *err);
int image_export_next(struct image_export *exp, struct buf *out, struct err *err);
void image_export_free(struct image_export *exp);

struct image_pruned {
    char (*layers)[DIGEST_SIZE]; /* chain ids; free */
    size_t n;
    uint64_t freed_bytes;
    const char *owner; /* whose caches go; NULL: everyone's */
};
/* Removes every orphan: layers kept for builds, blobs and trees of nothing, half-done downloads. With an
 * owner: the layers kept for its builds alone, and what its failed imports left; a layer that is also in
 * another team's cache becomes that team's. */
int image_prune(struct core *core, const char *owner, struct image_pruned *ret_pruned,
                struct err *err);

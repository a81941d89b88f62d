/* images - the memory of the image store: names, contents, layers. For the files of core/ only.
 *
 * Everything is read at start and kept; the database is written first, the memory changed after. A
 * layer that is taken out of here is nobody's any more: then its tree and blob are removed. */
#pragma once
#include "core/private.h"

struct layer {
    struct image_layer l;
    char parent[DIGEST_SIZE];
    char owner[OWNER_MAX]; /* the team that brought it in; "": unknown */
    bool kept;             /* a build's cache */
    int64_t created_ms, touched_ms;
};

/* A manifest and what it leads to. Its layers are in the table of layers too. */
struct content {
    char digest[DIGEST_SIZE], id[DIGEST_SIZE];
    char *manifest, *config;
    struct image_config parsed;
    struct image_layer *layers;
    size_t n;
    int64_t created_ms;
};

struct image_name {
    char owner[OWNER_MAX];
    char name[IMAGE_NAME_MAX];
    bool public;
    struct content *content;
    int64_t created_ms;
};

/* ---- with the lock of core->images held ---- */

struct layer *images_layer(struct images *im, const char *chain);
struct layer *images_layer_of_tree(struct images *im, const char *tree);
struct content *images_content(struct images *im, const char *digest);
/* images_own: the owner's own name. images_find: the name that an asker means, with or without
 * its team before it. */
struct image_name *images_own(struct images *im, const char *owner, const char *name);
struct image_name *images_find(struct images *im, const char *asker, const char *ref);
unsigned images_names_of(const struct images *im, const struct content *c);
bool images_chain_used(const struct images *im, const char *chain); /* by a content */
bool images_blob_used(const struct images *im, const char *digest);
void images_describe(const struct images *im, const char *asker, const struct image_name *n,
                     struct image *ret_image);
/* The bytes that images take of a team's quota: each layer of its own images once, tree and
 * blob; and layers it brought in that only a build's cache or a sandbox still needs. */
uint64_t images_bytes(const struct images *im, const char *owner);
/* How many bytes this content would add. */
uint64_t images_bytes_more(const struct images *im, const char *owner, const struct content *c);
int64_t images_held_since(const struct images *im);             /* INT64_MAX: nobody holds */
int images_add_layer(struct images *im, const struct layer *l); /* -ENOMEM */
bool images_take_layer(struct images *im, const char *chain, struct layer *ret_l);
/* Takes c. */
int images_add_content(struct images *im, struct content *c);
struct content *images_take_content(struct images *im, const char *digest);
int images_put_name(struct images *im, const struct image_name *n);
bool images_take_name(struct images *im, const char *owner, const char *name);

/* ---- without it ---- */

/* export.c: a tar as an image's is: a text, then layers' blobs, then bytes that are in no store. Takes the text
 * and the descriptor, also on failure. */
struct image_part {
    char digest[DIGEST_SIZE];
    uint64_t size;
    int fd;
};
int image_export_parts(struct core *core, const char *owner, const char *name, char *text,
                       const struct image_layer *layers, size_t n, struct image_part *last,
                       struct image_export **ret_exp, struct err *err);

/* -EINVAL invalid_image: the texts are not what they should be, or do not match the layers. */
int content_new(const char *manifest, const char *config, const struct image_layer *layers,
                size_t n, int64_t created_ms, struct content **ret_c, struct err *err);
void content_free(struct content *c);
DEFINE_FREEP(struct content *, content_free)

/* layer.c: removes a layer, and then those below it, as far as nothing needs them. Adds to
 * *pruned if it is not NULL. */
void layer_release(struct core *core, const char *chain, struct image_pruned *pruned);
/* Takes a content that no name has: its row, its blobs, its layers. */
void content_release(struct core *core, struct content *c);
void blob_release(struct core *core, const char *digest);
/* Removes a blob that an owner's import brought and no image uses. A blob that cannot be removed
 * yet counts for the owner. */
void blob_release_unused(struct core *core, const char *owner, const char *digest);
/* A layer's media type, by its first bytes. */
const char *image_layer_type(struct core *core, const char *digest);
int layer_record(struct core *core, const struct layer *l, struct err *err);

/* image - a named root filesystem that sandboxes start from.
 *
 * The name maps to a tree that the keeper stores; putting a new tree under a name leaves the
 * sandboxes of the old one alone. An image is visible to every owner. */
#pragma once
#include <stdint.h>

#include "core/core.h"
#include "wire/keeper.h"

#define IMAGE_NAME_MAX 128 /* "repo/name:tag" */

struct image {
    char name[IMAGE_NAME_MAX];
    char tree[KEEPER_IMAGE_SIZE];
    char digest[72]; /* "sha256:" of the tar it came from */
    uint64_t size_bytes;
    int64_t created_ms;
};

int image_get(struct core *core, const char *name, struct image *ret_image, struct err *err);
int image_list(struct core *core, struct image **ret_images, size_t *ret_n, struct err *err);
int image_remove(struct core *core, const char *name, struct err *err);

/* Import while the bytes arrive: begin, write as they come, then finish or abort (both free). */
struct image_import;
int image_import_begin(struct core *core, const char *name, struct image_import **ret_imp,
                       struct err *err);
int image_import_write(struct image_import *imp, const void *p, size_t n, struct err *err);
int image_import_finish(struct image_import *imp, struct image *ret_image, struct err *err);
void image_import_abort(struct image_import *imp);

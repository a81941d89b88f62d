/* bundle - a docker save archive or an OCI layout, taken apart and understood.
 *
 * warren-unpack reads the archive in a process that has no files; here arrive names and bytes. Each
 * member becomes a blob, what the names claim about digests is checked, and the JSON says which
 * of them make the image. What the image does not need is removed with the archive. */
#pragma once
#include "core/image.h"

struct bundle;

/* *ret_a stays NULL for a root filesystem, which is no archive of images. */
int bundle_open(struct core *core, struct room *room, const char *digest, struct bundle **ret_a,
                struct err *err);
/* The same, whatever its members are. */
int bundle_open_any(struct core *core, struct room *room, const char *digest, struct bundle **ret_a,
                    struct err *err);
/* A member that is a short text, whole. -EINVAL, invalid_image where there is none. */
int bundle_text(const struct bundle *a, const char *name, struct buf *out, struct err *err);
/* Did a blob come with it, under its digest's name? */
bool bundle_has(const struct bundle *a, const char *digest);
/* The image in it, unpacked and named. Of several, the one that is called `name`. */
int bundle_image(struct bundle *a, const char *owner, const char *name, bool public,
                 struct image *ret_image, struct err *err);
void bundle_free(struct bundle *a);
DEFINE_FREEP(struct bundle *, bundle_free)

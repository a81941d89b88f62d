/* pack - a directory as a tar, made while it is read: never held in memory.
 *
 * What the rules of a .dockerignore leave out is not even opened. Owners become root and holes are
 * filled: what a build context needs, and no more. Files that are neither regular, directories nor
 * symbolic links are left out. Blocks as the disk does. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/ignore.h"

struct pack;

/* Keeps `ignore`. What `always` names (ends with NULL; paths relative to dir) goes in whatever the
 * rules say. */
int pack_new(const char *dir, const struct ignore *ignore, const char *const *always,
             struct pack **ret_pack, struct err *err);
/* One more file at the end, that is not in the directory. Keeps the text. */
void pack_extra(struct pack *pack, const char *name, const void *p, size_t n);
/* The next bytes of the tar: how many, 0 at the end, or -errno; pack_error then has a sentence. */
ssize_t pack_read(struct pack *pack, void *p, size_t n);
const struct err *pack_error(const struct pack *pack);
uint64_t pack_sent(const struct pack *pack); /* bytes so far */
void pack_free(struct pack *pack);
DEFINE_FREEP(struct pack *, pack_free)

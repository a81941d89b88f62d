/* tar - writes members of hostile archives: names and types are not checked. */
#pragma once
#include <stddef.h>

#include "base/buf.h"

/* type: '0' file, '1' hard link, '2' symbolic link, '3' character device, '5' directory. */
void tar_put(struct buf *b, const char *name, char type, const char *link, const char *text);
void tar_end(struct buf *b);
/* A zip with one stored member, and its directory. */
void zip_put(struct buf *b, const char *name, const char *text);

/* name - the name of an archive's entry, made safe or refused.
 *
 * Pure. What is absolute or climbs out with ".." is not mended but refused: whoever made it so did
 * not mean this directory. The sandbox's init checks again. */
#pragma once
#include <stddef.h>

#define NAME_SIZE 4096 /* the kernel's longest path, with its NUL */

/* "./a//b/" becomes "a/b"; the top itself ".". -EPERM: it leads outside; -ENAMETOOLONG;
 * -EINVAL: it is empty. */
int name_clean(const char *name, char out[NAME_SIZE]);

/* path - paths as text: cleaning and joining, without asking any filesystem. */
#pragma once
#include <stddef.h>

#include "base/buf.h"

/* In place, as if no part were a symbolic link: no "." parts, no empty ones, ".." takes the part
 * before it away (a relative path may begin with some; an absolute one never goes above "/"), no
 * slash at the end. What is empty then is ".". `path` needs room for two bytes. */
void path_clean(char *path);
/* `path` if it is absolute, else below `dir`; cleaned. -EMSGSIZE when out's limit is too small. */
int path_resolve(const char *dir, const char *path, struct buf *out);
const char *path_base(const char *path); /* behind the last slash */

/* glob - does a path match a pattern, by docker's rules.
 *
 * `*` and `?` do not match a slash, `[a-z]` and `[^a-z]` are classes, a backslash takes away a
 * character's meaning; with GLOB_DEEP `**` stands for any number of directories. Linear in the
 * path for each star, whatever the pattern: both may come from outside. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define GLOB_DEEP 1u

bool glob_match(const char *pattern, const char *path, unsigned flags);
/* A class that does not end or is empty, or a backslash at the end, makes a pattern invalid. */
bool glob_valid(const char *pattern);
bool glob_magic(const char *pattern); /* is it more than a plain name? */

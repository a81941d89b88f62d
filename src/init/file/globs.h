/* globs - file name patterns: * ? [a-z] [!a-z] {a,b} \x, and ** across slashes.
 *
 * Pure and without recursion on the text: time is bounded by lengths multiplied, whatever the
 * pattern. A pattern without a slash is about a name, one with a slash about a path. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct globs {
    char **patterns; /* without braces */
    size_t n;
};

/* -EINVAL: more alternatives than anyone means; -ENOMEM. None at all match everything. */
int globs_init(struct globs *g, const char *const *patterns, size_t n);
void globs_done(struct globs *g);
/* `rel` is the path below the top; `path` is absolute, for patterns that are. */
bool globs_match(const struct globs *g, const char *rel, const char *path, bool icase);

bool globs_match_one(const char *pattern, const char *text, bool icase);

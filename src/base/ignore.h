/* ignore - which files of a build context stay out of it: the rules of a .dockerignore.
 *
 * The last rule that matches decides; a rule matches what is below a directory that it matches;
 * `!` brings back. Shared by the command that packs a context and the daemon that reads one. Pure
 * functions over memory. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

#define IGNORE_FILE ".dockerignore"
#define IGNORE_FILE_MAX (1024 * 1024) /* far over any that a person wrote */
#define IGNORE_RULES_MAX 10000

struct ignore_rule {
    const char *pattern;
    bool bring_back;
};

struct ignore {
    struct arena arena;
    struct ignore_rule *rules;
    size_t n;
    bool brings_back; /* so a directory that is ignored may hold files that are not */
};

/* A bad pattern is -EINVAL and names its line. On failure nothing is left to free. */
int ignore_parse(const char *p, size_t n, struct ignore *ret_ignore, struct err *err);
void ignore_done(struct ignore *ignore);
/* `path` is relative to the context, without "./" and without a slash at its end. */
bool ignore_match(const struct ignore *ignore, const char *path);
/* Can nothing below the directory be brought back, so that nobody need look into it? */
bool ignore_prunes(const struct ignore *ignore, const char *dir);

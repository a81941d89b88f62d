/* scope - what variables are worth at one point of a build: ARG and ENV, by docker's rules.
 *
 * Arguments given from outside count only where an ARG declares them; one declared before the
 * first FROM counts in a stage that repeats its ARG; ENV wins over ARG. Pure memory. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "dockerfile/dockerfile.h"
#include "dockerfile/expand.h"

#define SCOPE_VARS_MAX 1024
#define SCOPE_TEXT_MAX (1024 * 1024) /* of one name and value */

struct vars {
    char **names, **values; /* owned; a value may be NULL: declared, without a value */
    size_t n;
};
/* Replaces a same name, in its place. -ENOMEM, -E2BIG. */
int vars_set(struct vars *v, const char *name, const char *value);
const char *vars_get(const struct vars *v, const char *name); /* NULL: none, or without a value */
bool vars_has(const struct vars *v, const char *name);
int vars_copy(const struct vars *from, struct vars *ret_to);
void vars_done(struct vars *v);

/* What a build was given and what its head declares: the same for every stage. */
struct scope_world {
    char escape;
    struct vars given;    /* from the client */
    struct vars platform; /* TARGETARCH and the like */
    struct vars global;   /* ARG before the first FROM, with their values */
};

struct scope {
    const struct scope_world *world; /* keeps */
    struct vars args, env;
};

void scope_world_init(struct scope_world *w, char escape);
/* `arch` as docker calls it: amd64, arm64 ... */
int scope_world_platform(struct scope_world *w, const char *arch);
/* The ARGs of the head, in order; `err` names the line. */
int scope_world_head(struct scope_world *w, const struct dockerfile *file, unsigned *ret_line,
                     struct err *err);
void scope_world_done(struct scope_world *w);

/* For a FROM line: only the head's arguments and the platform's. */
struct expand scope_world_expand(struct scope_world *w);
/* For a step of a stage. */
struct expand scope_expand(struct scope *s);

/* One ARG whose default, expanded, is `value` (NULL: none). */
int scope_declare(struct scope *s, const char *name, const char *value);
void scope_done(struct scope *s);

/* Of the given arguments, was this one asked for anywhere? http_proxy and its like always are. */
bool scope_predefined(const char *name);

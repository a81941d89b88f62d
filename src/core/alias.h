/* alias - a name of a client's own (app.example.com) under which a port of a sandbox is reached.
 *
 * A name is one team's at a time: whoever has it may point it elsewhere, nobody else may take it. It
 * outlives its sandbox, and then leads to the story of that one's end. The broker holds a copy of them all.
 * DNS is not asked: that the name leads here is its owner's to see to. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "core/core.h"
#include "net/host.h"

#define ALIASES_OF_ONE 1000 /* a team's */

struct alias {
    char name[HOST_SIZE]; /* lower case */
    char owner[OWNER_MAX];
    char sandbox[ID_SIZE];
    unsigned port;
    int64_t created_ms;
};

/* Points a name at a sandbox of the owner's; one that the owner has already is moved. `domain` is that
 * of previews, below which names are not given. -EEXIST, name_taken: another team has it, or the API. */
int alias_put(struct core *core, const char *owner, const char *domain, const char *name,
              const char *who, unsigned port, struct alias *ret_alias, struct err *err);
/* -ENOENT, name_not_found; likewise for another team's. */
int alias_get(struct core *core, const char *owner, const char *name, struct alias *ret_alias,
              struct err *err);
int alias_remove(struct core *core, const char *owner, const char *name, struct err *err);
/* By name; free(*ret_list). */
int alias_list(struct core *core, const char *owner, struct alias **ret_list, size_t *ret_n,
               struct err *err);
/* Whose it is, for a Host as a client sent it: a port behind it does not count. */
bool alias_find(struct core *core, const char *host, size_t n, struct alias *ret_alias);
/* A new broker has none: all of them. */
void aliases_tell(struct core *core);

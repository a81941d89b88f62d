/* context - the daemons that a person logged in to: names, addresses and keys, in one file.
 *
 * $XDG_CONFIG_HOME/warren/contexts.json (else ~/.config/warren/), readable by its owner alone. A change
 * writes a new file and renames it over the old one, under a lock on the directory, so that a crash
 * loses nothing and two logins at once both stay. The name "local" is this machine's own socket and
 * is in no file. Does not ask the daemon. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

#define CONTEXT_LOCAL "local"
#define CONTEXT_NAME_MAX 64

struct contexts;

/* What there is; a file that is missing is an empty list. Fails where it is there and cannot be
 * understood. */
int contexts_read(struct contexts **ret_all, struct err *err);
/* The same, to be changed: others wait until contexts_free. The directory is made. */
int contexts_read_to_change(struct contexts **ret_all, struct err *err);
int contexts_write(struct contexts *all,
                   struct err *err); /* of those that were read to be changed */
void contexts_free(struct contexts *all);
DEFINE_FREEP(struct contexts *, contexts_free)

const char *contexts_file(const struct contexts *all); /* for people */

/* Borrowed until the next change. "url", "key", and where they were given "ca" and "team". */
const json_t *contexts_get(const struct contexts *all, const char *name); /* NULL: there is none */
const json_t *contexts_all(const struct contexts *all);                   /* an object, by name */
const char *contexts_current(const struct contexts *all);                 /* NULL: the socket */

int contexts_put(struct contexts *all, const char *name, json_t *context,
                 struct err *err);                                         /* takes */
int contexts_use(struct contexts *all, const char *name, struct err *err); /* also "local" */
int contexts_remove(struct contexts *all, const char *name, struct err *err);

int context_name_check(const char *name, struct err *err);
/* The host of an address, as a name; NULL: it has none that can be one. The caller frees it. */
char *context_name_of(const char *url);

/* secret - a value that goes in and never comes out to a client.
 *
 * Kept for what will speak in a sandbox's name at its edge; clients see its name, version and
 * metadata. At rest it is sealed (AES-256-GCM) with a key in a file of its own beside the database,
 * and bound to its id and version: a copy of the database alone tells nothing, and no row can stand
 * for another. `who` is the id or the name; names are lower case. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "core/core.h"
#include "core/sandbox.h"

#define SECRET_VALUE_MAX (64 * 1024)
#define SECRET_METADATA_MAX 32 /* entries; names of 128 bytes, values of 1024, 8192 in all */

struct secret {
    char id[ID_SIZE];
    char owner[OWNER_MAX];
    char name[NAME_MAX_LEN + 1];
    uint64_t version; /* from 1 on; each new value is one more */
    int64_t created_ms, updated_ms;
    struct pairs metadata;
};
void secret_done(struct secret *s);

/* -EEXIST, name_taken; -EINVAL, invalid_field. metadata NULL: none. */
int secret_create(struct core *core, const char *owner, const char *name, const char *value,
                  const struct pairs *metadata, struct secret *ret_s, struct err *err);
/* What is NULL stays. -ENOENT, secret_not_found. */
int secret_update(struct core *core, const char *owner, const char *who, const char *value,
                  const struct pairs *metadata, struct secret *ret_s, struct err *err);
int secret_get(struct core *core, const char *owner, const char *who, struct secret *ret_s,
               struct err *err);
/* In order of creation; secret_list_free. */
int secret_list(struct core *core, const char *owner, struct secret **ret_ss, size_t *ret_n,
                struct err *err);
void secret_list_free(struct secret *ss, size_t n);
int secret_remove(struct core *core, const char *owner, const char *who, struct err *err);

/* The value itself, for the daemon's own use: explicit_bzero it, then free. */
int secret_value(struct core *core, const char *owner, const char *who, char **ret_value,
                 size_t *ret_n, struct err *err);

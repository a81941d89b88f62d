/* key - who may ask: issued once, stored as a hash, compared in constant time, revocable.
 *
 * A key is a prefix and 40 hex digits; for comparing, everything up to the last '_' is dropped.
 * A first key given by the operator is taken as it is, whatever its shape. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "core/core.h"

#define KEY_TEXT_MAX 256
#define KEY_MIN_LEN 20 /* of an operator's own key */

enum key_role {
    KEY_MEMBER, /* its own team only */
    KEY_ADMIN,  /* the operator: every team, and the teams themselves */
};
const char *key_role_name(enum key_role role);

struct key {
    char id[ID_SIZE];
    char name[NAME_MAX_LEN + 1];
    char owner[OWNER_MAX]; /* its team */
    enum key_role role;
    int64_t created_ms, last_used_ms;
};

/* -EACCES for a key that is unknown or revoked; on success fills *ret_key. */
int key_check(struct core *core, const char *text, struct key *ret_key);
int key_create(struct core *core, const char *owner, const char *name, enum key_role role,
               struct key *ret_key, char ret_text[KEY_TEXT_MAX], struct err *err);
/* owner NULL: of all teams. */
int key_list(struct core *core, const char *owner, struct key **ret_keys, size_t *ret_n,
             struct err *err); /* by time; free(*ret_keys) */
/* Those of an admin only if the caller is one (-EPERM, forbidden). */
int key_revoke(struct core *core, const char *owner, const char *id, bool by_admin,
               struct err *err);

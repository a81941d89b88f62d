/* lease - somebody's word that a sandbox is needed: until then it counts as at work.
 *
 * A lease has an end, so that a client that dies holds nothing for long. It keeps a sandbox from being frozen
 * and from its on_idle, not from its timeout. Leases are in the database and survive the daemon; they mean
 * nothing while the sandbox does not run. */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "core/core.h"

#define LEASE_REASON_MAX 256
#define LEASE_SECONDS_MAX 86400
#define LEASES_MAX 16 /* of one sandbox */

struct lease {
    char id[ID_SIZE];
    char reason[LEASE_REASON_MAX + 1];
    int64_t created_ms, until_ms;
};

/* Wakes it first, as any request would. -EINVAL, invalid_field; -EBUSY, lease_limit. */
int lease_take(struct core *core, const char *owner, const char *who, int64_t ms,
               const char *reason, struct lease *ret_lease, struct err *err);
/* Those that are not over, the oldest first; free(*ret_leases). */
int lease_list(struct core *core, const char *owner, const char *who, struct lease **ret_leases,
               size_t *ret_n, struct err *err);
int lease_end(struct core *core, const char *owner, const char *who, const char *id,
              struct err *err);                      /* -ENOENT, lease_not_found */
int leases_load(struct core *core, struct err *err); /* once the boxes are in the table */

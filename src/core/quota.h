/* quota - whether a team may have what is asked for; called with the table's lock held.
 *
 * What is in use is counted anew from the table each time, for teams that have a quota: nothing
 * can drift, and teams without one pay nothing. */
#pragma once
#include "core/room.h"
#include "core/table.h"
#include "core/team.h"

struct team *team_find(struct core *core, const char *name);
/* NULL: all owners together, without their volumes. */
void quota_in_use(struct core *core, const char *owner, int64_t ret_in_use[QUOTA_COUNT]);

/* What `b` would count for with that spec and, if `runs`, running. */
void quota_of(const struct sandbox_spec *spec, bool runs, int64_t ret_v[QUOTA_COUNT]);
bool quota_runs(const struct box *b); /* it counts as running now */

/* May the owner's use change from `before` to `after` (one sandbox's share)? A share that does
 * not grow is always fine. -EDQUOT, quota_exceeded; -ENOENT, team_not_found; -ENOSPC,
 * capacity: the machine has promised as much memory as its operator allows. */
int quota_check(struct core *core, const char *owner, const int64_t before[QUOTA_COUNT],
                const int64_t after[QUOTA_COUNT], struct err *err);
/* The team stores more than its quota, and has accounts of sandboxes that are gone: the oldest of
 * these give way (accounts.c). */
bool quota_crowded(struct core *core, const char *owner);
/* Sets quota_exceeded with its numbers; returns -EDQUOT. */
int quota_exceeded(enum quota q, const struct team *team, int64_t used, int64_t asked,
                   struct err *err);
/* How much of the disk quota each kind of storage uses, in MiB. */
void quota_disk(struct core *core, const char *owner, int64_t ret_mb[STORED_COUNT]);
/* Adds what the owner's builds count for (build.c). */
void build_in_use(struct core *core, const char *owner, int64_t in_use[QUOTA_COUNT]);

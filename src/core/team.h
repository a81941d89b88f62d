/* team - whose sandboxes, images, templates and keys they are, and how much of the host it may use.
 *
 * A team is what the rest of core calls an owner. `default` is always there. A quota counts what
 * the table of sandboxes holds at the moment of asking, under the table's own lock, so two
 * requests at once cannot both get the last place. Sandboxes that are made ahead belong to nobody
 * and count for nobody until they are handed out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/core.h"
#include "core/room.h"

enum quota {
    QUOTA_SANDBOXES,  /* all that are not gone */
    QUOTA_CPU_MILLIS, /* of those that run */
    QUOTA_MEMORY_MB,  /* of those that run */
    QUOTA_DISK_MB,    /* all sandboxes and volumes that exist, and all else that room.h counts */
    QUOTA_COUNT,
};
#define QUOTA_NONE INT64_C(-1)

struct team {
    char name[OWNER_MAX];
    int64_t created_ms;
    int64_t quotas[QUOTA_COUNT]; /* QUOTA_NONE: no limit */
    int64_t in_use[QUOTA_COUNT];
    int64_t disk_mb[STORED_COUNT]; /* in_use[QUOTA_DISK_MB], by kind */
    bool leaving;                  /* being made or removed: nobody may use it */
};

/* -EEXIST, name_taken; -EINVAL, invalid_field. */
int team_create(struct core *core, const char *name, const int64_t quotas[QUOTA_COUNT],
                struct team *ret_team, struct err *err);
int team_get(struct core *core, const char *name, struct team *ret_team, struct err *err);
int team_list(struct core *core, struct team **ret_teams, size_t *ret_n,
              struct err *err); /* by name; free(*ret_teams) */
/* Sets the quotas whose bit is in `which`. What is over a new one goes on. */
int team_update(struct core *core, const char *name, unsigned which,
                const int64_t quotas[QUOTA_COUNT], struct team *ret_team, struct err *err);
/* Revokes its keys and forgets its history. -EBUSY, team_not_empty, while it has sandboxes or images. */
int team_remove(struct core *core, const char *name, struct err *err);
bool team_exists(struct core *core, const char *name);

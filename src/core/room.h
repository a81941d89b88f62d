/* room - reserves disk quota for the bytes that come in for a team.
 *
 * A caller that brings bytes in opens a room, takes as much as it is about to write, and closes
 * the room when the bytes count by themselves (an image has a name, an upload is kept) or are
 * gone. Taken bytes count for the quota like stored ones, so two callers at once cannot both get
 * the last of it. Nobody knows beforehand how much a layer unpacks to: the unpacking is lent all
 * that is left and settles afterwards; others of the team that need room meanwhile wait. Teams
 * without a quota get whatever they ask for. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"

struct room {
    struct core *core;
    struct room *next;
    char owner[OWNER_MAX];
    uint64_t held; /* counted for the quota: whole MiB */
    uint64_t used; /* of held */
    uint64_t lent; /* to an unpacking under way */
    bool naming;   /* holds bytes that are stored already and get one more name */
    bool inside;   /* bytes of a sandbox here, whose disk bounds them: any ratio is fine */
};

void room_open(struct core *core, const char *owner, struct room *room);
void room_close(struct room *room);
bool room_limited(const struct room *room); /* its team has a quota */

/* Call before writing n bytes. -EDQUOT, quota_exceeded. */
int room_take(struct room *room, uint64_t n, struct err *err);
/* Lend all that is left, `most` at most (0: any). *ret_n is the amount lent; 0: no bound. */
int room_lend(struct room *room, uint64_t most, uint64_t *ret_n, struct err *err);
/* Give back what was lent, and take n bytes. */
int room_settle(struct room *room, uint64_t n, struct err *err);
/* Charge n stored bytes to the team for a new name. Another open room of the team may hold the
 * same bytes: those are not counted twice. */
int room_take_named(struct room *room, uint64_t n, struct err *err);
/* Sets quota_exceeded for n lent bytes that did not suffice. */
int room_exceeded(struct room *room, uint64_t n, struct err *err);

/* ---- what is stored; the table's lock is held ---- */

enum stored {
    STORED_SANDBOXES, /* their limits */
    STORED_VOLUMES,   /* their sizes */
    STORED_BUILDS,    /* the limits of running builds */
    STORED_CHECKPOINTS,
    STORED_IMAGES, /* each layer once, with its blob; build caches; layers of sandboxes */
    STORED_UPLOADS,
    STORED_ACCOUNTS, /* of networks (ledger.h), also of sandboxes that are gone */
    STORED_COMING,   /* held by open rooms; left by failed imports */
    STORED_COUNT,
};
/* In MiB. Adds the kinds from STORED_CHECKPOINTS on. */
void stored_add(struct core *core, const char *owner, int64_t mb[STORED_COUNT]);
/* Of STORED_ACCOUNTS, the MiB that give way to whatever else the team wants to store. */
int64_t stored_yielding_mb(struct core *core, const char *owner);
void stored_change_accounts(struct core *core, const char *owner, int64_t more_bytes);

/* ---- without the lock ---- */

void stored_set_uploads(struct core *core, const char *owner, uint64_t bytes);
/* Count the bytes of a failed import that could not be removed yet; the next prune or start
 * removes them. */
void stored_add_left(struct core *core, const char *owner, uint64_t bytes);
uint64_t stored_left(struct core *core, const char *owner);
void stored_clear_left(struct core *core);

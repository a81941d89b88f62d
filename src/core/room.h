/* room - the bytes that come in for a team, against its disk quota while they come.
 *
 * Whoever brings bytes in opens a room, takes as much as it is about to write, and closes it when they
 * count by themselves (an image has a name, an upload is kept) or are gone. What is taken counts for the
 * quota like what is stored, so two at once cannot both get the last of it. How much a layer unpacks to
 * nobody knows before: for that all that is left is lent, and settled afterwards; who needs room
 * meanwhile waits. Teams without a quota get whatever they ask for. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"

struct room {
    struct core *core;
    struct room *next;
    char owner[OWNER_MAX];
    uint64_t held; /* what counts: whole MiB */
    uint64_t used; /* of it */
    uint64_t lent; /* to an unpacking that goes on */
    bool naming;   /* bytes that are here already get one more name */
    bool inside;   /* what comes was in a sandbox here, whose disk bounds it: any ratio is fine */
};

void room_open(struct core *core, const char *owner, struct room *room);
void room_close(struct room *room);
bool room_limited(const struct room *room); /* its team has a quota */

/* Before n bytes are written. -EDQUOT, quota_exceeded. */
int room_take(struct room *room, uint64_t n, struct err *err);
/* All that is left, at most `most`. *ret_n is what there is; 0: nothing bounds it but `most`. */
int room_lend(struct room *room, uint64_t most, uint64_t *ret_n, struct err *err);
/* Gives back what was lent, and takes n of it. */
int room_settle(struct room *room, uint64_t n, struct err *err);
/* n bytes that are stored, perhaps by a room of this team's that is still open, become the team's by a
 * name. */
int room_take_named(struct room *room, uint64_t n, struct err *err);
/* What did not fit: "quota_exceeded" for the bytes that were lent. */
int room_exceeded(struct room *room, uint64_t n, struct err *err);

/* ---- what is stored; the table's lock is held ---- */

enum stored {
    STORED_SANDBOXES, /* their limits */
    STORED_VOLUMES,   /* their sizes */
    STORED_BUILDS,    /* what those that run may use */
    STORED_CHECKPOINTS,
    STORED_IMAGES, /* each layer once, with its blob; caches of builds; what sandboxes keep */
    STORED_UPLOADS,
    STORED_COMING, /* taken by open rooms; what failed imports left */
    STORED_COUNT,
};
/* In MiB; adds those from STORED_CHECKPOINTS on. */
void stored_add(struct core *core, const char *owner, int64_t mb[STORED_COUNT]);

/* ---- without it ---- */

void stored_set_uploads(struct core *core, const char *owner, uint64_t bytes);
/* Bytes of a failed import that nobody could remove yet; the next prune or start does. */
void stored_add_left(struct core *core, const char *owner, uint64_t bytes);
void stored_clear_left(struct core *core);

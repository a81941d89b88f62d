/* checkpoints - all of them, in memory and at rest.
 *
 * What checkpoint.c and its neighbours share: the table, which the sandboxes' lock guards, because a tree is
 * needed by either; and the rows. A row comes after its files and goes before them. */
#pragma once
#include "core/checkpoint.h"
#include "core/private.h"

#define TEMPLATE_REASON "template" /* of one that template_memory.h keeps */
/* In no list, for it is not the user's own: of a pause, or of a template. */
bool checkpoint_hidden(const struct checkpoint *c);
bool checkpoint_of_template(const struct checkpoint *c); /* nor can it be named */

int checkpoint_copy(const struct checkpoint *from, struct checkpoint *ret_to); /* -ENOMEM */
/* Sets checkpoint_not_found. Always below zero. */
int checkpoint_missing(struct err *err, const char *who);

/* With the table's lock held. By id, or by its name among those of a sandbox, if that is not NULL. */
struct checkpoint *checkpoints_find(struct core *core, const char *owner, const char *sandbox,
                                    const char *who);
struct checkpoint *checkpoints_find_any(struct core *core, const char *id); /* whoever's */
/* As the first, or "SANDBOX:NAME", or a name that only one has. -ENOENT; -ENOTUNIQ, ambiguous_name. */
int checkpoints_resolve(struct core *core, const char *owner, const char *sandbox, const char *who,
                        struct checkpoint **ret_c, struct err *err);
int checkpoints_add(struct checkpoints *cs, struct checkpoint *c); /* takes its contents */
void checkpoints_drop(struct checkpoints *cs, struct checkpoint *c);

/* Without it. */
/* Takes one of a held box, under that id, and records it. *ret_last is what the cell had used, if it was
 * ended; NULL otherwise. */
struct box;
struct keeper_usage;
int checkpoints_take(struct core *core, struct box *b, const struct checkpoint_ask *ask,
                     const char *id, struct keeper_usage *ret_last, struct err *err);
/* The last of that: has the keeper write a cell down as c, which describes it, and records it. Takes c's contents. On
 * failure the caller undoes both. */
int checkpoints_write(struct core *core, const struct checkpoint_ask *ask, const char *cell,
                      struct checkpoint *c, struct keeper_usage *ret_last, struct err *err);
/* Brings a held box back to one, whatever it is doing, and starts it. */
int checkpoints_restore(struct core *core, struct box *b, const struct checkpoint *c, bool memory,
                        struct err *err);
/* checkpoint_rewind.c: the same with its processes. On failure it has the files it had, and runs on them if it ran; or
 * is paused as before. */
int checkpoints_rewind(struct core *core, struct box *b, const struct checkpoint *c,
                       struct err *err);
/* Records one that the keeper has already. */
int checkpoints_note(struct core *core, struct box *b, const struct checkpoint_ask *ask,
                     const char *id, struct err *err);
int checkpoints_save(struct core *core, const struct checkpoint *c, struct err *err);
int checkpoints_forget(struct core *core, const char *id, struct err *err); /* its files */

/* checkpoint.c: of a held box that runs or is stopped; the caller tells of it. */
int checkpoints_create(struct core *core, struct box *b, const struct checkpoint_ask *ask,
                       struct checkpoint *ret_c, struct err *err);
/* Removes one that is in no list, now or by the timers; others stay. */
void checkpoints_shed(struct core *core, const char *id);
void checkpoints_tell(struct core *core, const struct checkpoint *c, const char *type);
/* As checkpoint_remove; told: the change feed learns of it. */
int checkpoints_remove(struct core *core, const char *owner, const char *sandbox, const char *who,
                       bool told, struct err *err);

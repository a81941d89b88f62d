/* life - the steps of a sandbox's life, on a box that the caller holds.
 *
 * Each writes the database, asks the keeper, writes the database again, and tells the change
 * feed; what a crash cuts in between, adopt.c finishes. They block as long as the keeper takes. */
#pragma once
#include "core/table.h"

#define LIFE_RETRY_MS 5000 /* between tries of an end that failed */

/* In memory: it runs from now on. Under the table's lock. */
void life_running(struct core *core, struct box *b, int64_t now_ms);

int life_start(struct core *core, struct box *b, struct err *err);
int life_stop(struct core *core, struct box *b, enum sandbox_cause cause, struct err *err);
/* Afterwards the box is out of the table; the caller still releases it. On failure it stays
 * `deleting`, and the timers try again. */
int life_delete(struct core *core, struct box *b, enum sandbox_cause cause, struct err *err);

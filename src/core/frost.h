/* frost - the work of a running sandbox stands still: no cpu time, its memory stays.
 *
 * Set when nobody is inside, lifted by whoever enters (sandbox_enter) and before a stop. Init is
 * not part of the work, so the sandbox answers; a command or a file worker would wait. Memory has
 * no record of it: the keeper knows, also after its own end or the daemon's. Setting and lifting
 * exclude each other and wait for each other, not for whoever holds the box. Blocks for one call of
 * the keeper. */
#pragma once
#include "core/core.h"

enum frost { FROST_NONE, FROST_SETTING, FROST_SET, FROST_LIFTING };

/* If it still runs, in that life, and is idle and without a request inside for so long. */
int frost_set(struct core *core, const char *id, unsigned life, int64_t idle_ms, struct err *err);
/* Afterwards its work goes on, or it does not run; -errno: neither is known. */
int frost_lift(struct core *core, const char *id, struct err *err);
/* Has that done soon, by another thread. The table's lock may be held. */
void frost_lift_soon(struct core *core, const char *id);

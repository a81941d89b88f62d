/* ending - what a time-out does to a sandbox: delete, stop, pause it, or keep a checkpoint and stop it.
 *
 * Each leaves it as it was or as it is to be. One that cannot be paused when its time is over is
 * stopped, for that time is a promise too; one that is idle stays as it is and is tried again. */
#pragma once
#include "core/table.h"

/* The box is held, and released by the caller. */
int ending_run(struct core *core, struct box *b, enum sandbox_end how, enum sandbox_cause cause,
               struct err *err);
/* Logs what went wrong, and has it tried again later. */
void ending_settle(struct core *core, struct box *b, int r, const struct err *err);

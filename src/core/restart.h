/* restart - brings sandboxes back that ended without anybody asking, if that is how they are to be.
 *
 * `on-boot`: after a restart of the host or a shutdown of all of them; `always`: after a crash, too, each time later than
 * before, and not for ever. The timers start them, one after the other, when the daemon is up. */
#pragma once
#include "core/table.h"

/* Is it stopped, and to be started? */
bool restart_wanted(const struct sandbox *s);
/* It has just stopped, or its start failed, or was found so at the daemon's start; the caller holds the box. Sets when it is
 * started, if it is. */
void restart_plan(struct core *core, struct box *b);
/* It is due. */
void restart_run(struct core *core, const char *id);

/* restart - starts sandboxes again that ended without anybody asking, if their spec says so.
 *
 * `on-boot`: after a reboot of the host or a shutdown of all sandboxes; `always`: also after a
 * crash, each time after twice the delay, six times in a row at most. The timers start them one
 * after the other once the daemon is up. */
#pragma once
#include "core/table.h"

/* Is the sandbox stopped, and does its spec want it started again? */
bool restart_wanted(const struct sandbox *s);
/* Set when the sandbox is started again, if at all: call after it stopped, after its start
 * failed, and when the daemon starts and finds it stopped. The caller holds the box. */
void restart_plan(struct core *core, struct box *b);
/* Start the sandbox now: the timers call this when its time has come. */
void restart_run(struct core *core, const char *id);

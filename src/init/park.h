/* park - init without anything of the host's, for as long as its memory is written down.
 *
 * Two steps, see wire/park.h. The first is part of the loop's rounds: requests wait, workers are
 * waited for, then killed. The second blocks: nobody else could be served meanwhile anyway. Nothing
 * that a command notices changes: its pipes, terminal and ring stay where they are. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct peer;

bool park_is_on(void); /* requests wait */
/* The first step, for the connection that asked; `done` is called when nothing is in the way. */
int park_begin(struct peer *line, void (*done)(struct peer *line));
void park_cancel(struct peer *line); /* it went away; any other is fine */
/* The second: by the end of this round we are parked, if a name is right. */
int park_now(struct peer *line, const char *name);
void park_tick(int64_t now);
void park_settle(void); /* the end of a round: parks, and returns when we are brought back */

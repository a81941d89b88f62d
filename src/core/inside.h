/* inside - two short questions to a sandbox's init: is anything running, and please end it.
 *
 * Whoever is root inside may have taken init over, so every answer is bounded in size and every
 * wait has a deadline; a failure means only that we go on without the courtesy. */
#pragma once
#include <stdint.h>

#include "core/core.h"

int inside_ping(struct core *core, const char *id, uint64_t *ret_procs);
/* Asks what runs to end, waits for it a little; what stays is the keeper's to kill. */
void inside_shutdown(struct core *core, const char *id);

/* adopt - start-up: the database says what should exist, the keeper says what does; this makes
 * the two agree.
 *
 * Runs before any thread and any request. What was cut in the middle is finished in the direction
 * it was going, except a creation, whose client never got an answer: it is removed. */
#pragma once
#include "core/private.h"

int adopt(struct core *core, struct err *err);

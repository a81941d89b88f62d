/* version - is a sandbox still the one that somebody has seen? */
#pragma once
#include "core/table.h"

/* For the holder of a box. `versions`: NULL, or those of which it must have one, with spaces
 * between; else precondition_failed. */
int version_check(struct core *core, const struct box *b, const char *versions, struct err *err);

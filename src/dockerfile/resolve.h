/* resolve - a step with its variables filled in and its quotes taken off, ready to be done.
 *
 * What docker expands is expanded, the rest is left to the shell. Pure. */
#pragma once
#include "dockerfile/dockerfile.h"
#include "dockerfile/expand.h"

/* *ret_step lives in `arena` and shares what did not change with `step`. An error names the line. */
int resolve_step(const struct expand *x, const struct dockerfile_step *step, struct arena *arena,
                 struct dockerfile_step *ret_step, struct err *err);

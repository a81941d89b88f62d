/* schema - the tables, as steps from one version to the next.
 *
 * A database at version n has had the first n steps. A step, once released, never changes: a
 * change of the tables is a new step at the end. */
#pragma once
#include <stddef.h>

extern const char *const schema_sqlite[];
extern const size_t schema_sqlite_steps;

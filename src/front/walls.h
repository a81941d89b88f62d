/* walls - what warrend gives up beside root: capabilities for good, system calls that no daemon of this kind makes,
 * and the paths it has nothing to do with. */
#pragma once
#include "base/err.h"

struct options;

int walls_bound(struct err *err); /* while it is root */
/* When it is not, and has one thread. data and run are its own. */
int walls_enter(const struct options *options, const char *data, const char *run, struct err *err);

/* walls - warrend's own confinement beside giving up root: a bounding set of capabilities, a
 * list of refused system calls, and the paths it may reach. */
#pragma once
#include "base/err.h"

struct options;

int walls_bound(struct err *err); /* call as root */
/* Call when no longer root, with one thread. data and run are warrend's directories. */
int walls_enter(const struct options *options, const char *data, const char *run, struct err *err);

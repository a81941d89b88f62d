/* watch - hears from the keeper when a sandbox's init dies by itself.
 *
 * A thread keeps one connection to the keeper. A message on it only means `look`: the thread
 * then compares what should run with what does, as it also does after every reconnect, so a
 * death that happened while the keeper was away is found by the same path. */
#pragma once
#include "core/private.h"

int watch_start(struct core *core, struct err *err);
void watch_stop(struct core *core);

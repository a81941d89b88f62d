/* uses - which secrets the requests of one sandbox carried, as the broker told: each name once.
 *
 * Gone with the sandbox and the daemon; the events that tell of it stay. The caller locks. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "wire/broker.h"

struct core;
struct uses {
    char (*names)[BROKER_BINDING_SIZE]; /* NULL until there is one */
    size_t n;
};

/* True: it is the first time, and there was room to remember it. */
bool uses_add(struct uses *u, const char *name);
void uses_done(struct uses *u);

/* Takes its own lock: remembers what a tally says, if it is of a secret, and tells of the first time. */
void uses_told(struct core *core, const struct broker_tally *tally);

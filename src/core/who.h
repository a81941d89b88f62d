/* who - which program of a sandbox has a socket open, asked of its init for the broker.
 *
 * Each question has a thread of its own for the few milliseconds it takes, and there are only so many at
 * once: one that finds no room, or no answer in time, is answered with nothing. What init says
 * is the sandbox's word. */
#pragma once
#include "core/private.h"
#include "wire/broker.h"

void who_asked(struct core *core, const struct broker_who *msg); /* does not block */
void who_stop(struct core *core);                                /* waits for those under way */

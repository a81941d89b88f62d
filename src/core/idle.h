/* idle - whether a sandbox is at work, and what becomes of one that is not.
 *
 * Work is a request inside, cpu time above a sleeping program's noise, bytes that its network carried,
 * or a lease that somebody holds (lease.h). The readings that usage takes anyway are looked at as
 * they come; only who has a short time to be idle, or seems to be at the end of it, is asked for
 * more. First it is frozen (frost.h), later its spec's on_idle happens. With the table's lock held, but for idle_look. */
#pragma once
#include <stdint.h>

#include "core/core.h"

struct box;
int64_t idle_since(const struct box *b); /* when it was last known to be at work; may be to come */
int64_t idle_next(const struct core *core, const struct box *b, int64_t now_ms); /* 0: never */
/* Its cpu time as read now. */
void idle_saw_cpu(struct box *b, int64_t now_ms, uint64_t cpu_us);
/* Something came in or went out. */
void idle_saw_bytes(struct core *core, struct box *b, int64_t now_ms);
void idle_look(struct core *core, const char *id); /* the job; blocks */

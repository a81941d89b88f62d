/* workers - a pool of threads that grows with need, up to a limit.
 *
 * A job goes to an idle thread, or else to a new one. A thread that was idle for a while ends. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct workers;

int workers_new(unsigned max, size_t stack_bytes, struct workers **ret_w, struct err *err);
/* Have a thread call fn(arg). -EAGAIN: all are busy, and no more may be started. */
int workers_start(struct workers *w, void (*fn)(void *arg), void *arg);
bool workers_spare(struct workers *w); /* fewer than half of the threads are busy */
void workers_free(struct workers *w);  /* waits for all jobs */
DEFINE_FREEP(struct workers *, workers_free)

/* workers - threads that each do one job after another, and no more of them than are needed.
 *
 * A job that comes while a thread has nothing to do gets that one, otherwise a new one. A thread
 * that had nothing to do for a while ends. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct workers;

int workers_new(unsigned max, size_t stack_bytes, struct workers **ret_w, struct err *err);
/* Has fn(arg) called by one of them. -EAGAIN: all are busy, and no more can be had. */
int workers_start(struct workers *w, void (*fn)(void *arg), void *arg);
bool workers_spare(struct workers *w); /* most of those there may be are free */
void workers_free(struct workers *w);  /* waits for the jobs */
DEFINE_FREEP(struct workers *, workers_free)

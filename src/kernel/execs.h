/* execs - which programs the cells run, counted by the kernel.
 *
 * A BPF program on the kernel's own tracepoint of exec adds one to the count of that path, for the
 * cell whose ids the process has. Nobody is woken and nothing is asked of the process, so it costs a
 * fraction of a microsecond, nothing inside can hide from it, and one that lives for a millisecond
 * is seen too. Counts outlive their cell until newer ones need the room; they end with the process
 * that holds this. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

#define EXECS_PATH_SIZE 128    /* longer ones are cut */
#define EXECS_PROGRAMS_MAX 256 /* paths of one cell; what comes after is counted together */

struct execs;

/* Failure: this kernel or this machine does not let us. */
int execs_new(struct execs **ret_execs, struct err *err);
void execs_free(struct execs *x);
DEFINE_FREEP(struct execs *, execs_free)

/* From now on what has these 65,536 ids is this cell. x may be NULL: nothing is counted. */
void execs_begin(struct execs *x, uint32_t uid_base, const char *id);
void execs_end(struct execs *x, uint32_t uid_base);

struct execs_program {
    uint64_t count;
    int64_t first_ms, last_ms;  /* on the wall's clock */
    char path[EXECS_PATH_SIZE]; /* as it was passed to exec; hostile bytes */
};
/* Of this cell, in no order; at most `max`. How many. */
size_t execs_list(struct execs *x, const char *id, struct execs_program *out, size_t max);

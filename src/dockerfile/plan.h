/* plan - which stages a build needs, and what each begins from.
 *
 * Expands the FROM lines; stages that the target does not reach are left out. Pure. */
#pragma once
#include "dockerfile/dockerfile.h"
#include "dockerfile/scope.h"

#define PLAN_SCRATCH "scratch"

struct plan_stage {
    bool needed;
    int base;          /* the stage it begins from; -1: an image */
    const char *image; /* with base -1: its name, or PLAN_SCRATCH */
};

struct plan {
    struct arena arena;
    struct plan_stage *stages; /* as many as the file has */
    size_t target;
    unsigned steps; /* of the stages that are needed, their FROM included */
};

/* `target` is a stage's name or number; NULL: the last one. `arch` is this machine's, as docker
 * calls it. On failure nothing is left to free. */
int plan_make(const struct dockerfile *file, struct scope_world *world, const char *target,
              const char *arch, struct plan *ret_plan, unsigned *ret_line, struct err *err);
void plan_done(struct plan *plan);

/* Where a COPY --from in stage `at` looks: a stage before it, or -1 for an image. -EINVAL for one
 * that is not there yet. */
int plan_source(const struct dockerfile *file, size_t at, const char *from, unsigned line,
                int *ret_stage, struct err *err);

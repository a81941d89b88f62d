#include "dockerfile/plan.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "dockerfile/resolve.h"

static int stage_named(const struct dockerfile *file, const char *name)
{
    for (size_t i = 0; i < file->n_stages; i++)
        if (file->stages[i].name && strcasecmp(file->stages[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int stage_numbered(const struct dockerfile *file, const char *text)
{
    size_t n = 0;
    if (!*text || strlen(text) > 4)
        return -1;
    for (; isdigit((unsigned char)*text); text++)
        n = n * 10 + (size_t)(*text - '0');
    return *text || n >= file->n_stages ? -1 : (int)n;
}

int plan_source(const struct dockerfile *file, size_t at, const char *from, unsigned line,
                int *ret_stage, struct err *err)
{
    int i = stage_named(file, from);
    if (i < 0 && strspn(from, "0123456789") == strlen(from)) {
        i = stage_numbered(file, from);
        if (i < 0)
            i = (int)at; /* no image has such a name */
    }
    if (i >= (int)at)
        return err_fail(err, FAIL_INVALID_DOCKERFILE,
                        "line %u: there is no stage '%.100s' before this one", line, from);
    *ret_stage = i;
    return 0;
}

static bool platform_ours(const char *platform, const char *arch)
{
    static const char os[] = "linux/";
    size_t n = strlen(arch);
    if (strncmp(platform, os, sizeof(os) - 1) != 0)
        return false;
    platform += sizeof(os) - 1;
    if (strncmp(platform, arch, n) != 0)
        return false;
    return platform[n] == '\0' || (strcmp(arch, "arm64") == 0 && strcmp(platform + n, "/v8") == 0);
}

static int plan_from(const struct dockerfile *file, struct scope_world *world, size_t at,
                     const char *arch, struct plan *plan, struct err *err)
{
    const struct dockerfile_step *from = file->stages[at].from;
    struct plan_stage *stage = &plan->stages[at];
    struct dockerfile_step step;
    struct expand x = scope_world_expand(world);
    int r = resolve_step(&x, from, &plan->arena, &step, err);
    if (r < 0)
        return r;
    if (!*step.words[0])
        return err_fail(err, FAIL_INVALID_DOCKERFILE,
                        "line %u: FROM '%.100s' expands to nothing; give its ARG a default or a "
                        "--build-arg",
                        from->line, from->words[0]);
    if (step.platform && *step.platform && !platform_ours(step.platform, arch))
        return err_fail(err, FAIL_INVALID_DOCKERFILE,
                        "line %u: the platform '%.60s' cannot be built here, only linux/%s",
                        from->line, step.platform, arch);
    stage->base = stage_named(file, step.words[0]);
    if (stage->base >= (int)at)
        stage->base = -1; /* a later stage's name: an image's here */
    stage->image = step.words[0];
    return 0;
}

/* Marks a stage and, before it, all that it begins from or copies from. */
static int need(const struct dockerfile *file, struct plan *plan, unsigned *ret_line,
                struct err *err)
{
    plan->stages[plan->target].needed = true;
    for (size_t i = plan->target + 1; i-- > 0;) { /* what a stage needs comes before it */
        const struct dockerfile_stage *stage = &file->stages[i];
        if (!plan->stages[i].needed)
            continue;
        plan->steps += 1 + (unsigned)stage->n_steps;
        if (plan->stages[i].base >= 0)
            plan->stages[plan->stages[i].base].needed = true;
        for (size_t k = 0; k < stage->n_steps; k++) {
            int from = -1;
            *ret_line = stage->steps[k].line;
            int r = stage->steps[k].from ? plan_source(file, i, stage->steps[k].from,
                                                       stage->steps[k].line, &from, err)
                                         : 0;
            if (r < 0)
                return r;
            if (from >= 0)
                plan->stages[from].needed = true;
        }
    }
    return 0;
}

static int find_target(const struct dockerfile *file, const char *target, size_t *ret_i,
                       struct err *err)
{
    int i = (int)file->n_stages - 1;
    if (target) {
        i = stage_named(file, target);
        if (i < 0)
            i = stage_numbered(file, target);
    }
    if (i < 0)
        return err_fail(err, FAIL_INVALID_DOCKERFILE, "there is no stage '%.100s'", target);
    *ret_i = (size_t)i;
    return 0;
}

int plan_make(const struct dockerfile *file, struct scope_world *world, const char *target,
              const char *arch, struct plan *ret_plan, unsigned *ret_line, struct err *err)
{
    struct plan plan = { .arena = ARENA_INIT(DOCKERFILE_MEMORY) };
    unsigned line = 0;
    plan.stages = arena_alloc(&plan.arena, file->n_stages * sizeof(*plan.stages));
    int r = plan.stages ? 0 : err_set(err, ENOMEM, "cannot allocate a plan");
    for (size_t i = 0; i < file->n_stages && r >= 0; i++) {
        line = file->stages[i].from->line;
        r = plan_from(file, world, i, arch, &plan, err);
    }
    if (r >= 0) {
        line = 0;
        r = find_target(file, target, &plan.target, err);
    }
    if (r >= 0)
        r = need(file, &plan, &line, err);
    if (r < 0) {
        if (ret_line)
            *ret_line = line;
        plan_done(&plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}

void plan_done(struct plan *plan)
{
    arena_done(&plan->arena);
}

/* Dockerfiles: whatever the text, parsing, planning and expanding end, within their bounds. */
#include <stdlib.h>
#include <string.h>

#include "dockerfile/plan.h"
#include "dockerfile/resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void walk(const struct dockerfile *f, struct scope_world *w, struct arena *arena)
{
    for (size_t i = 0; i < f->n_stages; i++) {
        struct scope s = { .world = w };
        for (size_t k = 0; k < f->stages[i].n_steps; k++) {
            struct dockerfile_step step;
            struct expand x = scope_expand(&s);
            if (resolve_step(&x, &f->stages[i].steps[k], arena, &step, NULL) < 0)
                break;
            for (size_t v = 0; v < step.n_pairs && step.kind != DOCKERFILE_LABEL; v++)
                if (step.kind == DOCKERFILE_ARG)
                    (void)scope_declare(&s, step.pairs[v].name, step.pairs[v].value);
                else
                    (void)vars_set(&s.env, step.pairs[v].name, step.pairs[v].value);
        }
        scope_done(&s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct dockerfile f;
    struct scope_world w;
    struct plan plan;
    struct arena arena = ARENA_INIT(4u << 20);
    struct err err = ERR_INIT;
    unsigned line = 0;
    if (dockerfile_parse((const char *)p, n, &f, &line, &err) < 0) {
        if (err.failure != FAIL_INVALID_DOCKERFILE || !err.msg[0])
            abort();
        return 0;
    }
    scope_world_init(&w, f.escape);
    if (scope_world_platform(&w, "amd64") >= 0 && scope_world_head(&w, &f, &line, &err) >= 0) {
        if (plan_make(&f, &w, NULL, "amd64", &plan, &line, &err) >= 0)
            plan_done(&plan);
        walk(&f, &w, &arena);
    }
    arena_done(&arena);
    scope_world_done(&w);
    dockerfile_done(&f);
    return 0;
}

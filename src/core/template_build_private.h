/* template_build_private - the inside of a template's build, for template_build*.c only. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "core/private.h"
#include "core/template_build.h"

struct template_builder {
    struct core *core;
    struct template_build b; /* guarded by the lock of core->template_builds, as the log is */
    struct build_log log;
    bool started, ended; /* it has a thread; which has nothing more to do */
    pthread_t thread;
    _Atomic bool cancel;
    /* The thread's own, made before it starts. */
    struct arena arena;
    struct template_recipe recipe;
    struct template base; /* what it began from; spec.image NULL: an image */
};

/* template_build_recipe.c */
int template_recipe_copy(struct template_builder *tb, const struct template_recipe *recipe,
                         struct err *err);
/* template_build_row.c: what is kept of it; one that had not ended when it was written down has failed. */
struct store_template_build;
int template_build_save(struct core *core, const struct template_build *b, struct err *err);
void template_build_from_row(const struct store_template_build *row, struct template_build *b);
/* template_build_run.c: the thread. */
void *template_build_run(void *arg);
/* template_build.c: what the thread tells. */
void template_build_become(struct template_builder *tb, enum template_build_state state,
                           const char *step, const char *message);

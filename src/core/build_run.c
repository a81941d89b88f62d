#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/build_private.h"

const char *build_chain(const struct build_stage *st)
{
    return st->layers.n ? st->layers.items[st->layers.n - 1].chain : "";
}

int build_work_cell(struct build *b, const struct build_stage *st, struct build_cell *ret_cell,
                    struct err *err)
{
    const struct image_layer *top =
        st->layers.n ? &st->layers.items[st->layers.n - 1] : &b->scratch;
    return build_cell_make(b, top->tree, true, ret_cell, err);
}

int build_record(struct build_stage *st, const char *diff_id, const char *created_by,
                 int64_t made_ms, struct err *err)
{
    struct image_config *c = &st->config;
    if (made_ms)
        c->created_ms = made_ms;
    int r = image_config_add(c, diff_id, created_by, c->created_ms);
    return r < 0 ? err_set(err, -r, "cannot keep a step") : 0;
}

static int add_layer(struct build *b, struct build_stage *st, const struct image_layer *layer,
                     const char *created_by, int64_t made_ms, struct err *err)
{
    struct image_layer *items =
        reallocarray(st->layers.items, st->layers.n + 1, sizeof(*st->layers.items));
    if (!items)
        return err_set(err, ENOMEM, "cannot allocate a layer");
    st->layers.items = items;
    int r = build_record(st, layer->diff_id, created_by, made_ms, err);
    if (r < 0)
        return r;
    items[st->layers.n++] = *layer;
    struct build_event ev = { .type = BUILD_LAYER, .n = b->step, .size_bytes = layer->size_bytes };
    memcpy(ev.digest, layer->digest, sizeof(ev.digest));
    r = build_tell(b, &ev);
    return r < 0 ? err_set(err, -r, "the build was cancelled") : 0;
}

int build_commit(struct build *b, struct build_stage *st, struct build_cell *cell, const char *key,
                 const char *created_by, struct err *err)
{
    struct image_layer diff, layer;
    int64_t made_ms = clock_now_ms();
    int r = image_diff(b->core, &b->hold.room, cell->s.id, &diff, err);
    build_cell_done(b, cell);
    if (r < 0)
        return err_wrap(err, r, "line %u", b->line);
    if (strcmp(diff.diff_id, b->scratch.diff_id) == 0) { /* that one has no entry either */
        build_cache_put(b, key, "", made_ms);
        return build_record(st, NULL, created_by, made_ms, err);
    }
    r = image_add_layer(b->core, &b->hold.room, build_chain(st), diff.digest, diff.media_type,
                        diff.diff_id, &layer, err);
    if (r < 0)
        return err_wrap(err, r, "line %u", b->line);
    build_cache_put(b, key, layer.chain, made_ms);
    return add_layer(b, st, &layer, created_by, made_ms, err);
}

int build_from_cache(struct build *b, struct build_stage *st, const char *key,
                     const char *created_by, struct err *err)
{
    char chain[DIGEST_SIZE];
    struct image_layer layer;
    int64_t made_ms;
    if (build_cache_find(b, key, chain, &made_ms) <= 0)
        return 0;
    if (*chain && image_find_layer(b->core, chain, &layer) < 0)
        return 0; /* pruned; the step is done again and put in its place */
    struct build_event ev = { .type = BUILD_CACHED, .n = b->step };
    int r = build_tell(b, &ev);
    if (r < 0)
        return err_set(err, -r, "the build was cancelled");
    r = *chain ? add_layer(b, st, &layer, created_by, made_ms, err)
               : build_record(st, NULL, created_by, made_ms, err);
    return r < 0 ? r : 1;
}

/* ---- steps ---- */

static int tell_step(struct build *b, const struct dockerfile_step *step, struct err *err)
{
    struct build_event ev = { .type = BUILD_STEP,
                              .n = ++b->step,
                              .of = b->plan.steps,
                              .line = step->line,
                              .text = strdup(step->text) };
    if (!ev.text)
        return err_set(err, ENOMEM, "cannot tell of a step");
    ev.len = strlen(ev.text);
    b->line = step->line;
    int r = build_tell(b, &ev);
    return r < 0 ? err_set(err, -r, "the build was cancelled") : 0;
}

static int do_step(struct build *b, size_t stage, const struct dockerfile_step *step,
                   struct err *err)
{
    struct build_stage *st = &b->stages[stage];
    switch (step->kind) {
    case DOCKERFILE_RUN: return build_exec(b, st, step, err);
    case DOCKERFILE_COPY:
    case DOCKERFILE_ADD: return build_copy(b, stage, step, err);
    case DOCKERFILE_WORKDIR: return build_workdir(b, st, step, err);
    default: return build_configure(b, st, step, err);
    }
}

static int run_stage(struct build *b, size_t i, struct err *err)
{
    const struct dockerfile_stage *stage = &b->file.stages[i];
    struct build_stage *st = &b->stages[i];
    int r = tell_step(b, stage->from, err);
    if (r >= 0)
        r = build_stage_begin(b, i, err);
    if (r >= 0 && b->recipe)
        r = build_recipe_settle(b, st, err);
    for (size_t k = 0; k < stage->n_steps && r >= 0; k++) {
        struct arena arena = ARENA_INIT(DOCKERFILE_MEMORY);
        struct dockerfile_step step;
        struct expand x = b->recipe ? build_recipe_expand(b, st) : scope_expand(&st->scope);
        b->no_cache |= stage->steps[k].fresh;
        r = tell_step(b, &stage->steps[k], err);
        if (r >= 0)
            r = resolve_step(&x, &stage->steps[k], &arena, &step, err);
        if (r >= 0)
            r = do_step(b, i, &step, err);
        if (r < 0 && b->recipe)
            r = build_recipe_fail(&stage->steps[k], r, err);
        arena_done(&arena);
    }
    return r;
}

/* ---- all of it ---- */

static bool declares(const struct dockerfile_step *step, const char *name)
{
    for (size_t i = 0; step->kind == DOCKERFILE_ARG && i < step->n_pairs; i++)
        if (strcmp(step->pairs[i].name, name) == 0)
            return true;
    return false;
}

static bool asked_for(const struct build *b, const char *name)
{
    bool asked = scope_predefined(name);
    for (size_t i = 0; i < b->file.n_args && !asked; i++)
        asked = declares(&b->file.args[i], name);
    for (size_t i = 0; i < b->file.n_stages && !asked; i++)
        for (size_t k = 0; k < b->file.stages[i].n_steps && !asked; k++)
            asked = declares(&b->file.stages[i].steps[k], name);
    return asked;
}

static int tell_warnings(struct build *b)
{
    int r = 0;
    for (size_t i = 0; i < b->file.n_warnings && r >= 0; i++)
        r = build_warn(b, b->file.warnings[i].line, b->file.warnings[i].text);
    for (size_t i = 0; i < b->world.given.n && r >= 0; i++) {
        char text[200];
        const char *name = b->world.given.names[i];
        if (asked_for(b, name))
            continue;
        (void)snprintf(text, sizeof(text), "no ARG asks for the argument '%.100s'", name);
        r = build_warn(b, 0, text);
    }
    return r;
}

static int prepare(struct build *b, struct err *err)
{
    int r = b->recipe ? build_recipe_unpack(b, err) : build_context_close(b, err);
    if (r >= 0 && !b->recipe)
        r = build_context_read(b, err);
    if (r < 0)
        return r;
    b->world.escape = b->file.escape;
    b->stages = calloc(b->file.n_stages, sizeof(*b->stages));
    if (!b->stages)
        return err_set(err, ENOMEM, "cannot allocate a build");
    r = scope_world_head(&b->world, &b->file, &b->line, err);
    if (r >= 0)
        r = plan_make(&b->file, &b->world, b->target, oci_machine(), &b->plan, &b->line, err);
    if (r >= 0 && tell_warnings(b) < 0)
        r = err_set(err, ECANCELED, "the build was cancelled");
    return r;
}

int build_run(struct build *b, struct err *err)
{
    int r = prepare(b, err);
    for (size_t i = 0; r >= 0 && i <= b->plan.target; i++)
        if (b->plan.stages[i].needed)
            r = run_stage(b, i, err);
    return r;
}

/* A recipe outlives the request that brought it: all of it in one arena. */
#include <errno.h>
#include <string.h>

#include "core/template_build_private.h"

#define MEMORY_MAX (16 * 1024 * 1024)

struct copier {
    struct arena *a;
    bool failed;
};

static const char *text(struct copier *c, const char *s)
{
    const char *copy = s ? arena_strdup(c->a, s) : NULL;
    c->failed |= s && !copy;
    return copy;
}

static void step(struct copier *c, const struct build_step *from, struct build_step *to)
{
    const char **args = arena_alloc(c->a, (from->n_args + 1) * sizeof(*args));
    *to = *from;
    to->type = text(c, from->type);
    to->files = text(c, from->files);
    to->args = args;
    c->failed |= !args;
    for (size_t i = 0; args && i < from->n_args; i++)
        args[i] = text(c, from->args[i]);
}

int template_recipe_copy(struct template_builder *tb, const struct template_recipe *recipe,
                         struct err *err)
{
    tb->arena = (struct arena)ARENA_INIT(MEMORY_MAX);
    struct copier c = { .a = &tb->arena };
    struct template_recipe *to = &tb->recipe;
    const struct build_recipe *s = &recipe->steps;
    struct build_step *steps = arena_alloc(c.a, (s->n + 1) * sizeof(*steps));
    *to = *recipe;
    to->image = text(&c, recipe->image);
    to->template = text(&c, recipe->template);
    to->network = text(&c, recipe->network);
    to->steps = (struct build_recipe){ .username = text(&c, s->username),
                                       .password = text(&c, s->password),
                                       .user = text(&c, s->user),
                                       .workdir = text(&c, s->workdir),
                                       .provision = text(&c, s->provision),
                                       .steps = steps,
                                       .n = s->n };
    for (size_t i = 0; steps && i < s->n; i++)
        step(&c, &s->steps[i], &steps[i]);
    to->boot = (struct boot){ 0 };
    if (!steps || c.failed || boot_copy(&recipe->boot, &to->boot) < 0)
        return err_fail_as(err, E2BIG, FAIL_INVALID_FIELD, "the template's steps are too large");
    return 0;
}

#include <errno.h>
#include <string.h>

#include "core/build_private.h"

static int no_memory(struct err *err)
{
    return err_set(err, ENOMEM, "cannot keep the image's configuration");
}

/* ---- where a stage begins ---- */

/* What struct image_config does not know of the base's configuration. */
static int read_rest(struct build *b, struct build_stage *st, const struct image *image,
                     struct err *err)
{
    _cleanup_free_ char *text = NULL;
    int r = image_texts(b->core, image, NULL, &text, err);
    if (r < 0)
        return r;
    json_t *root = json_loads(text, 0, NULL);
    const json_t *config = json_object_get(root, "config");
    json_t *health = json_object_get(config, "Healthcheck");
    if (json_is_object(health))
        st->health = json_deep_copy(health);
    if (json_array_size(json_object_get(config, "OnBuild")) > 0)
        (void)build_warn(b, b->line, "the base image has ONBUILD steps; they are not done");
    json_decref(root);
    return 0;
}

static int from_image(struct build *b, struct build_stage *st, const char *name, struct err *err)
{
    struct image image;
    const char *owner = b->base_owner ? b->base_owner : b->owner;
    int r = image_resolve(b->core, owner, name, &image, &st->config, err);
    if (r == -ENOENT) {
        r = build_pull(b, name, err);
        if (r < 0)
            return r;
        r = image_resolve(b->core, b->owner, name, &image, &st->config, err);
    }
    if (r < 0)
        return err_wrap(err, r, "line %u", b->line);
    r = image_layers(b->core, &image, &st->layers.items, &st->layers.n, err);
    for (size_t i = 0; i < st->config.env.n && r >= 0; i++)
        if (vars_set(&st->scope.env, st->config.env.names[i], st->config.env.values[i]) < 0)
            r = no_memory(err);
    return r < 0 ? r : read_rest(b, st, &image, err);
}

static int from_stage(struct build_stage *st, const struct build_stage *base, struct err *err)
{
    size_t n = base->layers.n;
    st->layers.items = calloc(n + 1, sizeof(*st->layers.items));
    if (!st->layers.items || image_config_copy(&base->config, &st->config) < 0)
        return no_memory(err);
    if (n)
        memcpy(st->layers.items, base->layers.items, n * sizeof(*base->layers.items));
    st->layers.n = n;
    st->health = base->health ? json_deep_copy(base->health) : NULL;
    st->author = base->author ? strdup(base->author) : NULL;
    if (vars_copy(&base->scope.env, &st->scope.env) < 0 ||
        vars_copy(&base->scope.args, &st->scope.args) < 0)
        return no_memory(err);
    return 0;
}

static int from_nothing(struct build_stage *st, struct err *err)
{
    st->config.os = strdup("linux");
    st->config.architecture = strdup(oci_machine());
    return st->config.os && st->config.architecture ? 0 : no_memory(err);
}

int build_stage_begin(struct build *b, size_t i, struct err *err)
{
    const struct plan_stage *plan = &b->plan.stages[i];
    struct build_stage *st = &b->stages[i];
    st->begun = true;
    st->scope.world = &b->world;
    if (plan->base >= 0)
        return from_stage(st, &b->stages[plan->base], err);
    if (strcmp(plan->image, PLAN_SCRATCH) == 0)
        return from_nothing(st, err);
    return from_image(b, st, plan->image, err);
}

void build_stage_done(struct build *b, struct build_stage *st)
{
    image_config_done(&st->config);
    free(st->layers.items);
    scope_done(&st->scope);
    json_decref(st->health);
    free(st->author);
    build_cell_done(b, &st->cell);
    memset(st, 0, sizeof(*st));
}

/* ---- the image at the end ---- */

/* The configuration's text, with what struct image_config does not know. */
static char *config_text(const struct build_stage *st)
{
    _cleanup_free_ char *text = image_config_text(&st->config);
    if (!text || (!st->health && !st->author))
        return take_ptr(text);
    json_t *root = json_loads(text, 0, NULL);
    json_t *config = json_object_get(root, "config");
    if (st->health)
        (void)json_object_set(config, "Healthcheck", st->health);
    if (st->author)
        (void)json_object_set_new(root, "author", json_string(st->author));
    char *more = root ? json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(root);
    return more;
}

int build_finish(struct build *b, struct build_stage *st, struct image *ret_image, struct err *err)
{
    struct image_config *c = &st->config;
    b->line = 0;
    if (st->layers.n == 0)
        return err_fail(err, FAIL_BUILD_FAILED, "the image has no layer: no step made a file");
    pairs_done(&c->env);
    if (build_env(st, false, &c->env) < 0)
        return no_memory(err);
    _cleanup_free_ char *text = config_text(st);
    if (!text)
        return no_memory(err);
    return image_create(b->core, b->owner, b->name, b->public, text, NULL, st->layers.items,
                        st->layers.n, ret_image, err);
}

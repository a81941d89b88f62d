#include "dockerfile/scope.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* ---- vars ---- */

static size_t find(const struct vars *v, const char *name)
{
    size_t i = 0;
    while (i < v->n && strcmp(v->names[i], name) != 0)
        i++;
    return i;
}

static int grow(struct vars *v)
{
    char **names = reallocarray(v->names, v->n + 1, sizeof(*names));
    if (!names)
        return -ENOMEM;
    v->names = names;
    char **values = reallocarray(v->values, v->n + 1, sizeof(*values));
    if (!values)
        return -ENOMEM;
    v->values = values;
    return 0;
}

int vars_set(struct vars *v, const char *name, const char *value)
{
    size_t i = find(v, name);
    _cleanup_free_ char *copy = value ? strdup(value) : NULL;
    if (value && !copy)
        return -ENOMEM;
    if (i == v->n) {
        if (v->n == SCOPE_VARS_MAX)
            return -E2BIG;
        int r = grow(v);
        if (r < 0)
            return r;
        v->names[i] = strdup(name);
        if (!v->names[i])
            return -ENOMEM;
        v->values[i] = NULL;
        v->n++;
    }
    free(v->values[i]);
    v->values[i] = take_ptr(copy);
    return 0;
}

const char *vars_get(const struct vars *v, const char *name)
{
    size_t i = find(v, name);
    return i < v->n ? v->values[i] : NULL;
}

bool vars_has(const struct vars *v, const char *name)
{
    return find(v, name) < v->n;
}

int vars_copy(const struct vars *from, struct vars *ret_to)
{
    struct vars v = { NULL, NULL, 0 };
    for (size_t i = 0; i < from->n; i++) {
        int r = vars_set(&v, from->names[i], from->values[i]);
        if (r < 0) {
            vars_done(&v);
            return r;
        }
    }
    *ret_to = v;
    return 0;
}

void vars_done(struct vars *v)
{
    for (size_t i = 0; i < v->n; i++) {
        free(v->names[i]);
        free(v->values[i]);
    }
    free(v->names);
    free(v->values);
    *v = (struct vars){ NULL, NULL, 0 };
}

/* ---- the world ---- */

bool scope_predefined(const char *name)
{
    static const char *const names[] = { "http_proxy", "https_proxy", "ftp_proxy", "no_proxy",
                                         "all_proxy" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

void scope_world_init(struct scope_world *w, char escape)
{
    *w = (struct scope_world){ .escape = escape };
}

int scope_world_platform(struct scope_world *w, const char *arch)
{
    static const char *const sides[] = { "TARGET", "BUILD" };
    char name[32], platform[64];
    int n = snprintf(platform, sizeof(platform), "linux/%s", arch);
    if (n < 0 || (size_t)n >= sizeof(platform))
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        const char *const parts[][2] = {
            { "PLATFORM", platform }, { "OS", "linux" }, { "ARCH", arch }, { "VARIANT", "" }
        };
        for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
            (void)snprintf(name, sizeof(name), "%s%s", sides[i], parts[k][0]);
            int r = vars_set(&w->platform, name, parts[k][1]);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static const char *world_lookup(void *ctx, const char *name)
{
    const struct scope_world *w = ctx;
    if (vars_has(&w->global, name))
        return vars_get(&w->global, name);
    return vars_get(&w->platform, name);
}

struct expand scope_world_expand(struct scope_world *w)
{
    return (struct expand){ .escape = w->escape, .lookup = world_lookup, .ctx = w };
}

static int declare_global(struct scope_world *w, const struct dockerfile_pair *arg, struct err *err)
{
    _cleanup_(buf_done) struct buf value = BUF_INIT(SCOPE_TEXT_MAX);
    struct expand x = scope_world_expand(w);
    const char *given = vars_get(&w->given, arg->name);
    int r = 0;
    if (arg->value && !given)
        r = expand_word(&x, arg->value, &value, err);
    if (r < 0)
        return r;
    if (!given && !arg->value)
        given = vars_get(&w->platform, arg->name);
    r = vars_set(&w->global, arg->name, given ? given : arg->value ? value.data : NULL);
    return r < 0 ? err_set(err, -r, "cannot keep the ARG '%.60s'", arg->name) : 0;
}

int scope_world_head(struct scope_world *w, const struct dockerfile *file, unsigned *ret_line,
                     struct err *err)
{
    for (size_t i = 0; i < file->n_args; i++) {
        const struct dockerfile_step *step = &file->args[i];
        for (size_t k = 0; k < step->n_pairs; k++) {
            int r = declare_global(w, &step->pairs[k], err);
            if (r < 0) {
                *ret_line = step->line;
                return err_wrap(err, r, "line %u", step->line);
            }
        }
    }
    return 0;
}

void scope_world_done(struct scope_world *w)
{
    vars_done(&w->given);
    vars_done(&w->platform);
    vars_done(&w->global);
}

/* ---- a stage ---- */

static const char *scope_lookup(void *ctx, const char *name)
{
    const struct scope *s = ctx;
    if (vars_has(&s->env, name))
        return vars_get(&s->env, name);
    return vars_get(&s->args, name);
}

struct expand scope_expand(struct scope *s)
{
    return (struct expand){ .escape = s->world->escape, .lookup = scope_lookup, .ctx = s };
}

int scope_declare(struct scope *s, const char *name, const char *value)
{
    const char *given = vars_get(&s->world->given, name);
    if (!given && !value)
        given = vars_get(&s->world->global, name);
    if (!given && !value)
        given = vars_get(&s->world->platform, name);
    return vars_set(&s->args, name, given ? given : value);
}

void scope_done(struct scope *s)
{
    vars_done(&s->args);
    vars_done(&s->env);
}

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "core/sandbox.h"

int pairs_add(struct pairs *p, const char *name, const char *value)
{
    _cleanup_free_ char *v = strdup(value);
    if (!v)
        return -ENOMEM;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->names[i], name) == 0) {
            free(p->values[i]);
            p->values[i] = take_ptr(v);
            return 0;
        }

    _cleanup_free_ char *n = strdup(name);
    char **names = n ? reallocarray(p->names, p->n + 1, sizeof(*names)) : NULL;
    if (!names)
        return -ENOMEM;
    p->names = names;
    char **values = reallocarray(p->values, p->n + 1, sizeof(*values));
    if (!values)
        return -ENOMEM;
    p->values = values;
    p->names[p->n] = take_ptr(n);
    p->values[p->n] = take_ptr(v);
    p->n++;
    return 0;
}

const char *pairs_get(const struct pairs *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->names[i], name) == 0)
            return p->values[i];
    return NULL;
}

int pairs_copy(const struct pairs *from, struct pairs *ret_to)
{
    struct pairs to = { NULL, NULL, 0 };
    if (from->n == 0) {
        *ret_to = to;
        return 0;
    }
    to.names = calloc(from->n, sizeof(*to.names));
    to.values = calloc(from->n, sizeof(*to.values));
    if (!to.names || !to.values)
        goto undo;
    for (size_t i = 0; i < from->n; i++) {
        to.names[i] = strdup(from->names[i]);
        to.values[i] = strdup(from->values[i]);
        to.n++;
        if (!to.names[i] || !to.values[i])
            goto undo;
    }
    *ret_to = to;
    return 0;
undo:
    pairs_done(&to);
    return -ENOMEM;
}

void pairs_done(struct pairs *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->names[i]);
        free(p->values[i]);
    }
    free(p->names);
    free(p->values);
    *p = (struct pairs){ NULL, NULL, 0 };
}

char *pairs_text(const struct pairs *p)
{
    json_t *o = json_object();
    for (size_t i = 0; o && i < p->n; i++)
        (void)json_object_set_new(o, p->names[i], json_string(p->values[i]));
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

int pairs_read(const char *text, struct pairs *ret_p)
{
    json_t *o = json_loads(text, 0, NULL), *value;
    const char *name;
    int r = json_is_object(o) ? 0 : -EPROTO;
    json_object_foreach(o, name, value) {
        const char *v = json_string_value(value);
        if (r >= 0)
            r = v ? pairs_add(ret_p, name, v) : -EPROTO;
    }
    json_decref(o);
    return r;
}

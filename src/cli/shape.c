#include "cli/shape.h"

#include "cli/cli.h"
#include "cli/object.h"

#define MIB (1024 * 1024)

static void put_mib(json_t *o, const char *name, const struct opt_number *n)
{
    if (n->set)
        (void)json_object_set_new(o, name, json_integer(n->v / MIB + (n->v % MIB != 0)));
}

static void put_count(json_t *o, const char *name, const struct opt_number *n)
{
    if (n->set)
        (void)json_object_set_new(o, name, json_integer(n->v));
}

/* Whole seconds where they are whole: not every reader of JSON likes 30.0. */
static void put_seconds(json_t *o, const char *name, const struct opt_number *ms)
{
    if (ms->set)
        (void)json_object_set_new(
            o, name, ms->v % 1000 ? json_real((double)ms->v / 1000) : json_integer(ms->v / 1000));
}

/* Rules say more than a word does. */
static void put_network(json_t *o, const struct shape *s)
{
    json_t *rules = s->rules.n ? json_array() : NULL;
    for (size_t i = 0; i < s->rules.n; i++)
        (void)json_array_append_new(rules, json_string(s->rules.items[i]));
    if (rules)
        (void)json_object_set_new(o, "network", json_pack("{s:o}", "rules", rules));
    else if (s->net)
        (void)json_object_set_new(o, "network", json_string(s->net));
}

int shape_body(const struct shape *s, json_t **ret_body, struct err *err)
{
    const struct {
        const char *name, *value;
    } texts[] = {
        { "template", s->template }, { "image", s->image },     { "name", s->name },
        { "user", s->user },         { "workdir", s->workdir }, { "on_timeout", s->on_timeout },
        { "on_idle", s->on_idle },
    };
    _cleanup_json_ json_t *o = json_object();
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(texts) && r == 0; i++)
        if (texts[i].value)
            r = object_text(o, texts[i].name, texts[i].value, err);
    if (r == 0)
        r = object_pairs(o, "env", s->env.items, s->env.n, err);
    if (r == 0)
        r = object_pairs(o, "metadata", s->metadata.items, s->metadata.n, err);
    if (r < 0)
        return r;
    if (s->cpus.set)
        (void)json_object_set_new(o, "cpus", json_real(s->cpus.v));
    put_network(o, s);
    put_mib(o, "memory_mb", &s->memory);
    put_mib(o, "disk_mb", &s->disk);
    put_count(o, "pids", &s->pids);
    put_count(o, "nofile", &s->nofile);
    put_seconds(o, "timeout_s", &s->timeout);
    put_seconds(o, "idle_timeout_s", &s->idle_timeout);
    *ret_body = take_ptr(o);
    return 0;
}

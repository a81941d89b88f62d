#include "cli/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/object.h"
#include "cli/policy.h"
#include "cli/units.h"

#define MIB (1024 * 1024)
#define LIMIT_NAME_MAX 32

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

static int put_network(json_t *o, const struct shape *s, struct err *err)
{
    int r = 0;
    if (s->net && s->rules.n)
        return err_set(err, EINVAL,
                       "--rule takes the place of --net; to allow all the rest, end with --rule "
                       "'allow *'");
    if (s->proxy && !s->net && !s->rules.n)
        return err_set(err, EINVAL, "--proxy needs --net or --rule beside it");
    if (s->net && !s->proxy)
        return object_text(o, "network", s->net, err);
    if (!s->net && !s->rules.n)
        return 0;
    json_t *network = json_object(), *rules = json_array();
    (void)json_object_set_new(o, "network", network);
    for (size_t i = 0; i < s->rules.n && r == 0; i++)
        r = list_text(rules, s->rules.items[i], err);
    if (r == 0)
        r = s->net ? object_text(network, "preset", s->net, err)
                   : json_object_set(network, "rules", rules);
    json_decref(rules);
    return r == 0 && s->proxy ? object_text(network, "proxy", s->proxy, err) : r;
}

/* "connections=200,rate_mbps=100", or "none": the names are the API's own. */
static int put_net_limits(json_t *o, const char *text, struct err *err)
{
    if (strcmp(text, "none") == 0)
        return json_object_set_new(o, "network_limits", json_null());
    json_t *limits = json_object();
    (void)json_object_set_new(o, "network_limits", limits);
    while (*text) {
        char word[2 * LIMIT_NAME_MAX];
        size_t n = strcspn(text, ",");
        int64_t value;
        bool fits = snprintf(word, sizeof(word), "%.*s", (int)n, text) < (int)sizeof(word);
        char *equals = strchr(word, '=');
        if (!fits || !equals || equals == word || count_parse(equals + 1, &value) < 0)
            return err_set(err, EINVAL,
                           "--net-limits: '%s' is none of connections=N, connections_per_s=N, "
                           "rate_mbps=N, total_mb=N",
                           word);
        *equals = '\0';
        (void)json_object_set_new(limits, word, json_integer(value));
        text += n;
        text += *text == ',';
    }
    return 0;
}

/* NAME:PATH or NAME:PATH:ro */
static int put_volume(json_t *list, const char *text, struct err *err)
{
    const char *path = strchr(text, ':');
    size_t n = path ? strlen(path + 1) : 0;
    bool read_only = n > 3 && strcmp(path + 1 + n - 3, ":ro") == 0;
    if (*text == '/' || *text == '.' || *text == '~')
        return err_set(
            err, EINVAL,
            "--volume takes the name of a volume (`warren volume create`), not a directory "
            "of this machine; `warren cp` copies one in");
    if (!path || path == text || path[1] != '/')
        return err_set(err, EINVAL, "--volume looks like NAME:/PATH or NAME:/PATH:ro");
    json_t *o = json_object();
    (void)json_array_append_new(list, o);
    _cleanup_free_ char *name = strndup(text, (size_t)(path - text));
    _cleanup_free_ char *where = strndup(path + 1, read_only ? n - 3 : n);
    int r = name && where ? object_text(o, "volume", name, err)
                          : err_set(err, ENOMEM, "cannot allocate an option");
    if (r == 0)
        r = object_text(o, "path", where, err);
    (void)json_object_set_new(o, "read_only", json_boolean(read_only));
    return r;
}

static int put_volumes(json_t *body, const struct opt_list *volumes, struct err *err)
{
    if (volumes->n == 0)
        return 0;
    json_t *list = json_array();
    (void)json_object_set_new(body, "volumes", list);
    int r = 0;
    for (size_t i = 0; i < volumes->n && r == 0; i++)
        r = put_volume(list, volumes->items[i], err);
    return r;
}

static int put_bindings(json_t *body, const struct opt_list *bindings, struct err *err)
{
    if (bindings->n == 0)
        return 0;
    json_t *list = json_array();
    (void)json_object_set_new(body, "bindings", list);
    int r = 0;
    for (size_t i = 0; i < bindings->n && r == 0; i++)
        r = list_text(list, bindings->items[i], err);
    return r;
}

int shape_body(const struct shape *s, json_t **ret_body, struct err *err)
{
    const struct {
        const char *name, *value;
    } texts[] = {
        { "template", s->template }, { "image", s->image },     { "name", s->name },
        { "user", s->user },         { "workdir", s->workdir }, { "on_timeout", s->on_timeout },
        { "on_idle", s->on_idle },   { "preview", s->preview }, { "wake", s->wake },
        { "restart", s->restart },
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
    if (r == 0)
        r = put_volumes(o, &s->volumes, err);
    if (r == 0)
        r = put_bindings(o, &s->bindings, err);
    if (r == 0)
        r = put_network(o, s, err);
    if (r == 0 && s->net_limits)
        r = put_net_limits(o, s->net_limits, err);
    if (r < 0)
        return r;
    if (s->cpus.set)
        (void)json_object_set_new(o, "cpus", json_real(s->cpus.v));
    put_mib(o, "memory_mb", &s->memory);
    put_mib(o, "disk_mb", &s->disk);
    put_count(o, "pids", &s->pids);
    put_count(o, "nofile", &s->nofile);
    put_seconds(o, "timeout_s", &s->timeout);
    put_seconds(o, "idle_timeout_s", &s->idle_timeout);
    put_seconds(o, "freeze_after_s", &s->freeze_after);
    if (s->checkpoints)
        r = policy_put(o, s->checkpoints, err);
    if (r < 0)
        return r;
    *ret_body = take_ptr(o);
    return 0;
}

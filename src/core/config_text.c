/* An image's configuration written down, as OCI has it. */
#include <jansson.h>

#include "base/clock.h"
#include "core/oci.h"

static json_t *strings_json(char *const *list)
{
    json_t *a = json_array();
    for (char *const *p = list; a && p && *p; p++)
        (void)json_array_append_new(a, json_string(*p));
    return a;
}

static json_t *set_json(char *const *list)
{
    json_t *o = json_object();
    for (char *const *p = list; o && p && *p; p++)
        (void)json_object_set_new(o, *p, json_object());
    return o;
}

static json_t *env_json(const struct pairs *p)
{
    json_t *a = json_array();
    for (size_t i = 0; a && i < p->n; i++) {
        json_t *v = json_sprintf("%s=%s", p->names[i], p->values[i]);
        (void)json_array_append_new(a, v);
    }
    return a;
}

static void put_text(json_t *o, const char *name, const char *text)
{
    if (text)
        (void)json_object_set_new(o, name, json_string(text));
}

static void put_time(json_t *o, const char *name, int64_t ms)
{
    char text[CLOCK_TEXT_MAX];
    if (ms)
        (void)json_object_set_new(o, name, json_string(clock_text(ms, text)));
}

static json_t *config_json(const struct image_config *c)
{
    json_t *o = json_object();
    put_text(o, "User", c->user);
    put_text(o, "WorkingDir", c->workdir);
    put_text(o, "StopSignal", c->stop_signal);
    if (c->env.n)
        (void)json_object_set_new(o, "Env", env_json(&c->env));
    if (c->cmd)
        (void)json_object_set_new(o, "Cmd", strings_json(c->cmd));
    if (c->entrypoint)
        (void)json_object_set_new(o, "Entrypoint", strings_json(c->entrypoint));
    if (c->shell)
        (void)json_object_set_new(o, "Shell", strings_json(c->shell));
    if (c->ports)
        (void)json_object_set_new(o, "ExposedPorts", set_json(c->ports));
    if (c->volumes)
        (void)json_object_set_new(o, "Volumes", set_json(c->volumes));
    json_t *labels = c->labels.n ? json_object() : NULL;
    for (size_t i = 0; labels && i < c->labels.n; i++)
        put_text(labels, c->labels.names[i], c->labels.values[i]);
    if (labels)
        (void)json_object_set_new(o, "Labels", labels);
    return o;
}

static json_t *history_json(const struct image_config *c)
{
    json_t *a = json_array();
    for (size_t i = 0; a && i < c->n_history; i++) {
        json_t *o = json_object();
        put_time(o, "created", c->history[i].created_ms);
        put_text(o, "created_by", c->history[i].created_by);
        if (c->history[i].empty)
            (void)json_object_set_new(o, "empty_layer", json_true());
        (void)json_array_append_new(a, o);
    }
    return a;
}

static json_t *diff_ids_json(const struct image_config *c)
{
    json_t *a = json_array();
    for (size_t i = 0; a && i < c->n_diff_ids; i++)
        (void)json_array_append_new(a, json_string(c->diff_ids[i]));
    return a;
}

char *image_config_text(const struct image_config *c)
{
    json_t *o = json_pack("{s:s, s:s, s:o, s:{s:s, s:o}}", "architecture",
                          c->architecture ? c->architecture : oci_machine(), "os",
                          c->os ? c->os : "linux", "config", config_json(c), "rootfs", "type",
                          "layers", "diff_ids", diff_ids_json(c));
    if (!o)
        return NULL;
    put_time(o, "created", c->created_ms);
    (void)json_object_set_new(o, "history", history_json(c));
    char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(o);
    return text;
}

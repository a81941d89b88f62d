/* An image's configuration: read, copied, changed; config_text.c writes it down. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "core/oci.h"

#define LIST_MAX 4096
#define HISTORY_MAX 4096

/* ---- lists of strings ---- */

void strings_free(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}

int strings_copy(char *const *from, char ***ret_to)
{
    size_t n = 0;
    if (!from) {
        *ret_to = NULL;
        return 0;
    }
    while (from[n])
        n++;
    char **to = calloc(n + 1, sizeof(*to));
    for (size_t i = 0; to && i < n; i++)
        if (!(to[i] = strdup(from[i]))) {
            strings_free(to);
            to = NULL;
        }
    *ret_to = to;
    return to ? 0 : -ENOMEM;
}

/* An array's texts; or an object's names, which is how sets are written. -EINVAL for others. */
static int get_strings(const json_t *v, char ***ret_list)
{
    size_t n = json_is_object(v) ? json_object_size(v) : json_array_size(v), i = 0;
    if (!v || json_is_null(v))
        return 0;
    if (n > LIST_MAX || (!json_is_array(v) && !json_is_object(v)))
        return -EINVAL;
    if (n == 0)
        return 0;
    char **list = calloc(n + 1, sizeof(*list));
    if (!list)
        return -ENOMEM;
    const char *name;
    json_t *value;
    int r = 0;
    if (json_is_object(v)) {
        json_object_foreach((json_t *)(uintptr_t)v, name, value)
            if (r == 0 && !(list[i++] = strdup(name)))
                r = -ENOMEM;
    } else {
        for (; r == 0 && i < n; i++) {
            const char *text = json_string_value(json_array_get(v, i));
            r = !text ? -EINVAL : (list[i] = strdup(text)) ? 0 : -ENOMEM;
        }
    }
    if (r < 0) {
        strings_free(list);
        return r;
    }
    *ret_list = list;
    return 0;
}

/* ---- reading ---- */

void image_config_done(struct image_config *c)
{
    free(c->os);
    free(c->architecture);
    free(c->user);
    free(c->workdir);
    free(c->stop_signal);
    pairs_done(&c->env);
    pairs_done(&c->labels);
    strings_free(c->cmd);
    strings_free(c->entrypoint);
    strings_free(c->shell);
    strings_free(c->ports);
    strings_free(c->volumes);
    for (size_t i = 0; i < c->n_diff_ids; i++)
        free(c->diff_ids[i]);
    free(c->diff_ids);
    for (size_t i = 0; i < c->n_history; i++)
        free(c->history[i].created_by);
    free(c->history);
    *c = (struct image_config){ .os = NULL };
}

static int get_text(const json_t *o, const char *name, char **ret_text)
{
    const char *text = json_string_value(json_object_get(o, name));
    if (!text || !*text)
        return 0;
    *ret_text = strdup(text);
    return *ret_text ? 0 : -ENOMEM;
}

static int64_t get_time(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));
    struct tm tm = { 0 };
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (!rest)
        return 0;
    int64_t s = timegm(&tm);
    return s > 0 ? s * 1000 : 0; /* year 1 is how some tools say "no time" */
}

static int get_env(const json_t *list, struct pairs *ret_env)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)(uintptr_t)list, i, v) {
        const char *text = json_string_value(v), *equals = text ? strchr(text, '=') : NULL;
        if (i > LIST_MAX)
            return -EINVAL;
        if (!equals || equals == text)
            continue;
        char *name = strndup(text, (size_t)(equals - text));
        int r = name ? pairs_add(ret_env, name, equals + 1) : -ENOMEM;
        free(name);
        if (r < 0)
            return r;
    }
    return 0;
}

static int get_pairs(const json_t *o, struct pairs *ret_p)
{
    const char *name;
    json_t *value;
    if (json_object_size(o) > LIST_MAX)
        return -EINVAL;
    json_object_foreach((json_t *)(uintptr_t)o, name, value) {
        const char *text = json_string_value(value);
        int r = text ? pairs_add(ret_p, name, text) : -EINVAL;
        if (r < 0)
            return r;
    }
    return 0;
}

static int get_diff_ids(const json_t *list, struct image_config *c)
{
    size_t n = json_array_size(list);
    if (n > OCI_LAYERS_MAX)
        return -EINVAL;
    c->diff_ids = calloc(n + 1, sizeof(*c->diff_ids));
    if (!c->diff_ids)
        return -ENOMEM;
    for (; c->n_diff_ids < n; c->n_diff_ids++) {
        const char *text = json_string_value(json_array_get(list, c->n_diff_ids));
        if (!digest_valid(text))
            return -EINVAL;
        if (!(c->diff_ids[c->n_diff_ids] = strdup(text)))
            return -ENOMEM;
    }
    return 0;
}

static int get_history(const json_t *list, struct image_config *c)
{
    size_t n = json_array_size(list);
    if (n > HISTORY_MAX)
        return -EINVAL;
    c->history = calloc(n + 1, sizeof(*c->history));
    if (!c->history)
        return -ENOMEM;
    for (; c->n_history < n; c->n_history++) {
        const json_t *o = json_array_get(list, c->n_history);
        struct oci_history *h = &c->history[c->n_history];
        h->created_ms = get_time(o, "created");
        h->empty = json_is_true(json_object_get(o, "empty_layer"));
        int r = get_text(o, "created_by", &h->created_by);
        if (r == 0 && !h->created_by)
            r = get_text(o, "comment", &h->created_by);
        if (r < 0)
            return r;
    }
    return 0;
}

static int get_config(const json_t *o, struct image_config *c)
{
    const json_t *in = json_object_get(o, "config");
    const struct {
        const char *name;
        char ***list;
    } lists[] = {
        { "Cmd", &c->cmd },         { "Entrypoint", &c->entrypoint },
        { "Shell", &c->shell },     { "ExposedPorts", &c->ports },
        { "Volumes", &c->volumes },
    };
    int r = get_text(o, "os", &c->os);
    if (r == 0)
        r = get_text(o, "architecture", &c->architecture);
    if (r == 0)
        r = get_text(in, "User", &c->user);
    if (r == 0)
        r = get_text(in, "WorkingDir", &c->workdir);
    if (r == 0)
        r = get_text(in, "StopSignal", &c->stop_signal);
    if (r == 0)
        r = get_env(json_object_get(in, "Env"), &c->env);
    if (r == 0)
        r = get_pairs(json_object_get(in, "Labels"), &c->labels);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(lists); i++)
        r = get_strings(json_object_get(in, lists[i].name), lists[i].list);
    if (r == 0)
        r = get_diff_ids(json_object_get(json_object_get(o, "rootfs"), "diff_ids"), c);
    if (r == 0)
        r = get_history(json_object_get(o, "history"), c);
    c->created_ms = get_time(o, "created");
    return r;
}

int image_config_parse(const char *text, size_t n, struct image_config *ret_c, struct err *err)
{
    struct image_config c = { .os = NULL };
    json_error_t why;
    json_t *o = n > OCI_JSON_MAX || !json_shallow(text, n) ? NULL : json_loadb(text, n, 0, &why);
    if (!json_is_object(o)) {
        json_decref(o);
        return err_fail(err, FAIL_INVALID_IMAGE, "the image's configuration is no JSON object");
    }
    int r = get_config(o, &c);
    json_decref(o);
    if (r < 0) {
        image_config_done(&c);
        return r == -EINVAL
                   ? err_fail(err, FAIL_INVALID_IMAGE, "the image's configuration is malformed")
                   : err_set(err, -r, "cannot read an image's configuration");
    }
    *ret_c = c;
    return 0;
}

/* ---- copying and changing ---- */

static int copy_text(const char *from, char **ret_to)
{
    if (!from)
        return 0;
    *ret_to = strdup(from);
    return *ret_to ? 0 : -ENOMEM;
}

static int copy_lists(const struct image_config *from, struct image_config *to)
{
    int r = strings_copy(from->cmd, &to->cmd);
    if (r == 0)
        r = strings_copy(from->entrypoint, &to->entrypoint);
    if (r == 0)
        r = strings_copy(from->shell, &to->shell);
    if (r == 0)
        r = strings_copy(from->ports, &to->ports);
    if (r == 0)
        r = strings_copy(from->volumes, &to->volumes);
    if (r == 0)
        r = pairs_copy(&from->env, &to->env);
    if (r == 0)
        r = pairs_copy(&from->labels, &to->labels);
    return r;
}

static int copy_past(const struct image_config *from, struct image_config *to)
{
    to->diff_ids = calloc(from->n_diff_ids + 1, sizeof(*to->diff_ids));
    to->history = calloc(from->n_history + 1, sizeof(*to->history));
    if (!to->diff_ids || !to->history)
        return -ENOMEM;
    for (; to->n_diff_ids < from->n_diff_ids; to->n_diff_ids++)
        if (!(to->diff_ids[to->n_diff_ids] = strdup(from->diff_ids[to->n_diff_ids])))
            return -ENOMEM;
    for (; to->n_history < from->n_history; to->n_history++) {
        struct oci_history *h = &to->history[to->n_history];
        *h = from->history[to->n_history];
        h->created_by = NULL;
        if (copy_text(from->history[to->n_history].created_by, &h->created_by) < 0)
            return -ENOMEM;
    }
    return 0;
}

int image_config_copy(const struct image_config *from, struct image_config *ret_to)
{
    struct image_config to = { .created_ms = from->created_ms };
    int r = copy_text(from->os, &to.os);
    if (r == 0)
        r = copy_text(from->architecture, &to.architecture);
    if (r == 0)
        r = copy_text(from->user, &to.user);
    if (r == 0)
        r = copy_text(from->workdir, &to.workdir);
    if (r == 0)
        r = copy_text(from->stop_signal, &to.stop_signal);
    if (r == 0)
        r = copy_lists(from, &to);
    if (r == 0)
        r = copy_past(from, &to);
    if (r < 0) {
        image_config_done(&to);
        return r;
    }
    *ret_to = to;
    return 0;
}

int image_config_add(struct image_config *c, const char *diff_id, const char *created_by,
                     int64_t created_ms)
{
    struct oci_history *history = reallocarray(c->history, c->n_history + 1, sizeof(*history));
    if (!history)
        return -ENOMEM;
    c->history = history;
    char **ids = diff_id ? reallocarray(c->diff_ids, c->n_diff_ids + 1, sizeof(*ids)) : NULL;
    if (ids)
        c->diff_ids = ids;
    char *by = strdup(created_by), *id = ids && diff_id ? strdup(diff_id) : NULL;
    if (!by || (diff_id && !id)) {
        free(by);
        free(id);
        return -ENOMEM;
    }
    history[c->n_history++] = (struct oci_history){ by, created_ms, diff_id == NULL };
    if (id)
        c->diff_ids[c->n_diff_ids++] = id;
    return 0;
}

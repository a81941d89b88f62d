/* A spec's form at rest. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "core/network.h"
#include "core/private.h"
#include "core/spec.h"

#define RECORD_METADATA_MAX 4096 /* ten thousand records must stay small */

static json_t *pairs_to_json(const struct pairs *p)
{
    json_t *o = json_object();
    for (size_t i = 0; o && i < p->n; i++)
        if (json_object_set_new(o, p->names[i], json_string(p->values[i])) < 0) {
            json_decref(o);
            return NULL;
        }
    return o;
}

static size_t pairs_bytes(const struct pairs *p)
{
    size_t total = 0;
    for (size_t i = 0; i < p->n; i++)
        total += strlen(p->names[i]) + strlen(p->values[i]);
    return total;
}

/* Takes v. Where a member cannot be added (no memory), *o is NULL from then on. */
static void put(json_t **o, const char *name, json_t *v)
{
    if (json_object_set_new(*o, name, v) < 0) {
        json_decref(*o);
        *o = NULL;
    }
}

/* What it may reach, and who may reach it. */
static void put_doors(json_t **o, const struct sandbox_spec *spec, bool as_record)
{
    size_t n_rules; /* a proxy may have a password in it, which the dead need no more */
    (void)network_proxy(spec->network, &n_rules);
    if (spec->network)
        put(o, "network",
            as_record ? json_stringn(spec->network, n_rules) : json_string(spec->network));
    if (spec->bindings && !as_record) /* their literals may be as secret as an environment */
        put(o, "bindings", json_string(spec->bindings));
    if (spec->preview == PREVIEW_PRIVATE)
        put(o, "private", json_true());
    if (spec->wake != WAKE_AUTO)
        put(o, "wake", json_integer((json_int_t)spec->wake));
    if (spec->restart != RESTART_NO)
        put(o, "restart", json_integer((json_int_t)spec->restart));
    put(o, "network_limits", limits_to_json(&spec->network_limits));
}

/* Which checkpoints it comes from and goes on from. */
static void put_past(json_t **o, const struct sandbox_spec *spec)
{
    if (spec->checkpoint[0])
        put(o, "checkpoint", json_string(spec->checkpoint));
    if (spec->origin[0])
        put(o, "origin", json_string(spec->origin));
    if (spec->paused[0])
        put(o, "paused", json_string(spec->paused));
    if (spec->archived)
        put(o, "archived", json_true());
}

char *spec_to_json(const struct sandbox_spec *spec, bool as_record)
{
    static const struct pairs none;
    const struct pairs *env = as_record ? &none : &spec->env, *metadata = &spec->metadata;
    const struct pairs *image_env = as_record ? &none : &spec->image_env;
    if (as_record && pairs_bytes(metadata) > RECORD_METADATA_MAX)
        metadata = &none;
    json_t *o = json_pack(
        "{s:s?, s:s?, s:s?, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s,"
        " s:o, s:o, s:o}",
        "image", spec->image, "user", spec->user, "workdir", spec->workdir, "cpu_millis",
        (json_int_t)spec->cpu_millis, "memory_bytes", (json_int_t)spec->memory_bytes, "disk_bytes",
        (json_int_t)spec->disk_bytes, "pids", (json_int_t)spec->pids, "nofile",
        (json_int_t)spec->nofile, "timeout_ms", (json_int_t)spec->timeout_ms, "idle_timeout_ms",
        (json_int_t)spec->idle_timeout_ms, "on_timeout", sandbox_ends[spec->on_timeout], "on_idle",
        sandbox_ends[spec->on_idle], "env", pairs_to_json(env), "metadata", pairs_to_json(metadata),
        "image_env", pairs_to_json(image_env));
    if (spec->notes.n && !as_record)
        put(&o, "notes", pairs_to_json(&spec->notes));
    if (spec->n_mounts)
        put(&o, "mounts", mounts_to_json(spec));
    put_doors(&o, spec, as_record);
    if (spec->freeze_after_ms)
        put(&o, "freeze_after_ms", json_integer((json_int_t)spec->freeze_after_ms));
    if (autosave_any(&spec->autosave))
        put(&o, "autosave", autosave_to_json(&spec->autosave));
    if (spec->revision)
        put(&o, "revision", json_integer((json_int_t)spec->revision));
    put_past(&o, spec);
    if (spec->template && !as_record) { /* what is gone starts nothing any more */
        put(&o, "template", json_string(spec->template));
        put(&o, "boot", boot_to_json(&spec->boot));
    }
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

static int pairs_from_json(const json_t *o, struct pairs *ret_p)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)o, name, value) {
        const char *text = json_string_value(value);
        int r = text ? pairs_add(ret_p, name, text) : -EPROTO;
        if (r < 0)
            return r;
    }
    return 0;
}

static int64_t number(const json_t *o, const char *name, int64_t otherwise)
{
    const json_t *v = json_object_get(o, name);
    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

/* Both were marks among the metadata once. */
static void read_doors(const json_t *o, struct sandbox_spec *s)
{
    const json_t *metadata = json_object_get(o, "metadata");
    bool private = json_is_true(json_object_get(o, "private"));
    if (private || json_object_get(metadata, "warren.private"))
        s->preview = PREVIEW_PRIVATE;
    int64_t wake = number(o, "wake", WAKE_AUTO);
    if (wake == WAKE_ALWAYS || json_object_get(metadata, "warren.e2b.wakes"))
        s->wake = WAKE_ALWAYS;
    else if (wake == WAKE_NEVER)
        s->wake = WAKE_NEVER;
    int64_t restart = number(o, "restart", RESTART_NO);
    if (restart == RESTART_ON_BOOT || restart == RESTART_ALWAYS)
        s->restart = (enum sandbox_restart)restart;
}

/* What a time-out does; older records have `stop`, true or false, under another name. */
static enum sandbox_end end_of(const json_t *o, const char *name, const char *old)
{
    const char *text = json_string_value(json_object_get(o, name));
    for (int i = 0; text && sandbox_ends[i]; i++)
        if (strcmp(text, sandbox_ends[i]) == 0)
            return (enum sandbox_end)i;
    return json_is_true(json_object_get(o, old)) ? END_STOP : END_DELETE;
}

static void read_id(const json_t *o, const char *name, char ret_id[ID_SIZE])
{
    const char *text = json_string_value(json_object_get(o, name));
    if (text && id_valid(text))
        memcpy(ret_id, text, ID_SIZE);
}

static int read_texts(const json_t *o, struct sandbox_spec *s)
{
    const struct {
        const char *name;
        char **to;
    } texts[] = {
        { "image", &s->image },       { "user", &s->user },       { "workdir", &s->workdir },
        { "template", &s->template }, { "network", &s->network }, { "bindings", &s->bindings },
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *text = json_string_value(json_object_get(o, texts[i].name));
        if (text && !(*texts[i].to = strdup(text)))
            return -ENOMEM;
    }
    return 0;
}

static void read_numbers(const json_t *o, struct sandbox_spec *s)
{
    s->cpu_millis = (uint32_t)number(o, "cpu_millis", s->cpu_millis);
    s->memory_bytes = (uint64_t)number(o, "memory_bytes", (int64_t)s->memory_bytes);
    s->disk_bytes = (uint64_t)number(o, "disk_bytes", (int64_t)s->disk_bytes);
    s->pids = (uint32_t)number(o, "pids", s->pids);
    s->nofile = (uint32_t)number(o, "nofile", s->nofile);
    s->revision = (uint64_t)number(o, "revision", 0);
    s->timeout_ms = number(o, "timeout_ms", 0);
    s->idle_timeout_ms = number(o, "idle_timeout_ms", 0);
    s->freeze_after_ms = number(o, "freeze_after_ms", 0);
}

/* Notes were marks among the metadata once, where a client's change of those removed them. */
static int read_metadata(const json_t *o, struct sandbox_spec *s)
{
    static const struct {
        const char *mark, *note;
    } marks[] = { { "warren.e2b.open", "e2b.open" }, { "warren.host", "preview.host" } };
    json_t *metadata = json_object_get(o, "metadata");
    int r = 0;
    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(marks); i++) {
        const char *text = json_string_value(json_object_get(metadata, marks[i].mark));
        if (!text)
            continue;
        r = pairs_add(&s->notes, marks[i].note, text);
        (void)json_object_del(metadata, marks[i].mark);
    }
    if (r >= 0)
        r = pairs_from_json(metadata, &s->metadata);
    return r < 0 ? r : pairs_from_json(json_object_get(o, "notes"), &s->notes);
}

int spec_from_json(const char *text, struct sandbox_spec *ret_spec, struct err *err)
{
    json_error_t why;
    json_t *o = json_loads(text, 0, &why);
    if (!json_is_object(o)) {
        json_decref(o);
        return err_set(err, EPROTO, "cannot read a recorded spec: %s", why.text);
    }
    struct sandbox_spec s;
    sandbox_spec_init(&s);
    read_numbers(o, &s);
    limits_from_json(json_object_get(o, "network_limits"), &s.network_limits);
    s.on_timeout = end_of(o, "on_timeout", "stop_on_timeout");
    s.on_idle = end_of(o, "on_idle", "stop_on_idle");
    autosave_from_json(json_object_get(o, "autosave"), &s.autosave);
    read_doors(o, &s);
    read_id(o, "checkpoint", s.checkpoint);
    read_id(o, "origin", s.origin);
    read_id(o, "paused", s.paused);
    s.archived = json_is_true(json_object_get(o, "archived"));
    int r = read_texts(o, &s);
    if (r >= 0 && s.template)
        r = boot_from_json(json_object_get(o, "boot"), &s.boot);
    if (r >= 0)
        r = mounts_from_json(json_object_get(o, "mounts"), &s);
    if (r >= 0)
        r = pairs_from_json(json_object_get(o, "env"), &s.env);
    if (r >= 0)
        r = pairs_from_json(json_object_get(o, "image_env"), &s.image_env);
    if (r >= 0)
        r = read_metadata(o, &s);
    json_decref(o);
    if (r < 0) {
        sandbox_spec_done(&s);
        return err_set(err, -r, "cannot read a recorded spec");
    }
    *ret_spec = s;
    return 0;
}

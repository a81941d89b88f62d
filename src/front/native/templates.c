#include <errno.h>
#include <string.h>

#include "core/template.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/page.h"

#define MIB (1024u * 1024)
#define COMMAND_MAX (128 * 1024)
#define READY_PATH "/"
#define READY_STATUS 200
#define FREEZE_MAX_S (10.0 * 366 * 86400) /* ten years */

/* ---- members that are not plain ---- */

static int put_word(char **list, size_t i, const char *text)
{
    list[i] = strdup(text);
    return list[i] ? 0 : -ENOMEM;
}

/* A list of words, or a text for the shell: char **. */
static int as_command(const json_t *v, const struct field *f, void *at, struct err *err)
{
    static const char *const shell[] = { "/bin/sh", "-c" };
    char ***ret = at;
    if (json_is_array(v))
        return as_texts(v, f, at, err);
    if (!json_is_string(v) || json_string_length(v) == 0 || json_string_length(v) > COMMAND_MAX)
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'%s' must be a list of words, or a text for /bin/sh -c", f->name);
    *ret = calloc(4, sizeof(char *));
    if (!*ret || put_word(*ret, 0, shell[0]) < 0 || put_word(*ret, 1, shell[1]) < 0 ||
        put_word(*ret, 2, json_string_value(v)) < 0)
        return err_set(err, ENOMEM, "cannot allocate '%s'", f->name);
    return 0;
}

static const struct field http_fields[] = {
    FIELD(struct boot, port, "port", as_u32, .min = 1, .max = 65535),
    FIELD(struct boot, path, "path", as_text, .max = 1024),
    FIELD(struct boot, status, "status", as_u32, .min = 100, .max = 599),
};

static int as_http(const json_t *v, const struct field *f, void *at, struct err *err)
{
    struct boot *b = container_of(at, struct boot, status);
    uint32_t seen;
    if (!json_is_object(v))
        return err_fail(err, FAIL_INVALID_FIELD, "'http' must be an object");
    b->status = READY_STATUS;
    int r = fields_decode(v, http_fields, ARRAY_LEN(http_fields), b, &seen, err);
    if (r >= 0 && !b->path && !(b->path = strdup(READY_PATH)))
        r = err_set(err, ENOMEM, "cannot allocate a path");
    return r;
}

/* In the order of enum ready_kind, less the first. */
static const struct field ready_fields[] = {
    FIELD(struct boot, ready_argv, "command", as_command),
    FIELD(struct boot, port, "port", as_u32, .min = 1, .max = 65535),
    FIELD(struct boot, status, "http", as_http),
};

static int as_ready(const json_t *v, const struct field *f, void *at, struct err *err)
{
    struct boot *b = at;
    uint32_t seen = 0;
    if (!json_is_object(v) || json_object_size(v) != 1)
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'ready' must be null or have one of 'command', 'port' and 'http'");
    int r = fields_decode(v, ready_fields, ARRAY_LEN(ready_fields), b, &seen, err);
    for (unsigned i = 0; i < ARRAY_LEN(ready_fields); i++)
        if (seen & 1u << i)
            b->ready = (enum ready_kind)(READY_COMMAND + i);
    return r;
}

static int as_ports(const json_t *v, const struct field *f, void *at, struct err *err)
{
    struct template *t = container_of(at, struct template, n_ports);
    bool good = json_is_array(v) && json_array_size(v) <= TEMPLATE_PORTS_MAX;
    for (size_t i = 0; good && i < json_array_size(v); i++) {
        json_int_t port = json_integer_value(json_array_get(v, i));
        good = port >= 1 && port <= 65535;
        t->ports[t->n_ports++] = (uint32_t)port;
    }
    return good ? 0
                : err_fail(err, FAIL_INVALID_FIELD,
                           "'ports' must be a list of at most %d numbers from 1 to 65535",
                           TEMPLATE_PORTS_MAX);
}

/* ---- in ---- */

struct ask {
    char *name;
    struct template t;
};

#define ROW(member_, name_, ...) FIELD(struct ask, member_, name_, __VA_ARGS__)
static const struct field fields[] = {
    ROW(name, "name", as_text, .max = TEMPLATE_NAME_SIZE - 1),
    ROW(t.spec.image, "image", as_text, .max = 255),
    ROW(t.spec.boot.argv, "start_command", as_command, .null_ok = true),
    ROW(t.spec.boot, "ready", as_ready, .null_ok = true),
    ROW(t.spec.boot.timeout_ms, "ready_timeout_s", as_seconds, .min = 1, .max = BOOT_TIMEOUT_MAX_S),
    ROW(t.spec.env, "env", as_env),
    ROW(t.n_ports, "ports", as_ports),
    ROW(t.spec.network, "network", native_as_network),
    ROW(t.spec.bindings, "bindings", native_as_bindings, .null_ok = true),
    ROW(t.spec.network_limits, "network_limits", native_as_network_limits, .null_ok = true),
    ROW(t.spec.autosave, "checkpoints", native_as_autosave, .null_ok = true),
    ROW(t.spec.freeze_after_ms, "freeze_after_s", as_seconds, .max = FREEZE_MAX_S, .null_ok = true),
    ROW(t.spec.preview, "preview", as_choice, .choices = native_previews),
    ROW(t.spec.wake, "wake", as_choice, .choices = native_wakes),
    ROW(t.spec.user, "user", as_text, .max = 256, .null_ok = true),
    ROW(t.spec.workdir, "workdir", as_text, .max = 4096, .null_ok = true),
    ROW(t.spec.cpu_millis, "cpus", as_thousandths, .min = 0.05, .max = 4096),
    ROW(t.spec.memory_bytes, "memory_mb", as_mib, .min = 16, .max = 1048576),
    ROW(t.spec.disk_bytes, "disk_mb", as_mib, .min = 16, .max = 16777216),
    ROW(t.spec.pids, "pids", as_u32, .min = 4, .max = 32768),
    ROW(t.spec.nofile, "nofile", as_u32, .min = 16, .max = 1048576),
    ROW(t.warm, "warm", as_u32, .max = TEMPLATE_WARM_MAX),
    ROW(t.public, "public", as_bool),
};

static int read_ask(struct request *req, struct ask *ask, struct err *err)
{
    int r = request_fields(req, fields, ARRAY_LEN(fields), ask, NULL, err);
    if (r >= 0 && !ask->name)
        r = err_fail(err, FAIL_MISSING_FIELD, "'name' is needed");
    if (r < 0)
        return r;
    if (!template_name_normal(ask->name, ask->t.name)) /* refused with the rest */
        (void)snprintf(ask->t.name, sizeof(ask->t.name), "%.*s", TEMPLATE_NAME_SIZE - 1, ask->name);
    (void)snprintf(ask->t.owner, sizeof(ask->t.owner), "%s", req->owner);
    if (!ask->t.spec.image && !(ask->t.spec.image = strdup("base")))
        return err_set(err, ENOMEM, "cannot allocate a template");
    ask->t.spec.template = strdup(ask->t.name);
    return ask->t.spec.template ? 0 : err_set(err, ENOMEM, "cannot allocate a template");
}

/* ---- out ---- */

static void put_words(struct jout *j, const char *key, char *const *words)
{
    if (!words) {
        jout_null(j, key);
        return;
    }
    jout_open(j, key, '[');
    for (; *words; words++)
        jout_str(j, NULL, *words);
    jout_close(j, ']');
}

static void put_ready(struct jout *j, const struct boot *b)
{
    if (b->ready == READY_AT_ONCE) {
        jout_null(j, "ready");
        return;
    }
    jout_open(j, "ready", '{');
    if (b->ready == READY_COMMAND)
        put_words(j, "command", b->ready_argv);
    if (b->ready == READY_PORT)
        jout_uint(j, "port", b->port);
    if (b->ready == READY_HTTP) {
        jout_open(j, "http", '{');
        jout_uint(j, "port", b->port);
        jout_str(j, "path", b->path);
        jout_uint(j, "status", b->status);
        jout_close(j, '}');
    }
    jout_close(j, '}');
}

static void put_template(struct jout *j, const struct template *t)
{
    const struct sandbox_spec *s = &t->spec;
    jout_open(j, NULL, '{');
    jout_str(j, "name", t->as);
    jout_str(j, "team", t->owner);
    jout_bool(j, "public", t->public);
    jout_str(j, "image", s->image);
    put_words(j, "start_command", s->boot.argv);
    put_ready(j, &s->boot);
    jout_thousandths(j, "ready_timeout_s", (uint64_t)s->boot.timeout_ms);
    put_pairs(j, "env", &s->env);
    jout_open(j, "ports", '[');
    for (size_t i = 0; i < t->n_ports; i++)
        jout_uint(j, NULL, t->ports[i]);
    jout_close(j, ']');
    native_put_network(j, s);
    native_put_bindings(j, s);
    native_put_network_limits(j, s);
    native_put_autosave(j, s);
    if (s->freeze_after_ms)
        jout_thousandths(j, "freeze_after_s", (uint64_t)s->freeze_after_ms);
    else
        jout_null(j, "freeze_after_s");
    jout_str(j, "preview", native_previews[s->preview]);
    jout_str(j, "wake", native_wakes[s->wake]);
    jout_str(j, "user", s->user);
    jout_str(j, "workdir", s->workdir);
    jout_thousandths(j, "cpus", s->cpu_millis);
    jout_uint(j, "memory_mb", s->memory_bytes / MIB);
    jout_uint(j, "disk_mb", s->disk_bytes / MIB);
    jout_uint(j, "pids", s->pids);
    jout_uint(j, "nofile", s->nofile);
    jout_uint(j, "warm", t->warm);
    jout_uint(j, "ready_sandboxes", t->ready);
    jout_bool(j, "memory_kept", t->kept);
    jout_time(j, "created_at", t->created_ms);
    jout_time(j, "updated_at", t->updated_ms);
    jout_close(j, '}');
}

static int reply_template(struct request *req, unsigned status, const struct template *t)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    put_template(&j, t);
    return reply_json(req, status, &j);
}

/* ---- requests ---- */

int native_template_put(struct request *req, struct err *err)
{
    _cleanup_(template_done) struct template made = { 0 };
    struct ask ask = { 0 };
    sandbox_spec_init(&ask.t.spec);
    ask.t.spec.boot.timeout_ms = BOOT_TIMEOUT_MS;
    int r = read_ask(req, &ask, err);
    if (r >= 0)
        r = template_put(req->core, &ask.t, &made, err);
    template_done(&ask.t);
    free(ask.name);
    return r < 0 ? r : reply_template(req, 201, &made);
}

int native_template_list(struct request *req, struct err *err)
{
    _cleanup_(page_done) struct page page = { 0 };
    struct template *list = NULL;
    size_t n = 0;
    int r = page_read(req, NULL, &page, err);
    if (r >= 0)
        r = template_list(req->core, req->owner, &list, &n, err);
    if (r < 0)
        return r;
    page_open(&page, "templates");
    for (size_t i = 0; i < n; i++)
        if (page_takes(&page, list[i].as))
            put_template(&page.json, &list[i]);
    template_list_free(list, n);
    return page_reply(req, &page);
}

int native_template_get(struct request *req, struct err *err)
{
    _cleanup_(template_done) struct template t = { 0 };
    int r = template_get(req->core, req->owner, req->args[0], &t, err);
    return r < 0 ? r : reply_template(req, 200, &t);
}

int native_template_delete(struct request *req, struct err *err)
{
    int r = template_remove(req->core, req->owner, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}

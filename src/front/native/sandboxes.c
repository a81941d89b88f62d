#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/spec.h"
#include "core/template.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "wire/keeper.h"

#define MIB (1024u * 1024)
#define TIMEOUT_MAX_S (10.0 * 366 * 86400) /* ten years */
#define LIST_LIMIT 100
#define LIST_LIMIT_MAX 1000
#define FATE_MS 500
#define FATE_POLL_MS 5

static const char *const ends[] = { [END_DELETE] = "delete", [END_STOP] = "stop", NULL };

#define ROW(member_, name_, ...) FIELD(struct sandbox_spec, member_, name_, __VA_ARGS__)
static const struct field create_fields[] = {
    ROW(template, "template", as_text, .max = TEMPLATE_NAME_SIZE - 1, .null_ok = true),
    ROW(image, "image", as_text, .max = 128),
    ROW(name, "name", as_text, .max = NAME_MAX_LEN, .null_ok = true),
    ROW(cpu_millis, "cpus", as_thousandths, .min = 0.05, .max = 4096),
    ROW(memory_bytes, "memory_mb", as_mib, .min = 16, .max = 1048576),
    ROW(disk_bytes, "disk_mb", as_mib, .min = 16, .max = 16777216),
    ROW(pids, "pids", as_u32, .min = 4, .max = 32768),
    ROW(nofile, "nofile", as_u32, .min = 16, .max = 1048576),
    ROW(env, "env", as_env),
    ROW(metadata, "metadata", as_pairs),
    ROW(user, "user", as_text, .max = 256, .null_ok = true),
    ROW(workdir, "workdir", as_text, .max = 4096, .null_ok = true),
    ROW(timeout_ms, "timeout_s", as_seconds, .max = TIMEOUT_MAX_S, .null_ok = true),
    ROW(on_timeout, "on_timeout", as_choice, .choices = ends),
    ROW(idle_timeout_ms, "idle_timeout_s", as_seconds, .max = TIMEOUT_MAX_S, .null_ok = true),
    ROW(on_idle, "on_idle", as_choice, .choices = ends),
    ROW(mounts, "volumes", native_as_mounts),
    ROW(network, "network", native_as_network),
};

/* Rows of the same table that PATCH takes, and what each of them changes. */
static const struct {
    const char *name;
    unsigned change;
} changes[] = {
    { "name", CHANGE_NAME },
    { "cpus", CHANGE_LIMITS },
    { "memory_mb", CHANGE_LIMITS },
    { "disk_mb", CHANGE_LIMITS },
    { "pids", CHANGE_LIMITS },
    { "env", CHANGE_ENV },
    { "metadata", CHANGE_METADATA },
    { "timeout_s", CHANGE_TIMEOUT },
    { "on_timeout", CHANGE_ON_TIMEOUT },
    { "idle_timeout_s", CHANGE_IDLE },
    { "on_idle", CHANGE_ON_IDLE },
    { "network", CHANGE_NETWORK },
};

static void put_pairs(struct jout *j, const char *key, const struct pairs *p)
{
    jout_open(j, key, '{');
    for (size_t i = 0; i < p->n; i++)
        jout_member(j, p->names[i], p->values[i]);
    jout_close(j, '}');
}

static void put_seconds(struct jout *j, const char *key, int64_t ms)
{
    if (ms > 0)
        jout_thousandths(j, key, (uint64_t)ms);
    else
        jout_null(j, key);
}

static void put_sandbox(struct jout *j, const char *key, const struct sandbox *s)
{
    const struct sandbox_spec *p = &s->spec;

    jout_open(j, key, '{');
    jout_str(j, "id", s->id);
    jout_str(j, "name", p->name);
    jout_str(j, "state", sandbox_state_name(s->state));
    jout_str(j, "stop_cause", s->cause == CAUSE_NONE ? NULL : sandbox_cause_name(s->cause));
    jout_str(j, "image", p->image);
    jout_str(j, "template", p->template);
    jout_thousandths(j, "cpus", p->cpu_millis);
    jout_uint(j, "memory_mb", p->memory_bytes / MIB);
    jout_uint(j, "disk_mb", p->disk_bytes / MIB);
    jout_uint(j, "pids", p->pids);
    jout_uint(j, "nofile", p->nofile);
    put_pairs(j, "env", &p->env);
    put_pairs(j, "metadata", &p->metadata);
    jout_str(j, "user", p->user ? p->user : "root");
    jout_str(j, "workdir", p->workdir);
    put_seconds(j, "timeout_s", p->timeout_ms);
    jout_str(j, "on_timeout", ends[p->on_timeout]);
    put_seconds(j, "idle_timeout_s", p->idle_timeout_ms);
    jout_str(j, "on_idle", ends[p->on_idle]);
    native_put_mounts(j, p);
    native_put_network(j, p);
    jout_time(j, "created_at", s->created_ms);
    jout_time(j, "started_at", s->started_ms);
    jout_time(j, "stopped_at", s->stopped_ms);
    jout_time(j, "expires_at", s->expires_ms);
    jout_time(j, "last_active_at", s->last_active_ms);
    jout_close(j, '}');
}

static int reply_sandbox(struct request *req, unsigned status, const struct sandbox *s)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    char version[SANDBOX_VERSION_SIZE];
    put_sandbox(&j, NULL, s);
    if (sandbox_version(s, version) >= 0)
        reply_header(req, "ETag", "\"%s\"", version);
    return reply_json(req, status, &j);
}

/* The versions that If-Match names, with spaces between; NULL in *ret_versions: any will do. A
 * weak one never matches. */
static int read_match(const struct request *req, char **ret_versions, struct err *err)
{
    const char *p = request_header(req, "If-Match");
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    int r = buf_puts(&b, " ");
    *ret_versions = NULL;
    if (!p || strcmp(p, "*") == 0)
        return 0;
    while (r >= 0 && *(p += strspn(p, ", \t"))) {
        bool weak = strncmp(p, "W/", 2) == 0;
        p += weak ? 2 : 0;
        size_t n = *p == '"' ? strcspn(p + 1, "\"") : 0;
        if (*p != '"' || p[1 + n] != '"')
            return err_name(err, EINVAL, "invalid_request",
                            "If-Match must be *, or tags as an ETag header gave them");
        if (!weak && !memchr(p + 1, ' ', n))
            r = buf_printf(&b, "%.*s ", (int)n, p + 1);
        p += n + 2;
    }
    if (r < 0)
        return err_name(err, EINVAL, "invalid_request", "If-Match is too long");
    *ret_versions = buf_steal(&b);
    return 0;
}

void native_put_gone(struct jout *j, const void *sandbox)
{
    const struct sandbox *s = sandbox;
    jout_str(j, "cause", sandbox_cause_name(s->cause));
    jout_time(j, "ended_at", s->ended_ms);
}

static bool is(const struct err *err, const char *what)
{
    return err->what && strcmp(err->what, what) == 0;
}

bool native_sandbox_fate(struct core *core, const char *owner, const char *who,
                         struct sandbox *ret_s, struct err *err)
{
    if (!is(err, "sandbox_gone") && !is(err, "sandbox_not_running"))
        return false;
    /* Its processes die a moment before the record of its end is written. */
    int64_t deadline = err->code == ECONNRESET ? clock_mono_ms() + FATE_MS : 0;
    for (;;) {
        struct err why = ERR_INIT;
        int r = sandbox_get(core, owner, who, ret_s, &why);
        if (r < 0 && is(&why, "sandbox_gone")) {
            *err = why;
            return true;
        }
        if (r >= 0 && ret_s->state == SANDBOX_STOPPED && ret_s->cause != CAUSE_NONE)
            (void)err_name(err, ENOTCONN, "sandbox_not_running", "sandbox '%s' is stopped: %s",
                           ret_s->id, sandbox_cause_name(ret_s->cause));
        if (r < 0 || ret_s->state == SANDBOX_STOPPED || clock_mono_ms() >= deadline)
            return false;
        sandbox_done(ret_s);
        (void)poll(NULL, 0, FATE_POLL_MS);
    }
}

int native_sandbox_error(struct request *req, int r, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    if (r >= 0 || !native_sandbox_fate(req->core, req->owner, req->args[0], &s, err))
        return r;
    return reply_error(req, err, native_put_gone, &s);
}

static int check_cpus(uint32_t cpu_millis, struct err *err)
{
    long host = sysconf(_SC_NPROCESSORS_ONLN);
    if (host > 0 && cpu_millis > (uint64_t)host * 4000)
        return err_name(err, EINVAL, "invalid_field",
                        "'cpus' must be at most %ld, four times what this host has", host * 4);
    return 0;
}

static int check_name(const char *name, struct err *err)
{
    if (name && !name_valid(name))
        return err_name(err, EINVAL, "invalid_field",
                        "'name' must be letters, digits, '.', '_' and '-', at most %d, "
                        "the first a letter or digit",
                        NAME_MAX_LEN);
    /* A name of an id's shape could stand for another sandbox. */
    if (name && id_valid(name))
        return err_name(err, EINVAL, "invalid_field", "'name' has the shape of an id");
    return 0;
}

static int check_workdir(const char *workdir, struct err *err)
{
    if (workdir && workdir[0] != '/')
        return err_name(err, EINVAL, "invalid_field", "'workdir' must be an absolute path");
    return 0;
}

static int changes_of(uint32_t seen, unsigned *ret_changes, struct err *err)
{
    unsigned all = 0;
    for (size_t i = 0; i < ARRAY_LEN(create_fields); i++) {
        if (!(seen & UINT32_C(1) << i))
            continue;
        size_t k = 0;
        while (k < ARRAY_LEN(changes) && strcmp(changes[k].name, create_fields[i].name) != 0)
            k++;
        if (k == ARRAY_LEN(changes))
            return err_name(err, EINVAL, "invalid_field", "'%s' cannot be changed after creation",
                            create_fields[i].name);
        all |= changes[k].change;
    }
    *ret_changes = all;
    return 0;
}

int native_spec_read(struct request *req, struct sandbox_spec *spec, unsigned *ret_changes,
                     struct err *err)
{
    _cleanup_(template_done) struct template t = { 0 };
    _cleanup_json_ json_t *ask = NULL;
    uint32_t seen = 0;

    int r = request_json(req, &ask, err);
    const char *template = json_string_value(json_object_get(ask, "template"));
    if (r >= 0 && template && !ret_changes)
        r = template_begin(req->core, req->owner, template, &t, spec, err);
    if (r >= 0)
        r = fields_decode(ask, create_fields, ARRAY_LEN(create_fields), spec, &seen, err);
    if (r >= 0 && t.id[0])
        template_settle(&t, spec);
    if (r >= 0 && ret_changes)
        r = changes_of(seen, ret_changes, err);
    if (r >= 0)
        r = check_cpus(spec->cpu_millis, err);
    if (r >= 0)
        r = check_name(spec->name, err);
    if (r >= 0)
        r = check_workdir(spec->workdir, err);
    return r;
}

/* An earlier try of this request made it, and the daemon died before it could say so. */
static int reply_made(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_get(req->core, req->owner, req->made + strlen("sandbox "), &s, err);
    if (r < 0 && is(err, "sandbox_gone"))
        return reply_error(req, err, native_put_gone, &s);
    return r < 0 ? r : reply_sandbox(req, 201, &s);
}

int native_sandbox_create(struct request *req, struct err *err)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec;
    _cleanup_(sandbox_done) struct sandbox s = { 0 };

    sandbox_spec_init(&spec);
    if (req->made[0])
        return reply_made(req, err);
    int r = native_spec_read(req, &spec, NULL, err);
    if (r >= 0)
        r = sandbox_create(req->core, req->owner, &spec, &s, err);
    if (r < 0)
        return r;
    return reply_sandbox(req, 201, &s);
}

int native_sandbox_get(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };

    int r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r < 0 && is(err, "sandbox_gone"))
        return reply_error(req, err, native_put_gone, &s);
    return r < 0 ? r : reply_sandbox(req, 200, &s);
}

int native_sandbox_update(struct request *req, struct err *err)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec = { 0 };
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    unsigned what = 0;

    _cleanup_free_ char *versions = NULL;

    int r = native_spec_read(req, &spec, &what, err);
    if (r >= 0)
        r = read_match(req, &versions, err);
    if (r >= 0)
        r = sandbox_update_if(req->core, req->owner, req->args[0], versions, &spec, what, &s, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_sandbox(req, 200, &s);
}

int native_sandbox_delete(struct request *req, struct err *err)
{
    _cleanup_free_ char *versions = NULL;

    int r = read_match(req, &versions, err);
    if (r >= 0)
        r = sandbox_delete_if(req->core, req->owner, req->args[0], versions, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_empty(req);
}

int native_sandbox_stop(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };

    _cleanup_free_ char *versions = NULL;

    int r = read_match(req, &versions, err);
    if (r >= 0)
        r = sandbox_stop_if(req->core, req->owner, req->args[0], versions, &s, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_sandbox(req, 200, &s);
}

int native_sandbox_start(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };

    _cleanup_free_ char *versions = NULL;

    int r = read_match(req, &versions, err);
    if (r >= 0)
        r = sandbox_start_if(req->core, req->owner, req->args[0], versions, &s, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_sandbox(req, 200, &s);
}

int native_sandbox_usage(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    struct keeper_usage u;

    int r = sandbox_usage(req->core, req->owner, req->args[0], &u, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_uint(&j, "cpu_us", u.cpu_us);
    jout_uint(&j, "memory_bytes", u.memory_bytes);
    jout_uint(&j, "memory_peak_bytes", u.memory_peak_bytes);
    jout_uint(&j, "disk_bytes", u.disk_bytes);
    jout_uint(&j, "pids", u.pids);
    jout_uint(&j, "oom_kills", u.oom_kills);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

/* ---- the list ---- */

static int read_states(const char *text, unsigned *ret_states, struct err *err)
{
    unsigned states = 0;
    while (*text) {
        size_t n = strcspn(text, ",");
        char name[16] = "";
        enum sandbox_state state;
        if (n < sizeof(name))
            memcpy(name, text, n);
        if (sandbox_state_parse(name, &state) < 0 || state == SANDBOX_GONE)
            return err_name(err, EINVAL, "invalid_query",
                            "'state' must be a list of creating, running, stopping, stopped, "
                            "deleting");
        states |= 1u << state;
        text += n;
        text += *text == ',';
    }
    *ret_states = states;
    return 0;
}

static int read_filter(const struct request *req, struct sandbox_filter *f, struct err *err)
{
    static const char *const known[] = { "state", "metadata.*", "name", "order",
                                         "limit", "cursor",     NULL };
    uint64_t limit = LIST_LIMIT;
    const char *text;

    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 1, LIST_LIMIT_MAX, &limit, err);
    if (r >= 0 && (text = uri_param(&req->uri, "state")))
        r = read_states(text, &f->states, err);
    if (r < 0)
        return r;
    f->limit = (unsigned)limit;
    f->name = uri_param(&req->uri, "name");
    f->cursor = uri_param(&req->uri, "cursor");
    text = uri_param(&req->uri, "order");
    if (text && strcmp(text, "asc") != 0 && strcmp(text, "desc") != 0)
        return err_name(err, EINVAL, "invalid_query", "'order' must be asc or desc");
    f->ascending = text && strcmp(text, "asc") == 0;
    for (size_t i = 0; i < req->uri.nparams; i++) {
        const struct uri_param *p = &req->uri.params[i];
        if (strncmp(p->name, "metadata.", 9) != 0)
            continue;
        r = pairs_add(&f->metadata, p->name + 9, p->value);
        if (r < 0)
            return err_set(err, -r, "cannot allocate the filter");
    }
    return 0;
}

int native_sandbox_list(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct sandbox_filter filter = { 0 };
    struct sandbox_list list = { 0 };

    int r = read_filter(req, &filter, err);
    if (r >= 0)
        r = sandbox_list(req->core, req->owner, &filter, &list, err);
    pairs_done(&filter.metadata);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_open(&j, "sandboxes", '[');
    for (size_t i = 0; i < list.n; i++)
        put_sandbox(&j, NULL, &list.items[i]);
    jout_close(&j, ']');
    jout_str(&j, "next_cursor", list.next_cursor);
    jout_close(&j, '}');
    sandbox_list_done(&list);
    return reply_json(req, 200, &j);
}

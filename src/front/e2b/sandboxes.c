/* The control plane's sandboxes: one object in, one core call, one object out. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/template.h"
#include "core/token.h"
#include "front/e2b/e2b.h"
#include "front/e2b/envd.h"
#include "front/e2b/snapshots.h"
#include "front/e2b/templates.h"
#include "front/e2b/volumes.h"

#define USER "user"
#define DAY_MS (24 * 3600 * 1000LL)
#define MIB (1024ull * 1024)

bool e2b_is_open(const struct sandbox *s)
{
    return pairs_get(&s->spec.notes, E2B_OPEN) != NULL;
}

bool e2b_runs(struct core *core, const char *id)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    return sandbox_get(core, NULL, id, &s, NULL) >= 0 && s.state == SANDBOX_RUNNING;
}

/* ---- answers ---- */

bool e2b_is_paused(const struct sandbox *s)
{
    return s->state == SANDBOX_STOPPED || s->state == SANDBOX_PAUSED;
}

void e2b_put_sandbox(struct jout *j, struct request *req, const struct sandbox *s)
{
    char token[TOKEN_SIZE];
    jout_str(j, "sandboxID", s->id);
    jout_str(j, "templateID", e2b_template_of(s));
    jout_str(j, "clientID", "warren");
    jout_str(j, "envdVersion", ENVD_VERSION);
    if (!e2b_is_open(s)) {
        token_for(req->core, ENVD_TOKEN, s->id, token);
        jout_str(j, "envdAccessToken", token);
    }
    e2b_put_traffic(j, req, s);
}

int e2b_reply_sandbox(struct request *req, unsigned status, const struct sandbox *s)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024);
    struct jout j = JOUT_INIT(&b);
    jout_open(&j, NULL, '{');
    e2b_put_sandbox(&j, req, s);
    jout_close(&j, '}');
    return reply_json(req, status, &j);
}

void e2b_put_listed(struct jout *j, const struct sandbox *s)
{
    jout_str(j, "sandboxID", s->id);
    jout_str(j, "templateID", e2b_template_of(s));
    jout_str(j, "alias", e2b_template_of(s));
    jout_str(j, "clientID", "warren");
    jout_time(j, "startedAt", s->started_ms);
    /* The SDKs want a moment; what has no end ends a year from now. */
    jout_time(j, "endAt", s->expires_ms ? s->expires_ms : clock_now_ms() + 365 * DAY_MS);
    jout_str(j, "state", e2b_is_paused(s) ? "paused" : "running");
    jout_uint(j, "cpuCount", (s->spec.cpu_millis + 999) / 1000);
    jout_uint(j, "memoryMB", s->spec.memory_bytes / MIB);
    jout_uint(j, "diskSizeMB", s->spec.disk_bytes / MIB);
    jout_str(j, "envdVersion", ENVD_VERSION);
    jout_open(j, "metadata", '{');
    for (size_t i = 0; i < s->spec.metadata.n; i++)
        if (strncmp(s->spec.metadata.names[i], E2B_PRIVATE_PREFIX, strlen(E2B_PRIVATE_PREFIX)) != 0)
            jout_member(j, s->spec.metadata.names[i], s->spec.metadata.values[i]);
    jout_close(j, '}');
    e2b_put_mounts(j, &s->spec);
}

static int not_found(struct err *err, const char *id)
{
    return err_fail(err, FAIL_SANDBOX_NOT_FOUND,
                    "Sandbox \"%.64s\" doesn't exist or you don't have access to it", id);
}

int e2b_failed(struct err *err, int r, const char *id)
{
    return r == -ENOENT ? not_found(err, id) : r;
}

/* ---- creating ---- */

static int read_texts(const json_t *object, const char *member, struct pairs *out, struct err *err)
{
    const json_t *v = json_object_get(object, member);
    const char *name;
    json_t *value;
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_object(v))
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be an object", member);
    json_object_foreach((json_t *)(uintptr_t)v, name, value) {
        if (!json_is_string(value))
            return err_fail(err, FAIL_INVALID_FIELD, "'%s.%.64s' must be text", member, name);
        if (strncmp(name, E2B_PRIVATE_PREFIX, strlen(E2B_PRIVATE_PREFIX)) == 0)
            return err_fail(err, FAIL_INVALID_FIELD, "'%s.%.64s': names must not begin with '%s'",
                            member, name, E2B_PRIVATE_PREFIX);
        if (pairs_add(out, name, json_string_value(value)) < 0)
            return err_set(err, ENOMEM, "cannot allocate a sandbox");
    }
    return 0;
}

int e2b_read_seconds(const json_t *object, const char *member, int64_t *ret_s, struct err *err)
{
    const json_t *v = json_object_get(object, member);
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_integer(v))
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be a whole number", member);
    *ret_s = json_integer_value(v);
    return 1;
}

static int refuse_missing_parts(const json_t *object, struct err *err)
{
    /* It needs a part that this server does not have: told, never pretended. Of 'mcp' there is nothing
     * to do here: the client itself starts the gateway, where the template has one. */
    if (!e2b_is_empty(json_object_get(object, "iam")))
        return err_fail(err, FAIL_NOT_SUPPORTED, "'iam' is not supported by this server");
    return 0;
}

/* What becomes of it when its time is over, and when it is touched after that. */
static int read_lifecycle(const json_t *object, struct sandbox_spec *spec, struct err *err)
{
    bool pauses = json_is_true(json_object_get(object, "autoPause"));
    bool memory = !json_is_false(json_object_get(object, "autoPauseMemory"));
    bool wakes = json_is_true(json_object_get(json_object_get(object, "autoResume"), "enabled"));
    if (!memory && !pauses)
        return err_fail(err, FAIL_INVALID_FIELD, "autoPauseMemory needs autoPause");
    if (!memory && wakes)
        return err_fail(err, FAIL_INVALID_FIELD,
                        "autoResume needs the memory: autoPauseMemory must not be false");
    spec->on_timeout = !pauses ? END_DELETE : memory ? END_PAUSE : END_STOP;
    spec->wake = wakes ? WAKE_ALWAYS : WAKE_NEVER;
    return 0;
}

/* A template of that name and tag; else an image of that name, with the user that these clients
 * expect. */
static int find_template(struct request *req, const char *asked, struct template *t,
                         struct sandbox_spec *spec, struct err *err)
{
    struct err none = ERR_INIT;
    asked = e2b_known_name(req, asked);
    if (template_begin(req->core, req->owner, asked, t, spec, &none) >= 0)
        return 0;
    spec->image = strdup(asked);
    spec->user = strdup(USER);
    return spec->image && spec->user ? 0 : err_set(err, ENOMEM, "cannot allocate a sandbox");
}

static int read_spec(struct request *req, const json_t *object, int64_t timeout_s,
                     struct sandbox_spec *spec, struct err *err)
{
    _cleanup_(template_done) struct template t = { 0 };
    const char *asked = json_string_value(json_object_get(object, "templateID"));
    if (!asked || !*asked)
        return err_fail(err, FAIL_MISSING_FIELD, "templateID is required");
    int r = find_template(req, asked, &t, spec, err);
    if (r >= 0)
        r = read_texts(object, "metadata", &spec->metadata, err);
    if (r >= 0)
        r = read_texts(object, "envVars", &spec->env, err);
    if (r >= 0)
        r = e2b_read_mounts(object, spec, err);
    if (r >= 0)
        r = e2b_read_seconds(object, "timeout", &timeout_s, err);
    if (r < 0)
        return r;
    if (timeout_s <= 0)
        return err_fail(err, FAIL_INVALID_FIELD, "Timeout must be greater than 0");
    spec->timeout_ms = timeout_s * 1000;
    r = read_lifecycle(object, spec, err);
    if (r >= 0)
        r = e2b_read_traffic(json_object_get(object, "network"), spec, err);
    if (r >= 0)
        r = e2b_read_network(object, spec, err);
    if (r < 0)
        return r;
    if (t.id[0])
        template_settle(&t, spec);
    return refuse_missing_parts(object, err);
}

/* An earlier request of the same Idempotency-Key made it. */
static int reply_made(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    const char *id = req->made + strlen("sandbox ");
    int r = sandbox_get(req->core, req->owner, id, &s, err);
    return r < 0 ? e2b_failed(err, r, id) : e2b_reply_sandbox(req, 201, &s);
}

static int create(struct request *req, int64_t timeout_s, bool may_be_open, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec;
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_(checkpoint_done) struct checkpoint from = { 0 };

    sandbox_spec_init(&spec);
    if (req->made[0])
        return reply_made(req, err);
    int r = request_json(req, &object, err);
    if (r >= 0)
        r = read_spec(req, object, timeout_s, &spec, err);
    if (r >= 0 && may_be_open && !json_is_true(json_object_get(object, "secure")))
        r = pairs_add(&spec.notes, E2B_OPEN, "1");
    bool snapshot = r >= 0 && !spec.template && e2b_snapshot_find(req, spec.image, &from) >= 0;
    if (r >= 0)
        r = e2b_no_secret(err, snapshot ? e2b_snapshot_start(req, &from, &spec, &s, err)
                                        : sandbox_create(req->core, req->owner, &spec, &s, err));
    if (r < 0 && err->failure == FAIL_IMAGE_NOT_FOUND)
        return err_fail(err, FAIL_IMAGE_NOT_FOUND, "template '%.64s' not found%s", spec.image,
                        image_cure(spec.image));
    return r < 0 ? r : e2b_reply_sandbox(req, 201, &s);
}

int e2b_sandbox_create(struct request *req, struct err *err)
{
    return create(req, TIMEOUT_V2_S, false, err);
}

int e2b_sandbox_create_v1(struct request *req, struct err *err)
{
    return create(req, TIMEOUT_V1_S, true, err);
}

/* ---- one ---- */

int e2b_sandbox_get(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    char token[TOKEN_SIZE];

    int r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r < 0)
        return e2b_failed(err, r, req->args[0]);
    jout_open(&j, NULL, '{');
    e2b_put_listed(&j, &s);
    if (!e2b_is_open(&s)) {
        token_for(req->core, ENVD_TOKEN, s.id, token);
        jout_str(&j, "envdAccessToken", token);
    }
    e2b_put_traffic(&j, req, &s);
    e2b_put_network(&j, &s);
    jout_open(&j, "lifecycle", '{');
    jout_str(&j, "onTimeout", s.spec.on_timeout == END_DELETE ? "kill" : "pause");
    jout_bool(&j, "autoResume", e2b_wakes(&s));
    jout_close(&j, '}');
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int e2b_health(struct request *req, struct err *err)
{
    const char *id = request_header(req, "E2b-Sandbox-Id");
    if (id && !id_valid(id))
        return err_fail(err, FAIL_INVALID_REQUEST, "Invalid sandbox ID");
    if (id && !e2b_runs(req->core, id))
        return err_set(err, ENOTCONN, "The sandbox was not found");
    return reply_empty(req);
}

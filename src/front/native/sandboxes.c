#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "front/http/fields.h"
#include "front/native/native.h"

#define MIB (1024u * 1024)
#define FATE_MS 500
#define FATE_POLL_MS 5

static void put_seconds(struct jout *j, const char *key, int64_t ms)
{
    if (ms > 0)
        jout_thousandths(j, key, (uint64_t)ms);
    else
        jout_null(j, key);
}

void native_put_sandbox(struct jout *j, const char *key, const struct sandbox *s)
{
    const struct sandbox_spec *p = &s->spec;

    jout_open(j, key, '{');
    jout_str(j, "id", s->id);
    jout_str(j, "name", p->name);
    jout_str(j, "state", sandbox_state_name(sandbox_shown(s)));
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
    jout_str(j, "on_timeout", sandbox_ends[p->on_timeout]);
    put_seconds(j, "idle_timeout_s", p->idle_timeout_ms);
    jout_str(j, "on_idle", sandbox_ends[p->on_idle]);
    put_seconds(j, "freeze_after_s", p->freeze_after_ms);
    native_put_autosave(j, p);
    native_put_mounts(j, p);
    native_put_network(j, p);
    native_put_bindings(j, p);
    native_put_network_limits(j, p);
    jout_str(j, "preview", native_previews[p->preview]);
    jout_str(j, "wake", native_wakes[p->wake]);
    jout_str(j, "restart", native_restarts[p->restart]);
    jout_str(j, "checkpoint", p->checkpoint[0] ? p->checkpoint : NULL);
    jout_str(j, "forked_from", p->origin[0] ? p->origin : NULL);
    jout_time(j, "created_at", s->created_ms);
    jout_time(j, "started_at", s->started_ms);
    jout_time(j, "stopped_at", s->stopped_ms);
    jout_time(j, "expires_at", s->expires_ms);
    jout_time(j, "last_active_at", s->last_active_ms);
    jout_time(j, "frozen_at", s->frozen_ms);
    jout_time(j, "awake_until", s->leased_ms > clock_now_ms() ? s->leased_ms : 0);
    jout_close(j, '}');
}

int native_reply_sandbox(struct request *req, unsigned status, const struct sandbox *s)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    char version[SANDBOX_VERSION_SIZE];
    native_put_sandbox(&j, NULL, s);
    if (sandbox_version(s, version) >= 0)
        reply_header(req, "ETag", "\"%s\"", version);
    return reply_json(req, status, &j);
}

/* The versions that If-Match names, with spaces between; NULL in *ret_versions: any will do. A
 * weak one never matches. */
int native_read_match(const struct request *req, char **ret_versions, struct err *err)
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
            return err_fail(err, FAIL_INVALID_REQUEST,
                            "If-Match must be *, or tags as an ETag header gave them");
        if (!weak && !memchr(p + 1, ' ', n))
            r = buf_printf(&b, "%.*s ", (int)n, p + 1);
        p += n + 2;
    }
    if (r < 0)
        return err_fail(err, FAIL_INVALID_REQUEST, "If-Match is too long");
    *ret_versions = buf_steal(&b);
    return 0;
}

void native_put_gone(struct jout *j, const void *sandbox)
{
    const struct sandbox *s = sandbox;
    jout_str(j, "cause", sandbox_cause_name(s->cause));
    jout_time(j, "ended_at", s->ended_ms);
}

bool native_sandbox_fate(struct core *core, const char *owner, const char *who,
                         struct sandbox *ret_s, struct err *err)
{
    if (err->failure != FAIL_SANDBOX_GONE && err->failure != FAIL_SANDBOX_NOT_RUNNING)
        return false;
    /* Its processes die a moment before the record of its end is written. */
    int64_t deadline = err->code == ECONNRESET ? clock_mono_ms() + FATE_MS : 0;
    for (;;) {
        struct err why = ERR_INIT;
        int r = sandbox_get(core, owner, who, ret_s, &why);
        bool asked = ret_s->cause == CAUSE_STOPPED; /* which says no more than the state does */
        if (r < 0 && why.failure == FAIL_SANDBOX_GONE) {
            *err = why;
            return true;
        }
        if (r >= 0 && ret_s->state == SANDBOX_PAUSED && err->code == ECONNRESET)
            (void)err_fail_as(
                err, ENOTCONN, FAIL_SANDBOX_NOT_RUNNING,
                "sandbox '%s' was paused; its processes go on when it is resumed: attach "
                "to them again then",
                ret_s->id);
        else if (r >= 0 && sandbox_shown(ret_s) == SANDBOX_ARCHIVED)
            (void)err_fail_as(
                err, ENOTCONN, FAIL_SANDBOX_NOT_RUNNING,
                "sandbox '%s' is archived; `warren start` fetches its files and runs it",
                ret_s->id);
        else if (r >= 0 && ret_s->state == SANDBOX_STOPPED && ret_s->cause != CAUSE_NONE)
            (void)err_fail_as(err, ENOTCONN, FAIL_SANDBOX_NOT_RUNNING,
                              "sandbox '%s' is stopped%s%s%s; `warren start` runs it again",
                              ret_s->id, asked ? "" : " (",
                              asked ? "" : sandbox_cause_name(ret_s->cause), asked ? "" : ")");
        if (r < 0 || ret_s->state == SANDBOX_STOPPED || ret_s->state == SANDBOX_PAUSED ||
            clock_mono_ms() >= deadline)
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
    return native_reply_error(req, err, native_put_gone, &s);
}

/* An earlier try of this request made it, and the daemon died before it could say so. */
static int reply_made(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_get(req->core, req->owner, req->made + strlen("sandbox "), &s, err);
    if (r < 0 && err->failure == FAIL_SANDBOX_GONE)
        return native_reply_error(req, err, native_put_gone, &s);
    return r < 0 ? r : native_reply_sandbox(req, 201, &s);
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
    return native_reply_sandbox(req, 201, &s);
}

int native_sandbox_get(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };

    int r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r < 0 && err->failure == FAIL_SANDBOX_GONE)
        return native_reply_error(req, err, native_put_gone, &s);
    return r < 0 ? r : native_reply_sandbox(req, 200, &s);
}

int native_sandbox_update(struct request *req, struct err *err)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec = { 0 };
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    unsigned what = 0;

    _cleanup_free_ char *versions = NULL;
    static const char *const known[] = { "cut", NULL };
    bool cut = false;

    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_bool(req, "cut", &cut, err);
    if (r >= 0)
        r = native_spec_read(req, &spec, &what, err);
    if (r >= 0)
        r = native_read_match(req, &versions, err);
    what |= cut ? CHANGE_CUT : 0u;
    if (r >= 0)
        r = sandbox_update_if(req->core, req->owner, req->args[0], versions, &spec, what, &s, err);
    return r < 0 ? native_sandbox_error(req, r, err) : native_reply_sandbox(req, 200, &s);
}

int native_sandbox_delete(struct request *req, struct err *err)
{
    _cleanup_free_ char *versions = NULL;

    int r = native_read_match(req, &versions, err);
    if (r >= 0)
        r = sandbox_delete_if(req->core, req->owner, req->args[0], versions, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_empty(req);
}

int native_sandbox_stop(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };

    _cleanup_free_ char *versions = NULL;

    int r = native_read_match(req, &versions, err);
    if (r >= 0)
        r = sandbox_stop_if(req->core, req->owner, req->args[0], versions, &s, err);
    return r < 0 ? native_sandbox_error(req, r, err) : native_reply_sandbox(req, 200, &s);
}

int native_sandbox_start(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };

    _cleanup_free_ char *versions = NULL;

    int r = native_read_match(req, &versions, err);
    if (r >= 0)
        r = sandbox_start_if(req->core, req->owner, req->args[0], versions, &s, err);
    return r < 0 ? native_sandbox_error(req, r, err) : native_reply_sandbox(req, 200, &s);
}

int native_sandbox_usage(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    struct sandbox_usage u;

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

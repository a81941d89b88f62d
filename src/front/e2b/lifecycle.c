/* A sandbox's life: how long, paused and resumed, its end. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/token.h"
#include "front/e2b/e2b.h"
#include "front/e2b/envd.h"
#include "front/e2b/signature.h"

int e2b_sandbox_kill(struct request *req, struct err *err)
{
    int r = sandbox_delete(req->core, req->owner, req->args[0], err);
    return r < 0 ? e2b_failed(err, r, req->args[0]) : reply_empty(req);
}

static int set_timeout(struct request *req, int64_t seconds, struct sandbox *ret_s, struct err *err)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    spec.timeout_ms = seconds > 0 ? seconds * 1000 : 1;
    int r = sandbox_update(req->core, req->owner, req->args[0], &spec, CHANGE_TIMEOUT, ret_s, err);
    return r < 0 ? e2b_failed(err, r, req->args[0]) : 0;
}

/* Older clients resume one only when its time cannot be set. */
static int refuse_paused(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r < 0)
        return e2b_failed(err, r, req->args[0]);
    return e2b_is_paused(&s) ? err_fail(err, FAIL_SANDBOX_NOT_FOUND,
                                        "Sandbox \"%s\" is paused; resume it first", s.id)
                             : 0;
}

int e2b_sandbox_timeout(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int64_t seconds = 0;
    int r = request_json(req, &object, err);
    if (r >= 0)
        r = e2b_read_seconds(object, "timeout", &seconds, err);
    if (r == 0)
        r = err_fail(err, FAIL_MISSING_FIELD, "timeout is required");
    if (r >= 0)
        r = refuse_paused(req, err);
    if (r >= 0)
        r = set_timeout(req, seconds, &s, err);
    return r < 0 ? r : reply_empty(req);
}

/* Longer, never shorter. */
static int extend(struct request *req, const struct sandbox *s, int64_t seconds,
                  struct sandbox *ret_s, struct err *err)
{
    if (s->expires_ms == 0 || s->expires_ms >= clock_now_ms() + seconds * 1000)
        return sandbox_get(req->core, req->owner, s->id, ret_s, err);
    return set_timeout(req, seconds, ret_s, err);
}

int e2b_read_optional(struct request *req, json_t **ret_object, struct err *err)
{
    if (req->body.len == 0) {
        *ret_object = json_object();
        return *ret_object ? 0 : err_set(err, ENOMEM, "cannot allocate an object");
    }
    return request_json(req, ret_object, err);
}

int e2b_sandbox_refresh(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_(sandbox_done) struct sandbox after = { 0 };
    int64_t seconds = TIMEOUT_V1_S;
    int r = e2b_read_optional(req, &object, err);
    if (r >= 0)
        r = e2b_read_seconds(object, "duration", &seconds, err);
    if (r >= 0 && (seconds < 0 || seconds > 3600))
        r = err_fail(err, FAIL_INVALID_FIELD, "duration must be 0 to 3600");
    if (r >= 0) {
        r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
        if (r < 0)
            return e2b_failed(err, r, req->args[0]);
        r = extend(req, &s, seconds, &after, err);
    }
    return r < 0 ? r : reply_empty(req);
}

/* It runs again, and lives this long from now. */
static int start(struct request *req, int64_t seconds, bool memory, struct sandbox *ret_s,
                 struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_resume(req->core, req->owner, req->args[0], memory, &s, err);
    return r < 0 ? e2b_failed(err, r, req->args[0]) : set_timeout(req, seconds, ret_s, err);
}

/* How long it is to live from now on, unless the body is silent of it; whether with the processes it
 * had; and the sandbox. */
static int read_resume(struct request *req, int64_t *seconds, bool *ret_memory,
                       struct sandbox *ret_s, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    int r = e2b_read_optional(req, &object, err);
    if (r >= 0)
        r = e2b_read_seconds(object, "timeout", seconds, err);
    if (r < 0)
        return r;
    *ret_memory = !json_is_false(json_object_get(object, "memory"));
    r = sandbox_get(req->core, req->owner, req->args[0], ret_s, err);
    return r < 0 ? e2b_failed(err, r, req->args[0]) : 0;
}

int e2b_sandbox_connect(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_(sandbox_done) struct sandbox after = { 0 };
    int64_t seconds = TIMEOUT_V2_S;
    bool memory = true;
    int r = read_resume(req, &seconds, &memory, &s, err);
    if (r < 0)
        return r;
    bool resumed = e2b_is_paused(&s) || s.state == SANDBOX_PAUSING;
    r = resumed ? start(req, seconds, memory, &after, err) : extend(req, &s, seconds, &after, err);
    return r < 0 ? r : e2b_reply_sandbox(req, resumed ? 201 : 200, &after);
}

int e2b_sandbox_pause(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = e2b_read_optional(req, &object, err);
    if (r < 0)
        return r;
    r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r < 0)
        return e2b_failed(err, r, req->args[0]);
    if (e2b_is_paused(&s))
        return err_fail_as(err, EBUSY, FAIL_SANDBOX_NOT_RUNNING, "sandbox '%s' is already paused",
                           s.id);
    sandbox_done(&s);
    s = (struct sandbox){ 0 };
    r = json_is_false(json_object_get(object, "memory"))
            ? sandbox_stop(req->core, req->owner, req->args[0], &s, err)
            : sandbox_pause(req->core, req->owner, req->args[0], &s, err);
    return r < 0 ? e2b_failed(err, r, req->args[0]) : reply_empty(req);
}

int e2b_sandbox_resume(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_(sandbox_done) struct sandbox after = { 0 };
    int64_t seconds = TIMEOUT_V1_S;
    bool memory = true;
    int r = read_resume(req, &seconds, &memory, &s, err);
    if (r < 0)
        return r;
    if (!e2b_is_paused(&s))
        return err_fail(err, FAIL_SANDBOX_BUSY, "sandbox '%s' is already running", s.id);
    r = start(req, seconds, memory, &after, err);
    return r < 0 ? r : e2b_reply_sandbox(req, 201, &after);
}

/* ---- resumed by a touch ---- */

bool e2b_wakes(const struct sandbox *s)
{
    return s->spec.wake == WAKE_ALWAYS;
}

/* Paused by its own platform's ways it wakes unless it says never. */
static bool sleeps(const struct sandbox *s)
{
    if (s->state == SANDBOX_PAUSED || s->state == SANDBOX_PAUSING)
        return s->spec.wake != WAKE_NEVER;
    return s->state == SANDBOX_STOPPED && e2b_wakes(s);
}

/* A stranger who guesses an id must not start anything. */
static bool may_wake(struct request *req, const struct sandbox *s)
{
    const char *token = request_header(req, "X-Access-Token");
    bool reads = strcmp(req->method, "POST") != 0;
    if (token)
        return token_is(req->core, ENVD_TOKEN, s->id, token);
    return e2b_is_open(s) || (uri_param(&req->uri, "signature") &&
                              signature_check(req, s->id, reads ? "read" : "write", NULL) >= 0);
}

int e2b_wake(struct request *req, const char *id)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_(sandbox_done) struct sandbox after = { 0 };
    bool woken;
    if (sandbox_get(req->core, NULL, id, &s, NULL) < 0 || !sleeps(&s) || !may_wake(req, &s))
        return -ENOENT;
    int r = sandbox_wake(req->core, NULL, s.id, &after, &woken, NULL);
    if (r >= 0)
        sandbox_leave(req->core, s.id);
    return r;
}

#include <errno.h>

#include "core/lease.h"
#include "front/http/fields.h"
#include "front/native/native.h"

struct ask {
    int64_t ms;
    char *reason;
};

static const struct field fields[] = {
    FIELD(struct ask, ms, "seconds", as_seconds, .min = 1, .max = LEASE_SECONDS_MAX),
    FIELD(struct ask, reason, "reason", as_text, .max = LEASE_REASON_MAX, .null_ok = true),
};

static void ask_done(struct ask *ask)
{
    free(ask->reason);
}

static void put_lease(struct jout *j, const struct lease *lease)
{
    jout_open(j, NULL, '{');
    jout_str(j, "id", lease->id);
    jout_str(j, "reason", lease->reason);
    jout_time(j, "created_at", lease->created_ms);
    jout_time(j, "expires_at", lease->until_ms);
    jout_close(j, '}');
}

int native_lease_take(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct lease lease;
    int r = request_fields(req, fields, ARRAY_LEN(fields), &ask, NULL, err);
    if (r >= 0 && ask.ms == 0)
        r = err_fail(err, FAIL_MISSING_FIELD, "'seconds' is needed: how long, up to %d",
                     LEASE_SECONDS_MAX);
    if (r >= 0)
        r = lease_take(req->core, req->owner, req->args[0], ask.ms, ask.reason, &lease, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    put_lease(&j, &lease);
    return reply_json(req, 201, &j);
}

int native_lease_list(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct lease *leases = NULL;
    size_t n = 0;
    int r = lease_list(req->core, req->owner, req->args[0], &leases, &n, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_open(&j, "leases", '[');
    for (size_t i = 0; i < n; i++)
        put_lease(&j, &leases[i]);
    jout_close(&j, ']');
    jout_close(&j, '}');
    free(leases);
    return reply_json(req, 200, &j);
}

int native_lease_end(struct request *req, struct err *err)
{
    int r = lease_end(req->core, req->owner, req->args[0], req->args[1], err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_empty(req);
}

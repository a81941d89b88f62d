#include "front/e2b/caller.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "core/token.h"
#include "front/e2b/e2b.h"
#include "front/e2b/envd.h"
#include "front/e2b/signature.h"
#include "front/e2b/volumes.h"

#define BEARER "Bearer "

static int let_in(struct request *req, const char *id, struct err *err)
{
    memcpy(req->subject, id, ID_SIZE);
    req->authorized = true;
    return request_known(req, id, err);
}

/* Of one that does not run callers hear so, as from the platform's own proxy, which asks for no token. */
static int refuse(struct request *req, const char *id, struct err *err)
{
    if (id && !e2b_runs(req->core, id))
        (void)err_set(err, ENOTCONN, "The sandbox was not found");
    return request_stranger(req, -err->code, err);
}

static bool is_open(struct request *req, const char *id)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    return sandbox_get(req->core, NULL, id, &s, NULL) >= 0 && e2b_is_open(&s);
}

int caller_by_token(struct request *req, struct err *err)
{
    const char *id = request_header(req, "E2b-Sandbox-Id");
    const char *token = request_header(req, "X-Access-Token");
    if (!id || !id_valid(id)) {
        (void)err_fail(err, FAIL_INVALID_REQUEST,
                       id ? "Invalid sandbox ID" : "missing header E2b-Sandbox-Id");
        return refuse(req, NULL, err);
    }
    if (token ? token_is(req->core, ENVD_TOKEN, id, token) : is_open(req, id))
        return let_in(req, id, err);
    (void)err_fail(err, FAIL_UNAUTHORIZED,
                   "unauthorized access, please provide a valid "
                   "access token or method signature if supported");
    return refuse(req, id, err);
}

static int by_link(struct request *req, const char *op, struct err *err)
{
    const char *header = request_header(req, "E2b-Sandbox-Id");
    char id[ID_SIZE];
    int r = 0;
    if (!header)
        r = signature_find(req, op, id, err);
    else if (id_valid(header))
        memcpy(id, header, sizeof(id));
    else
        r = err_fail(err, FAIL_UNAUTHORIZED, "E2b-Sandbox-Id is not a sandbox's id");
    if (r < 0)
        return refuse(req, NULL, err);
    bool open = !request_header(req, "X-Access-Token") && is_open(req, id);
    if (!open && signature_check(req, id, op, err) < 0)
        return refuse(req, id, err);
    return let_in(req, id, err);
}

int caller_by_link_to_read(struct request *req, struct err *err)
{
    return by_link(req, "read", err);
}

int caller_by_link_to_write(struct request *req, struct err *err)
{
    return by_link(req, "write", err);
}

int caller_by_volume_token(struct request *req, struct err *err)
{
    const char *given = request_header(req, "Authorization");
    if (given && strncasecmp(given, BEARER, strlen(BEARER)) == 0 && id_valid(req->args[0]) &&
        token_is(req->core, VOLUME_TOKEN, req->args[0], given + strlen(BEARER)))
        return let_in(req, req->args[0], err);
    (void)err_fail(err, FAIL_UNAUTHORIZED, "the token is not that of this volume");
    return refuse(req, NULL, err);
}

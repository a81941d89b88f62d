/* The head of a request: is it one, what does it want, who asks, and may they? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "core/key.h"
#include "core/team.h"
#include "front/http/conn.h"
#include "front/http/cors.h"
#include "front/http/server_private.h"

#define IGNORED_BODY_MAX (64 * 1024) /* where no body is wanted */

/* Refuse a second Authorization: two readers could read two callers. The reader of heads
 * (net/head.h) refuses the other ambiguities. */
static int check_head(struct request *req, struct err *err)
{
    const struct head *h = conn_head(req->con);
    unsigned keys = 0;
    for (size_t i = 0; i < h->nfields; i++)
        keys += strcasecmp(h->fields[i].name.p, "Authorization") == 0;
    return keys > 1 ? err_fail(err, FAIL_INVALID_REQUEST,
                               "the request has more than one header Authorization")
                    : 0;
}

/* ---- room ---- */

static int have_no_room(struct request *req, bool known, struct err *err)
{
    req->crowded = true;
    return known ? err_fail(err, FAIL_TOO_MANY_REQUESTS,
                            "this key has too many connections open; close some, or try again")
                 : err_fail_as(err, EAGAIN, FAIL_CAPACITY,
                               "too many requests without a key are being answered; try again");
}

int request_known(struct request *req, const char *who, struct err *err)
{
    struct connections *c = req->endpoint->connections;
    int r = connections_work(c, &req->con->seat, connections_who(c, who));
    return r < 0 ? have_no_room(req, true, err) : 0;
}

int request_stranger(struct request *req, int r, struct err *err)
{
    bool room = connections_work(req->endpoint->connections, &req->con->seat, 0) >= 0;
    return room ? r : have_no_room(req, false, err);
}

int auth_none(struct request *req, struct err *err)
{
    return request_stranger(req, 0, err);
}

/* ---- who asks ---- */

/* X-Warren-Team: an operator's request for another team. */
static int take_team(struct request *req, struct err *err)
{
    const char *team = request_header(req, "X-Warren-Team");
    if (!team)
        return 0;
    if (!req->admin)
        return strcmp(team, req->owner) == 0
                   ? 0
                   : err_fail(err, FAIL_FORBIDDEN,
                              "X-Warren-Team is for the operator; this key belongs to team '%s'",
                              req->owner);
    if (!name_valid(team) || !team_exists(req->core, team))
        return err_fail(err, FAIL_TEAM_NOT_FOUND, "no team '%.64s' here", team);
    (void)snprintf(req->owner, sizeof(req->owner), "%s", team);
    req->for_team = true;
    return 0;
}

/* A client's own id joins its log and ours; anything odd could forge a line of either. */
static void take_id(struct request *req)
{
    const char *id = request_header(req, "X-Request-Id");
    size_t n =
        id ? strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") : 0;
    if (n > 0 && n < REQUEST_ID_MAX && !id[n])
        memcpy(req->id, id, n + 1);
    log_set_request(req->id);
}

static int check_rate(struct endpoint *ep, struct request *req, const char *key, struct err *err)
{
    struct limiter *l = ep->server->limiter;
    struct limiter_state s;
    if (!l || ep->admin || !key)
        return 0;
    bool ok = limiter_take(l, limiter_who(l, key), clock_mono_us(), &s);
    reply_header(req, "RateLimit-Limit", "%u", s.limit);
    reply_header(req, "RateLimit-Remaining", "%u", s.remaining);
    reply_header(req, "RateLimit-Reset", "%u", s.reset_s);
    if (ok)
        return 0;
    req->retry_after_s = s.retry_s;
    atomic_fetch_add_explicit(&ep->server->metrics.rate_limited, 1, memory_order_relaxed);
    return err_fail(err, FAIL_TOO_MANY_REQUESTS,
                    "this key has made too many requests; try again in %u s", s.retry_s);
}

static int check_key(struct request *req, struct err *err)
{
    struct endpoint *ep = req->endpoint;
    const char *text =
        auth_key_text(request_header(req, "Authorization"), request_header(req, "X-API-Key"));
    struct key key;
    if (text && key_check(req->core, text, &key) >= 0) {
        memcpy(req->owner, key.owner, sizeof(req->owner));
        req->admin = key.role == KEY_ADMIN;
        int r = request_known(req, text, err);
        return r < 0 ? r : check_rate(ep, req, text, err);
    }
    if (ep->admin && !text && auth_peer_trusted(req->fd)) {
        memcpy(req->owner, OWNER_DEFAULT, sizeof(OWNER_DEFAULT));
        req->admin = true;
        return request_known(req, "", err);
    }
    int r = request_stranger(req, 0, err);
    if (r < 0)
        return r;
    const struct sockaddr *from = ep->admin ? NULL : (struct sockaddr *)&req->con->peer;
    if (text && auth_failed(ep->server->auth, from, clock_mono_ms()))
        return err_fail(err, FAIL_TOO_MANY_REQUESTS,
                        "too many wrong keys from this address; try again in %d s", AUTH_WINDOW_S);
    return err_fail(err, FAIL_UNAUTHORIZED,
                    text ? "this key is not known or was revoked"
                         : "a key is needed: 'Authorization: Bearer KEY'");
}

int auth_key(struct request *req, struct err *err)
{
    int r = check_key(req, err);
    if (r < 0)
        return r;
    req->authorized = true;
    return take_team(req, err);
}

static size_t body_max(const struct route *route)
{
    switch (route->body) {
    case BODY_NONE: return IGNORED_BODY_MAX;
    case BODY_JSON: return REQUEST_JSON_MAX;
    case BODY_RAW: return REQUEST_RAW_MAX;
    case BODY_STREAM: return SIZE_MAX;
    }
    return 0;
}

int server_too_large(struct request *req, struct err *err)
{
    return err_fail(err, FAIL_BODY_TOO_LARGE, "the body is over %zu bytes", body_max(req->route));
}

uint64_t server_announced_length(const struct request *req)
{
    const struct head *h = conn_head(req->con);
    return h && h->body == BODY_LENGTH ? h->length : 0;
}

/* What a browser asks before a page of another origin may ask, and anyone about a path. */
static int answer_options(struct request *req, struct err *err)
{
    reply_header(req, "Allow", "%s, OPTIONS", req->allow);
    if (req->cors_origin) {
        reply_header(req, "Access-Control-Allow-Methods", "%s", req->allow);
        reply_header(req, "Access-Control-Allow-Headers", "%s", req->dialect->cors_headers);
        reply_header(req, "Access-Control-Max-Age", "86400");
    }
    return reply_empty(req);
}

static const struct route options_route = { "OPTIONS",      "*", auth_none, BODY_NONE,
                                            answer_options, NULL };

static int find_route(struct request *req, const char *method, struct err *err)
{
    const struct dialect *d = dialect_find(req->server->config.dialects, &req->uri);
    req->dialect = d;
    if (d->claim && (req->route = d->claim(req)))
        return 0;
    switch (
        route_find(d->routes, d->nroutes, method, &req->uri, &req->route, req->args, req->allow)) {
    case ROUTE_FOUND: return 0;
    case ROUTE_OTHER_METHOD:
        if (strcmp(method, "OPTIONS") == 0) {
            req->route = &options_route;
            return 0;
        }
        return err_fail(err, FAIL_METHOD_NOT_ALLOWED, "only %s here", req->allow);
    case ROUTE_UNKNOWN: break;
    }
    return err_fail(err, FAIL_NOT_FOUND, "there is nothing at this path");
}

int server_admit(struct endpoint *ep, struct request *req, const char *method, struct err *err)
{
    take_id(req);
    req->cors_origin =
        ep->admin ? NULL
                  : cors_allows(ep->server->config.cors_origins, request_header(req, "Origin"));
    int r = check_head(req, err);
    if (r >= 0)
        r = find_route(req, method, err);
    if (r < 0)
        return request_stranger(req, r, err);
    r = req->route->auth(req, err);
    if (r < 0)
        return r;
    req->body.max = body_max(req->route);
    if (server_announced_length(req) > req->body.max)
        return server_too_large(req, err);
    if (req->route->body == BODY_STREAM) {
        r = req->route->sink->begin(req, err);
        req->sink_open = r >= 0;
        /* A route for everyone that begins an upload has checked the caller by other means, such as a
         * token of the one that it leads to. */
        if (r >= 0 && !connections_known(&req->con->seat))
            r = request_known(req, req->route->pattern, err);
    }
    return r;
}

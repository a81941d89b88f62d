/* Ports of a sandbox that its own programs serve, the code interpreter's first of all. A request
 * names sandbox and port in headers; what listens there gets it without the mount and without our
 * credentials. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "core/key.h"
#include "core/port.h"
#include "core/token.h"
#include "front/e2b/e2b.h"
#include "front/e2b/envd.h"
#include "front/http/auth.h"
#include "front/http/cors.h"
#include "front/http/relay.h"
#include "net/preview.h"

#define INTERPRETER_PORT 49999
#define DIAL_MS 5000
#define ENV_MAX (1536u * 1024) /* the most that a sandbox's variables take as JSON, in base64 */

struct visit {
    struct core *core; /* NULL: not entered */
    struct sandbox s;
    char id[ID_SIZE];
    unsigned port;
    bool gone, closed; /* no such sandbox; nothing listens */
    struct relay *relay;
};

static unsigned read_port(const char *text)
{
    unsigned v = 0;
    for (; *text >= '0' && *text <= '9' && v <= PORT_MAX; text++)
        v = v * 10 + (unsigned)(*text - '0');
    return *text || v > PORT_MAX ? 0 : v;
}

/* The interpreter's clients prove themselves where code is run, and nowhere else. */
static int check_token(struct request *req, const struct visit *v, struct err *err)
{
    const char *token = request_header(req, "X-Access-Token");
    const char *visitor = request_header(req, "E2b-Traffic-Access-Token");
    if (e2b_is_private(&v->s) && !(visitor && token_is(req->core, PORT_TOKEN, v->s.id, visitor)))
        return err_fail(err, FAIL_FORBIDDEN,
                        "The sandbox is private: send its token as e2b-traffic-access-token");
    bool runs = req->uri.nsegments == 2 && strcmp(req->uri.segments[1], "execute") == 0;
    if (v->port != INTERPRETER_PORT || (!token && (!runs || e2b_is_open(&v->s))))
        return 0;
    if (token && token_is(req->core, ENVD_TOKEN, v->s.id, token))
        return 0;
    return err_fail(err, FAIL_UNAUTHORIZED,
                    "unauthorized access, please provide a valid access token");
}

/* The interpreter may have been started before anyone gave the sandbox its variables. */
static int put_env(const struct sandbox *s, struct buf *line)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(ENV_MAX);
    struct jout j = JOUT_INIT(&text);
    int r = envd_tell_env(s, &j);
    if (r >= 0)
        r = jout_done(&j);
    if (r >= 0)
        r = buf_puts(line, "E2b-Sandbox-Env: ");
    return r < 0 ? r : base64_encode(text.data, text.len, line);
}

/* Behind the mount, whatever the ways to write it. */
static void target_of(const struct request *req, struct buf *out)
{
    const char *p = req->target + strspn(req->target, "/");
    p += strcspn(p, "/?");
    (void)buf_printf(out, "%s%s", *p == '/' ? "" : "/", p);
}

/* Headers of ours stay here. A key in the place where a program's own might be is looked at. */
static void choose_drops(struct request *req, const char *drop[8])
{
    size_t n = 0;
    struct key key;
    const char *authorization = auth_key_text(request_header(req, "Authorization"), NULL);
    const char *plain = request_header(req, "X-API-Key");
    drop[n++] = "X-Access-Token";
    drop[n++] = "E2b-Traffic-Access-Token";
    drop[n++] = "E2b-Sandbox-Env"; /* ours to say */
    if (authorization && key_check(req->core, authorization, &key) >= 0)
        drop[n++] = "Authorization";
    if (plain && key_check(req->core, plain, &key) >= 0)
        drop[n++] = "X-API-Key";
    drop[n] = NULL;
}

/* As for who comes by a name of the port's own. */
static bool is_ours(const char *name)
{
    return preview_own_field(name, strlen(name)) || strncasecmp(name, "X-Warren-", 9) == 0;
}

static int open_relay(struct request *req, struct visit *v, struct err *err)
{
    _cleanup_(buf_done) struct buf env = BUF_INIT(2 * ENV_MAX);
    _cleanup_(buf_done) struct buf target = BUF_INIT(URI_MAX + 2);
    char host[32];
    const char *drop[8], *add[2] = { NULL };
    struct relay_spec spec = { .fd = -1, .host = host, .drop = drop, .drops = is_ours, .add = add };
    struct err why = ERR_INIT;

    if (port_dial(v->core, &v->s, v->port, DIAL_MS, &spec.fd, &why) < 0) {
        v->closed = true;
        return 0;
    }
    (void)snprintf(host, sizeof(host), "localhost:%u", v->port);
    choose_drops(req, drop);
    target_of(req, &target);
    spec.target = target.data;
    if (v->port == INTERPRETER_PORT && put_env(&v->s, &env) >= 0)
        add[0] = env.data;
    return relay_new(req, &spec, &v->relay, err);
}

static void port_end(struct request *req)
{
    struct visit *v = req->sink;
    relay_free(v->relay);
    if (v->core)
        sandbox_leave(v->core, v->s.id);
    sandbox_done(&v->s);
    free(v);
    req->sink = NULL;
}

static int enter(struct request *req, struct visit *v, struct err *err)
{
    const char *id = request_header(req, "E2b-Sandbox-Id");
    v->port = read_port(request_header(req, "E2b-Sandbox-Port"));
    if (!id)
        return err_fail(err, FAIL_INVALID_REQUEST, "missing header E2b-Sandbox-Id");
    if (!id_valid(id))
        return err_fail(err, FAIL_INVALID_REQUEST, "Invalid sandbox ID");
    if (v->port == 0)
        return err_fail(err, FAIL_INVALID_REQUEST, "Invalid sandbox port");
    (void)snprintf(v->id, sizeof(v->id), "%s", id);
    struct err why = ERR_INIT;
    /* Before it is entered: who has no right to be there must not keep it awake. */
    int r = sandbox_get(req->core, NULL, id, &v->s, &why);
    v->gone = r < 0;
    if (r >= 0)
        r = check_token(req, v, err);
    bool runs = v->s.state == SANDBOX_RUNNING;
    sandbox_done(&v->s);
    if (r < 0) {
        v->gone |= !runs;
        return v->gone ? 0 : r;
    }
    if (sandbox_enter_awake(req->core, NULL, id, &v->s, &why) < 0 &&
        (e2b_wake(req, id) < 0 || sandbox_enter_awake(req->core, NULL, id, &v->s, &why) < 0)) {
        v->gone = true;
        return 0;
    }
    v->core = req->core;
    r = request_known(req, id, err);
    return r < 0 ? r : open_relay(req, v, err);
}

static int port_begin(struct request *req, struct err *err)
{
    struct visit *v = calloc(1, sizeof(*v));
    if (!v)
        return err_set(err, ENOMEM, "cannot allocate a relay");
    req->sink = v;
    int r = enter(req, v, err);
    if (r < 0)
        port_end(req);
    return r;
}

static int port_write(struct request *req, const char *p, size_t n, struct err *err)
{
    struct visit *v = req->sink;
    return v->relay ? relay_write(v->relay, p, n, err) : 0;
}

static int reply_closed(struct request *req, const struct visit *v)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1024);
    struct jout j = JOUT_INIT(&b);
    jout_open(&j, NULL, '{');
    jout_str(&j, "sandboxId", v->id);
    jout_str(&j, "message", "The sandbox is running but port is not open");
    jout_uint(&j, "port", v->port);
    jout_int(&j, "code", 502);
    jout_close(&j, '}');
    return reply_json(req, 502, &j);
}

static bool is_running(struct request *req, const char *id)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct err none = ERR_INIT;
    if (sandbox_enter_awake(req->core, NULL, id, &s, &none) < 0)
        return false;
    sandbox_leave(req->core, id);
    return true;
}

static int port_handle(struct request *req, struct err *err)
{
    struct visit *v = req->sink;
    if (v->gone)
        return envd_gone(req, v->id);
    if (v->closed)
        return reply_closed(req, v);
    int r = relay_reply(v->relay, err);
    if (r >= 0)
        v->relay = NULL;
    if (r != -ECONNRESET)
        return r;
    return is_running(req, v->id) ? reply_closed(req, v) : envd_gone(req, v->id);
}

static const struct route_sink port_sink = { port_begin, port_write, port_end, NULL };
static const struct route port_route = { "*",         "/e2b/* (a port)", auth_none,
                                         BODY_STREAM, port_handle,       &port_sink };

/* ---- what a browser asks before a page may ask ---- */

/* It has no token, and the interpreter knows nothing of pages: the answer is ours. */
static int answer_preflight(struct request *req, struct err *err)
{
    (void)err;
    if (req->cors_origin) {
        reply_header(req, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
        reply_header(req, "Access-Control-Allow-Headers", "%s", cors_any_header);
        reply_header(req, "Access-Control-Max-Age", "86400");
    }
    return reply_empty(req);
}

static const struct route preflight_route = { "OPTIONS", "/e2b/* (a port)", auth_none,
                                              BODY_NONE, answer_preflight,  NULL };

/* By its name, or of a request that will name a port: which one a preflight does not say. */
static bool is_preflight(const struct request *req, const char *port)
{
    const char *wanted = request_header(req, "Access-Control-Request-Headers");
    if (strcmp(req->method, "OPTIONS") != 0 ||
        !request_header(req, "Access-Control-Request-Method"))
        return false;
    return port ? read_port(port) == INTERPRETER_PORT
                : wanted && strcasestr(wanted, "e2b-sandbox-port");
}

const struct route *e2b_claim(const struct request *req)
{
    const char *port = request_header(req, "E2b-Sandbox-Port");
    if (strcmp(req->uri.segments[0], "e2b") != 0)
        return NULL;
    if (is_preflight(req, port))
        return &preflight_route;
    return port && read_port(port) != ENVD_PORT ? &port_route : NULL;
}

#include "front/http/server_private.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/sanitized.h"
#include "front/http/acceptor.h"
#include "front/http/once.h"

#define LOG_MODULE "http"

#define CONNECTIONS_MAX 4096
#define CONNECTIONS_ADMIN 512 /* of their own: root gets in whatever comes over the network */
#define CONNECTION_BYTES (256 * 1024) /* a request head; half of it is one piece of an upload */
#define IDLE_TIMEOUT_S 60             /* between two bytes of a request, and between requests */
#define BODY_TIMEOUT_MS 300000        /* for a whole body that is not an upload */
#define DRAIN_STRANGER_MAX (64 * 1024 * 1024) /* read on after refusing someone without a key */
#define STACK_BYTES (SANITIZED ? 2 * 1024 * 1024 : 256 * 1024)

/* ---- the beginning: the request line is there ---- */

static void *on_target(void *cls, const char *target, struct MHD_Connection *con)
{
    struct endpoint *ep = cls;
    struct server *s = ep->server;
    struct request *req = calloc(1, sizeof(*req));
    if (!req)
        return NULL;
    uint64_t n = atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
    int len = snprintf(req->id, sizeof(req->id), "r%s%llx", s->boot, (unsigned long long)n);
    (void)len;
    req->server = s;
    req->core = s->config.core;
    req->metrics = &s->metrics;
    req->preview_domain = s->config.preview_domain;
    req->preview_tls = s->config.preview_tls;
    req->con = con;
    req->fd = -1;
    req->began_us = clock_mono_us();
    req->target = strdup(target);
    req->refused = uri_parse(target, strlen(target), &req->uri, &req->err) < 0;
    atomic_fetch_add_explicit(&s->metrics.in_flight, 1, memory_order_relaxed);
    return req;
}

/* ---- the body is coming ---- */

static enum MHD_Result take_body(struct request *req, const char *p, size_t n)
{
    bool upload = req->route && req->route->body == BODY_STREAM;
    if (!upload && clock_mono_us() - req->began_us > BODY_TIMEOUT_MS * INT64_C(1000))
        return MHD_NO;
    int r = 0;
    if (req->refused) {
        /* Reading on lets the client get to our answer instead of a reset connection. */
        req->drained_bytes += n;
        return req->authorized || req->drained_bytes <= DRAIN_STRANGER_MAX ? MHD_YES : MHD_NO;
    }
    if (upload)
        r = req->route->sink->write(req, p, n, &req->err);
    else
        r = buf_append(&req->body, p, n);
    if (r == -EMSGSIZE && !upload)
        (void)server_too_large(req, &req->err);
    else if (r < 0 && !upload)
        (void)err_set(&req->err, -r, "cannot keep the body");
    if (r < 0) {
        req->refused = true;
        buf_done(&req->body);
    }
    return MHD_YES;
}

/* ---- all of it is there ---- */

static enum MHD_Result answer(struct request *req)
{
    int r = 0;
    if (!req->refused) {
        /* A handler may wait for longer than an idle connection may. */
        (void)MHD_set_connection_option(req->con, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
        atomic_fetch_add(&req->server->working, 1);
        r = once_begin(req, req->server->config.once, req->server->config.nonce, &req->err);
        if (r > 0) {
            r = req->route->handle(req, &req->err);
            once_end(req);
        }
        atomic_fetch_sub(&req->server->working, 1);
        if (r == -ECANCELED)
            return MHD_NO;
        if (!req->streaming)
            (void)MHD_set_connection_option(req->con, MHD_CONNECTION_OPTION_TIMEOUT,
                                            (unsigned)IDLE_TIMEOUT_S);
    }
    if (req->status == 0) {
        if (req->err.code == 0)
            (void)err_set(&req->err, r < 0 ? -r : EIO, "cannot make the answer");
        if (reply_error(req, &req->err, NULL, NULL) < 0)
            return MHD_NO;
    }
    return MHD_YES;
}

static bool refuse_at_once(const struct request *req)
{
    return request_header(req, "Expect") ||
           (!req->authorized && server_announced_length(req) > DRAIN_STRANGER_MAX);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *con, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_n, void **req_cls)
{
    struct endpoint *ep = cls;
    struct request *req = *req_cls;
    if (!req)
        return MHD_NO; /* no memory for it */
    if (!req->begun) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(con, MHD_CONNECTION_INFO_CONNECTION_FD);
        req->begun = true;
        req->method = method;
        req->fd = info ? info->connect_fd : -1;
        log_set_request(req->id);
        if (!req->refused)
            req->refused = server_admit(ep, req, method, &req->err) < 0;
        return req->refused && refuse_at_once(req) ? answer(req) : MHD_YES;
    }
    if (*upload_n > 0) {
        enum MHD_Result r = take_body(req, upload, *upload_n);
        *upload_n = 0;
        return r;
    }
    return answer(req);
}

static void log_request(const struct request *req)
{
    char path[128];
    long long took = (long long)(clock_mono_us() - req->began_us);
    const char *method = req->method ? req->method : "?";
    const char *pattern = req->route ? req->route->pattern : "?";
    const char *why = strerrorname_np(req->err.code);
    if (req->status >= 500)
        log_warn("request failed method=%s path=%s status=%u took_us=%lld err=%s why=%s", method,
                 pattern, req->status, took, log_quote(path, sizeof(path), req->err.msg),
                 why ? why : "?");
    else
        log_debug("request method=%s path=%s status=%u took_us=%lld", method, pattern, req->status,
                  took);
}

static void on_completed(void *cls, struct MHD_Connection *con, void **req_cls,
                         enum MHD_RequestTerminationCode how)
{
    struct request *req = *req_cls;
    if (!req)
        return;
    *req_cls = NULL;
    reply_upgraded(req, -1);
    if (req->streaming)
        (void)MHD_set_connection_option(con, MHD_CONNECTION_OPTION_TIMEOUT,
                                        (unsigned)IDLE_TIMEOUT_S);
    if (req->sink_open)
        req->route->sink->end(req);
    metrics_request(&req->server->metrics, req->route, req->status,
                    clock_mono_us() - req->began_us);
    atomic_fetch_sub_explicit(&req->server->metrics.in_flight, 1, memory_order_relaxed);
    log_request(req);
    log_set_request(NULL);
    free(req->target);
    buf_done(&req->passed);
    uri_done(&req->uri);
    buf_done(&req->body);
    free(req);
}

/* Parts are decoded by uri.c, from the request line as it was. */
static size_t keep_escapes(void *cls, struct MHD_Connection *con, char *s)
{
    return strlen(s);
}

static void on_connection(void *cls, struct MHD_Connection *con, void **socket_cls,
                          enum MHD_ConnectionNotificationCode what)
{
    struct endpoint *ep = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        atomic_fetch_add(&ep->open, 1);
    else
        atomic_fetch_sub(&ep->open, 1);
}

/* ---- life ---- */

/* fd: -1 where connections come from elsewhere. */
static int listen_on(struct endpoint *ep, int fd, struct err *err)
{
    /* libmicrohttpd 0.9.75 locks a mutex for good when MHD_add_connection meets its limit, so that
     * limit is out of reach and server_take counts. */
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_ITC | MHD_ALLOW_UPGRADE |
                     (fd < 0 ? MHD_USE_NO_LISTEN_SOCKET : 0);
    struct MHD_OptionItem where[] = {
        { fd < 0 ? MHD_OPTION_END : MHD_OPTION_LISTEN_SOCKET, fd, NULL },
        { MHD_OPTION_END, 0, NULL },
    };
    ep->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, ep, MHD_OPTION_ARRAY, where, MHD_OPTION_URI_LOG_CALLBACK,
        on_target, ep, MHD_OPTION_NOTIFY_COMPLETED, on_completed, ep, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, ep, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_LIMIT,
        fd < 0 ? (unsigned)INT_MAX : CONNECTIONS_ADMIN, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        ep, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)STACK_BYTES, MHD_OPTION_END);
    if (!ep->daemon)
        return err_set(err, errno ? errno : EIO, "cannot start the HTTP server");
    return 0;
}

/* Close it with an answer. What the client sent is read first: closing over it sends a reset, which
 * takes the answer away again. */
static void turn_away(int fd)
{
    static const char answer[] =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 10\r\n"
        "Connection: close\r\nContent-Length: 71\r\n\r\n"
        "{\"error\":{\"code\":\"capacity\",\"message\":\"too many connections are open\"}}";
    char rest[4096];
    for (int i = 0; i < 16 && recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0;)
        i++;
    (void)send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)close(fd);
}

void server_take(struct server *server, int fd, const struct sockaddr *peer, socklen_t n)
{
    struct endpoint *ep = &server->endpoints[0];
    (void)pthread_mutex_lock(&server->taking);
    if (!ep->daemon)
        (void)close(fd);
    else if (atomic_load(&ep->open) >= CONNECTIONS_MAX)
        turn_away(fd);
    else /* closes it if it cannot */
        (void)MHD_add_connection(ep->daemon, fd, peer, n);
    (void)pthread_mutex_unlock(&server->taking);
}

static void take(void *arg, int fd, const struct sockaddr *peer, socklen_t n)
{
    server_take(arg, fd, peer, n);
}

static bool divert(void *arg, int fd, const char *head, size_t n)
{
    struct server *s = arg;
    return s->config.divert(s->config.divert_arg, fd, head, n);
}

static int accept_on(struct server *s, int fd, struct err *err)
{
    struct acceptor_config config = {
        .fd = fd, .arg = s, .serve = take, .divert = s->config.divert ? divert : NULL
    };
    int r = listen_on(&s->endpoints[0], -1, err);
    if (r < 0) {
        (void)close(fd);
        return r;
    }
    return acceptor_new(&config, &s->acceptor, err);
}

int server_new(const struct server_config *config, struct server **ret_server, struct err *err)
{
    _cleanup_fd_ int tcp_fd = config->tcp_fd;
    _cleanup_fd_ int admin_fd = config->admin_fd;
    _cleanup_(server_freep) struct server *s = calloc(1, sizeof(*s));
    unsigned char boot[3];

    if (!s)
        return err_set(err, ENOMEM, "cannot allocate the HTTP server");
    s->config = *config;
    (void)pthread_mutex_init(&s->taking, NULL);
    s->endpoints[0] = (struct endpoint){ .server = s };
    s->endpoints[1] = (struct endpoint){ .server = s, .admin = true };
    int r = random_bytes(boot, sizeof(boot));
    if (r < 0)
        return err_set(err, -r, "cannot get random bytes");
    hex_encode(boot, sizeof(boot), s->boot);
    r = auth_new(&s->auth, err);
    if (r < 0)
        return r;
    r = limiter_new(config->rate_limit, config->rate_burst, &s->limiter, err);
    if (r >= 0)
        r = metrics_init(&s->metrics, config->routes, config->nroutes, config->keeper_restarts,
                         err);
    if (r < 0)
        return r;
    json_object_seed(0); /* once, before threads: hashes must not be guessable */
    if (tcp_fd >= 0) {
        r = accept_on(s, take_fd(tcp_fd), err);
        if (r < 0)
            return r;
    }
    if (admin_fd >= 0) {
        r = listen_on(&s->endpoints[1], admin_fd, err);
        if (r < 0)
            return r;
        (void)take_fd(admin_fd);
    }
    *ret_server = take_ptr(s);
    return 0;
}

void server_stop(struct server *server, int timeout_ms)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;

    acceptor_free(server->acceptor);
    server->acceptor = NULL;
    for (size_t i = 0; i < ARRAY_LEN(server->endpoints); i++)
        if (server->endpoints[i].daemon) {
            MHD_socket fd = MHD_quiesce_daemon(server->endpoints[i].daemon);
            if (fd != MHD_INVALID_SOCKET)
                (void)close(fd);
        }
    while (atomic_load(&server->working) > 0 && clock_mono_ms() < deadline)
        (void)poll(NULL, 0, 10);
    for (size_t i = 0; i < ARRAY_LEN(server->endpoints); i++) {
        (void)pthread_mutex_lock(&server->taking);
        struct MHD_Daemon *daemon = server->endpoints[i].daemon;
        server->endpoints[i].daemon = NULL;
        (void)pthread_mutex_unlock(&server->taking);
        if (daemon)
            MHD_stop_daemon(daemon);
    }
}

void server_free(struct server *server)
{
    if (!server)
        return;
    server_stop(server, 0);
    auth_free(server->auth);
    limiter_free(server->limiter);
    metrics_done(&server->metrics);
    (void)pthread_mutex_destroy(&server->taking);
    free(server);
}

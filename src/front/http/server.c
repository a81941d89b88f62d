#include "base/hex.h"
#include "front/http/server_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "base/sanitized.h"
#include "front/http/acceptor.h"
#include "front/http/conn.h"

#define LOG_MODULE "http"

#define WORKERS_MAX 4096
#define ADMIN_MAX 512  /* of the admin socket: root gets in however crowded the network is */
#define LINGER_MS 5000 /* a client with a key that asks again within this keeps its thread */
#define STACK_BYTES (SANITIZED ? 2 * 1024 * 1024 : 256 * 1024)

/* ---- connections at work ---- */

static void list(struct endpoint *ep, struct conn *c)
{
    struct server *s = ep->server;
    (void)pthread_mutex_lock(&s->lock);
    c->next = ep->working;
    c->at = &ep->working;
    if (c->next)
        c->next->at = &c->next;
    ep->working = c;
    if (s->stop)
        (void)shutdown(c->fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&s->lock);
}

static void unlist(struct endpoint *ep, struct conn *c)
{
    (void)pthread_mutex_lock(&ep->server->lock);
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    (void)pthread_mutex_unlock(&ep->server->lock);
}

/* Give the connection back to the acceptor until its next request. */
static void park(struct endpoint *ep, struct conn *c)
{
    struct server *s = ep->server;
    (void)pthread_mutex_lock(&s->lock);
    bool open = ep->acceptor != NULL;
    if (open)
        acceptor_take(ep->acceptor, c);
    (void)pthread_mutex_unlock(&s->lock);
    if (!open) {
        if (c->seat.taken)
            connections_leave(ep->connections, &c->seat);
        conn_free(c);
    }
}

/* True: more bytes are here, or come soon enough for a thread to wait. */
static bool linger(struct endpoint *ep, struct conn *c)
{
    if (conn_has_more(c))
        return true;
    return connections_known(&c->seat) && workers_spare(ep->workers) &&
           fd_wait(c->fd, POLLIN | POLLRDHUP, LINGER_MS) > 0;
}

struct visit {
    struct endpoint *ep;
    struct conn *c;
};

static void serve(void *arg)
{
    struct visit v = *(struct visit *)arg;
    free(arg);
    bool again;
    list(v.ep, v.c);
    do
        again = server_exchange(v.ep, v.c);
    while (again && linger(v.ep, v.c));
    unlist(v.ep, v.c);
    conn_drop_room(v.c);
    if (conn_leave_behind(v.c) || again) {
        park(v.ep, v.c);
        return;
    }
    connections_leave(v.ep->connections, &v.c->seat);
    conn_free(v.c);
}

static int start_serving(void *arg, struct conn *c)
{
    struct visit *v = malloc(sizeof(*v));
    if (!v)
        return -ENOMEM;
    *v = (struct visit){ arg, c };
    int r = workers_start(v->ep->workers, serve, v);
    if (r < 0)
        free(v);
    return r;
}

static bool divert(void *arg, int fd, const char *head, size_t n)
{
    const struct server_config *config = &((struct endpoint *)arg)->server->config;
    return config->divert(config->divert_arg, fd, head, n);
}

void server_connections(const struct server *server, struct connections_counts *ret_counts)
{
    *ret_counts = (struct connections_counts){ 0 };
    for (size_t i = 0; i < ARRAY_LEN(server->endpoints); i++)
        if (server->endpoints[i].connections)
            connections_count(server->endpoints[i].connections, ret_counts);
}

void server_take(struct server *server, int fd, const struct sockaddr *peer, socklen_t n)
{
    struct endpoint *ep = &server->endpoints[0];
    (void)fd_set_nonblock(fd, true);
    struct conn *c = conn_new(fd, peer, n);
    if (!c)
        return;
    c->served = true; /* the diverter gave it back, so do not divert it again */
    park(ep, c);
}

static void cut(struct seat *s)
{
    (void)shutdown(container_of(s, struct conn, seat)->fd, SHUT_RDWR);
}

/* ---- life ---- */

static int open_endpoint(struct endpoint *ep, int fd, struct err *err)
{
    const struct server_config *config = &ep->server->config;
    struct connections_limits limits = config->connections;
    struct acceptor_config acceptor = { .fd = fd, .arg = ep, .serve = start_serving };
    if (ep->admin)
        limits = (struct connections_limits){ ADMIN_MAX, ADMIN_MAX, ADMIN_MAX, ADMIN_MAX };
    else if (config->divert)
        acceptor.divert = divert;
    int r = connections_new(&limits, cut, &ep->connections, err);
    if (r >= 0)
        r = workers_new(ep->admin ? ADMIN_MAX : WORKERS_MAX, STACK_BYTES, &ep->workers, err);
    if (r < 0) {
        (void)close(fd);
        return r;
    }
    acceptor.connections = ep->connections;
    struct acceptor *a = NULL;
    r = acceptor_new(&acceptor, &a, err);
    (void)pthread_mutex_lock(&ep->server->lock);
    ep->acceptor = a;
    (void)pthread_mutex_unlock(&ep->server->lock);
    return r;
}

static int prepare(struct server *s, struct err *err)
{
    unsigned char boot[3];
    int r = random_bytes(boot, sizeof(boot));
    if (r < 0)
        return err_set(err, -r, "cannot get random bytes");
    hex_encode(boot, sizeof(boot), s->boot);
    r = auth_new(&s->auth, err);
    if (r >= 0)
        r = limiter_new(s->config.rate_limit, s->config.rate_burst, &s->limiter, err);
    if (r >= 0)
        r = metrics_init(&s->metrics, s->config.dialects, s->config.keeper_restarts, err);
    json_object_seed(0); /* once, before threads: hashes must not be guessable */
    return r;
}

int server_new(const struct server_config *config, struct server **ret_server, struct err *err)
{
    _cleanup_fd_ int tcp_fd = config->tcp_fd;
    _cleanup_fd_ int admin_fd = config->admin_fd;
    _cleanup_(server_freep) struct server *s = calloc(1, sizeof(*s));

    if (!s)
        return err_set(err, ENOMEM, "cannot allocate the HTTP server");
    s->config = *config;
    (void)pthread_mutex_init(&s->lock, NULL);
    s->endpoints[0] = (struct endpoint){ .server = s };
    s->endpoints[1] = (struct endpoint){ .server = s, .admin = true };
    int r = prepare(s, err);
    if (r >= 0 && tcp_fd >= 0)
        r = open_endpoint(&s->endpoints[0], take_fd(tcp_fd), err);
    if (r >= 0 && admin_fd >= 0)
        r = open_endpoint(&s->endpoints[1], take_fd(admin_fd), err);
    if (r < 0)
        return r;
    *ret_server = take_ptr(s);
    return 0;
}

static void close_endpoint(struct server *s, struct endpoint *ep)
{
    (void)pthread_mutex_lock(&s->lock);
    struct acceptor *acceptor = ep->acceptor;
    ep->acceptor = NULL;
    (void)pthread_mutex_unlock(&s->lock);
    acceptor_free(acceptor);
}

/* Cut every client, so that no thread waits for one any more. */
static void cut_all(struct server *s, struct endpoint *ep)
{
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    for (struct conn *c = ep->working; c; c = c->next)
        (void)shutdown(c->fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&s->lock);
    workers_free(ep->workers); /* a thread looks at ep->workers until it is done */
    ep->workers = NULL;
}

void server_stop(struct server *server, int timeout_ms)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;

    for (size_t i = 0; i < ARRAY_LEN(server->endpoints); i++)
        close_endpoint(server, &server->endpoints[i]);
    while (atomic_load(&server->at_work) > 0 && clock_mono_ms() < deadline)
        (void)poll(NULL, 0, 10);
    for (size_t i = 0; i < ARRAY_LEN(server->endpoints); i++)
        cut_all(server, &server->endpoints[i]);
}

void server_free(struct server *server)
{
    if (!server)
        return;
    server_stop(server, 0);
    for (size_t i = 0; i < ARRAY_LEN(server->endpoints); i++)
        connections_free(server->endpoints[i].connections);
    auth_free(server->auth);
    limiter_free(server->limiter);
    metrics_done(&server->metrics);
    (void)pthread_mutex_destroy(&server->lock);
    free(server);
}

#include "broker/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "broker/detour.h"
#include "broker/egress_private.h"

#define LOG_MODULE "dial"
#define DIAL_MS 15000
#define DETOUR_MS 30000 /* a proxy dials too */
#define WARN_MS 10000   /* sandboxes can make us fail as often as they like */
#define PEEK_SIZE 4096

static void on_deadline(struct deadline *deadline);
static void on_connected(struct watch *w, uint32_t events);
static void on_word(struct watch *w, uint32_t events);

void dial_cancel(struct dial *d)
{
    if (!d->fn)
        return;
    struct loop *loop = d->net->egress->loop;
    loop_no_deadline(loop, &d->deadline);
    loop_remove(loop, &d->watch);
    if (d->fd >= 0)
        (void)close(d->fd);
    detour_free(d->detour);
    d->detour = NULL;
    d->fd = -1;
    d->fn = NULL;
}

static void warn(const struct dial *d, int failure)
{
    static int64_t last_ms = -WARN_MS;
    int64_t now = clock_mono_ms();
    const struct detour *way = d->detour;
    if (!way || now - last_ms < WARN_MS)
        return;
    last_ms = now;
    const struct proxy *up = &way->legs[way->leg];
    char address[ADDRESS_TEXT_SIZE];
    log_warn("a connection was not made through the %s proxy sandbox=%s proxy=\"%s:%u\" err=%s",
             way->own[way->leg] ? "sandbox's" : "operator's", d->net->id,
             up->host[0] ? up->host : address_text(&up->address, address), up->port,
             strerrorname_np(failure));
}

static void end(struct dial *d, int result)
{
    void (*fn)(struct dial *, int) = d->fn;
    if (result >= 0)
        d->fd = -1; /* it is theirs now */
    else
        warn(d, -result);
    dial_cancel(d);
    fn(d, result);
}

static void on_deadline(struct deadline *deadline)
{
    end(container_of(deadline, struct dial, deadline), -ETIMEDOUT);
}

static int watch(struct dial *d, void (*fn)(struct watch *w, uint32_t events), uint32_t events)
{
    struct loop *loop = d->net->egress->loop;
    loop_remove(loop, &d->watch);
    d->watch.fn = fn;
    return loop_add(loop, &d->watch, d->fd, events);
}

static int begin_connect(struct dial *d, const struct address *to, uint16_t port)
{
    struct sockaddr_storage sa;
    socklen_t len = address_to_sockaddr(to, port, &sa);
    int on = 1;
    d->fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (d->fd < 0)
        return -errno;
    (void)setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(d->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    if (connect(d->fd, (const struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS)
        return -errno;
    return watch(d, on_connected, EPOLLOUT);
}

/* ---- through proxies ---- */

static int find_next(struct dial *d);

/* The leg that was looked for is found, or is not. */
static void on_found(struct lookup *l, const struct dns_answer *a)
{
    struct detour *way = container_of(l, struct detour, lookup);
    struct dial *d = way->dial;
    size_t leg = way->looking;
    int r = 0;
    way->leg = leg; /* of whom we speak if it fails */
    if (a && a->n_addresses)
        way->at[leg] = a->addresses[0];
    else if (a && !way->second) {
        way->second = true;
        r = lookup_begin(&way->lookup, &d->net->egress->resolver, way->legs[leg].host, DNS_AAAA,
                         on_found);
        if (r == 0)
            return;
    }
    r = way->at[leg].bits ? find_next(d) : -EHOSTDOWN;
    if (r < 0)
        end(d, r);
}

/* Where every leg is must be known before the first is called; then it is called. */
static int find_next(struct dial *d)
{
    struct detour *way = d->detour;
    for (; way->looking < way->n_legs; way->looking++) {
        size_t leg = way->looking;
        way->second = false;
        if (!way->at[leg].bits && !detour_find(way, leg)) {
            int r = lookup_begin(&way->lookup, &d->net->egress->resolver, way->legs[leg].host,
                                 DNS_A, on_found);
            return r < 0 ? -EHOSTDOWN : 0;
        }
        if (!detour_allowed(d->net, way, leg)) {
            way->leg = leg;
            return -EACCES;
        }
    }
    way->leg = 0;
    int r = begin_connect(d, &way->at[0], way->legs[0].port);
    return r < 0 ? -EHOSTDOWN : 0;
}

static int say(struct dial *d)
{
    struct buf *out = &d->detour->hop.out;
    /* A fresh socket has room for all of it. */
    if (out->len &&
        send(d->fd, out->data, out->len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)out->len)
        return -EHOSTDOWN;
    buf_clear(out);
    return 0;
}

/* The proxy of this leg is there: TLS if it wants it, and the first words. */
static int greet(struct dial *d)
{
    struct detour *way = d->detour;
    struct egress *e = d->net->egress;
    const struct proxy *up = &way->legs[way->leg];
    if (up->kind == PROXY_HTTPS) {
        char address[ADDRESS_TEXT_SIZE];
        loop_remove(e->loop, &d->watch);
        int r = tls_client_begin(&e->tls_clients, e->loop, e->config.trust, up->host,
                                 address_text(&way->at[way->leg], address), take_fd(d->fd), &d->fd);
        if (r < 0)
            return r;
    }
    int r = detour_talk(way);
    if (r == 0)
        r = say(d);
    return r < 0 ? r : watch(d, on_word, EPOLLIN);
}

/* Only what is the proxy's is taken out of the socket: what follows is for whom we dial. */
static int hear(struct dial *d)
{
    char piece[PEEK_SIZE];
    size_t used = 0;
    ssize_t n = recv(d->fd, piece, sizeof(piece), MSG_DONTWAIT | MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -EHOSTDOWN;
    int r = hop_take(&d->detour->hop, piece, (size_t)n, &used);
    if (recv(d->fd, piece, used, MSG_DONTWAIT) != (ssize_t)used)
        return -EPROTO;
    return r;
}

static void on_word(struct watch *w, uint32_t events)
{
    struct dial *d = container_of(w, struct dial, watch);
    struct detour *way = d->detour;
    int r = hear(d);
    if (r == 0)
        r = say(d);
    if (r > 0 && ++way->leg == way->n_legs) {
        end(d, d->fd);
        return;
    }
    if (r > 0)
        r = greet(d);
    if (r < 0)
        end(d, r);
}

/* ---- both ways ---- */

static void on_connected(struct watch *w, uint32_t events)
{
    struct dial *d = container_of(w, struct dial, watch);
    int failure = 0;
    socklen_t len = sizeof(failure);
    if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &failure, &len) < 0)
        failure = errno;
    if (!failure && !d->detour) {
        end(d, d->fd);
        return;
    }
    int r = !failure ? greet(d) : d->detour ? -EHOSTDOWN : -failure;
    if (r < 0)
        end(d, r);
}

int dial_begin(struct dial *d, struct network *n, const struct address *to, uint16_t port,
               const char *name, void (*fn)(struct dial *d, int fd))
{
    *d = (struct dial){ .net = n, .watch = { -1, on_connected }, .fd = -1, .fn = fn };
    int r = detour_new(n, to, port, name, &d->detour);
    if (r > 0) {
        d->detour->dial = d;
        r = find_next(d);
    } else if (r == 0) {
        r = begin_connect(d, to, port);
    }
    if (r < 0) {
        warn(d, -r);
        dial_cancel(d);
        return r;
    }
    loop_deadline(n->egress->loop, &d->deadline,
                  clock_mono_ms() + (d->detour ? DETOUR_MS : DIAL_MS), on_deadline);
    return 0;
}

/* The way to a bound host: its addresses, a connection to one of them, TLS on it. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <unistd.h>

#include "broker/detour.h"
#include "broker/route_check.h"
#include "broker/tap_private.h"
#include "broker/trust.h"

static int dial_next(struct tap *t, int failure);

void reach_cancel(struct tap *t)
{
    dial_cancel(&t->dial);
    lookup_cancel(&t->lookup);
}

/* Remembered: to OpenSSL, a connection that broke off is in the middle of a handshake again. */
bool reach_is_there(struct upstream *u)
{
    u->shaken = u->shaken || SSL_is_init_finished(u->sock.ssl);
    return u->shaken;
}

bool reach_is_refused(struct upstream *u)
{
    return !reach_is_there(u) && SSL_get_verify_result(u->sock.ssl) != X509_V_OK;
}

/* Nothing of HTTP is to be read; what TLS has to say is read by this. */
bool reach_is_idle(struct upstream *u)
{
    char byte;
    return sock_read(&u->sock, &byte, 1) == -EAGAIN;
}

void reach_on_upstream(struct watch *w, uint32_t events)
{
    struct upstream *u = container_of(w, struct upstream, sock.watch);
    struct tap *t = u->owner;
    bool waits = t->state != TAP_ERRAND && t->state != TAP_TUNNEL;
    if (waits && !reach_is_idle(u)) {
        upstream_close(u);
        t->up = NULL;
    }
    tap_step(t);
}

/* ---- TLS ---- */

static SSL *make_ssl(struct tap *t, int fd)
{
    static const unsigned char http11[] = "\x08http/1.1";
    SSL_CTX *ctx = trust_context(t->net->egress->config.trust);
    SSL *ssl = ctx ? SSL_new(ctx) : NULL;
    if (!ssl || trust_expect(ssl, t->host, "") < 0 ||
        SSL_set_alpn_protos(ssl, http11, sizeof(http11) - 1) != 0 || SSL_set_fd(ssl, fd) != 1) {
        ERR_clear_error();
        SSL_free(ssl);
        return NULL;
    }
    (void)SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
    SSL_set_connect_state(ssl);
    return ssl;
}

static int attach(struct tap *t, int fd)
{
    SSL *ssl = make_ssl(t, fd);
    if (!ssl) {
        (void)close(fd);
        return errand_failed(t, ENOMEM);
    }
    struct upstream *u = upstream_new(t->net->egress->loop, fd);
    if (!u) {
        SSL_free(ssl);
        return errand_failed(t, ENOMEM);
    }
    u->sock.ssl = ssl;
    u->sock.watch.fn = reach_on_upstream;
    u->owner = t;
    u->out.max = t->request.max + u->out.max;
    t->up = u;
    memcpy(t->up_host, t->host, sizeof(t->up_host));
    t->up_port = t->port;
    t->head_timed = false; /* its handshake has a time of its own */
    return errand_start(t);
}

/* ---- addresses ---- */

static void on_dialled(struct dial *d, int fd)
{
    struct tap *t = container_of(d, struct tap, dial);
    tap_go_on(t, fd < 0 ? dial_next(t, -fd) : attach(t, fd));
}

static int dial_next(struct tap *t, int failure)
{
    struct policy_limits limits = egress_limits(t->net->egress);
    while (t->next_address < t->n_addresses) {
        t->rec.to = t->addresses[t->next_address++];
        if (!policy_place_open(&limits, &t->rec.to))
            continue;
        int r = dial_begin(&t->dial, t->net, &t->rec.to, t->port, t->host, on_dialled);
        if (r >= 0)
            return 0;
        failure = -r;
    }
    return errand_failed(t, failure);
}

static void on_looked_up(struct lookup *l, const struct dns_answer *a)
{
    struct tap *t = container_of(l, struct tap, lookup);
    t->n_addresses = 0;
    for (size_t i = 0; a && i < a->n_addresses && t->n_addresses < TAP_ADDRESSES_MAX; i++)
        if (detour_needed(t->net, &a->addresses[i]) || route_check_worth(&a->addresses[i]))
            t->addresses[t->n_addresses++] = a->addresses[i];
    if (t->n_addresses == 0 && l->type == DNS_A &&
        lookup_begin(l, &t->net->egress->resolver, t->host, DNS_AAAA, on_looked_up) >= 0)
        return;
    tap_go_on(t, dial_next(t, ENOENT));
}

int reach_begin(struct tap *t)
{
    struct upstream *u = t->up;
    if (u && t->up_port == t->port && strcmp(t->up_host, t->host) == 0 && reach_is_idle(u)) {
        u->reused = true;
        return errand_start(t);
    }
    upstream_close(u);
    t->up = NULL;
    t->state = TAP_REACH;
    t->next_address = 0;
    if (!t->inner) {
        t->addresses[0] = t->to;
        t->n_addresses = 1;
        return dial_next(t, EACCES);
    }
    int r = lookup_begin(&t->lookup, &t->net->egress->resolver, t->host, DNS_A, on_looked_up);
    return r < 0 ? errand_failed(t, -r) : 0;
}

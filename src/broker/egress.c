#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "broker/egress_private.h"

#define LOG_MODULE "egress"
#define OWN_FRESH_MS 2000
#define PAUSE_MS 500
#define ACCEPTS_MAX 64 /* before others get their turn */
#define DNS_PORT 53

/* ---- what all share ---- */

static void add_own(struct egress *e, const struct sockaddr *sa)
{
    struct address a;
    if (!sa || e->n_own == ARRAY_LEN(e->own) || address_from_sockaddr(sa, &a) < 0)
        return;
    e->own[e->n_own++] = (struct range){ a, a.bits };
}

struct policy_limits egress_limits(struct egress *e)
{
    int64_t now = clock_mono_ms();
    struct ifaddrs *all = NULL;
    if ((e->n_own == 0 || now - e->own_mono_ms > OWN_FRESH_MS) && getifaddrs(&all) == 0) {
        e->n_own = 0;
        e->own_mono_ms = now;
        for (const struct ifaddrs *i = all; i; i = i->ifa_next)
            add_own(e, i->ifa_addr);
        freeifaddrs(all);
    }
    return (struct policy_limits){ e->config.opened, e->config.n_opened, e->own, e->n_own };
}

void egress_answered(struct egress_record *rec, const struct policy_answer *answer)
{
    rec->allowed = answer->verdict == POLICY_ALLOW;
    rec->why = answer->why;
    rec->rule[0] = '\0';
    if (answer->rule)
        (void)policy_rule_text(answer->rule, rec->rule);
}

void egress_record(const struct network *n, struct egress_record *rec)
{
    memcpy(rec->sandbox, n->id, sizeof(rec->sandbox));
    if (n->egress->config.record)
        n->egress->config.record(n->egress->config.arg, rec);
}

/* ---- one sandbox's ---- */

static struct network **slot(struct egress *e, const char *id)
{
    uint32_t h = 2166136261u;
    for (const char *p = id; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    struct network **at = &e->networks[h % ARRAY_LEN(e->networks)];
    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    return at;
}

static void on_tcp(struct watch *w, uint32_t events);

static struct network *need(struct egress *e, const char *id)
{
    struct network **at = slot(e, id);
    struct network *n = *at;
    if (n)
        return n;
    n = calloc(1, sizeof(*n));
    struct pins *pins = pins_new();
    if (!n || !pins) {
        free(n);
        pins_free(pins);
        return NULL;
    }
    *n = (struct network){ .egress = e,
                           .pins = pins,
                           .tcp = { -1, on_tcp },
                           .udp = { -1, names_on_udp },
                           .tcp_fd = -1,
                           .udp_fd = -1,
                           .link_fd = -1 };
    (void)snprintf(n->id, sizeof(n->id), "%s", id);
    *at = n;
    return n;
}

static void drop_fd(struct loop *loop, struct watch *w, int *fd)
{
    if (w)
        loop_remove(loop, w);
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void network_free(struct network *n)
{
    struct loop *loop = n->egress->loop;
    outlets_close(n);
    names_close(n);
    loop_no_deadline(loop, &n->pause);
    drop_fd(loop, NULL, &n->link_fd);
    drop_fd(loop, &n->tcp, &n->tcp_fd);
    drop_fd(loop, &n->udp, &n->udp_fd);
    policy_done(&n->policy);
    pins_free(n->pins);
    loop_later(loop, n); /* its own event may be on the way */
}

static void on_pause_over(struct deadline *d)
{
    struct network *n = container_of(d, struct network, pause);
    if (n->tcp_fd >= 0 && n->tcp.fd < 0)
        (void)loop_add(n->egress->loop, &n->tcp, n->tcp_fd, EPOLLIN);
}

static void place_connection(struct network *n, int fd)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof(sa);
    struct address to;
    if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
        address_from_sockaddr((const struct sockaddr *)&sa, &to) < 0) {
        (void)close(fd);
        return;
    }
    struct sockaddr_in in; /* the port is in the same place in both */
    memcpy(&in, &sa, sizeof(in));
    uint16_t port = ntohs(in.sin_port);
    if (port == DNS_PORT)
        names_stream_begin(n, fd);
    else
        outlet_begin(n, fd, &to, port);
}

static void on_tcp(struct watch *w, uint32_t events)
{
    struct network *n = container_of(w, struct network, tcp);
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(n->tcp_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            place_connection(n, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            log_warn("no room for another connection, waiting sandbox=%s", n->id);
            loop_remove(n->egress->loop, &n->tcp);
            loop_deadline(n->egress->loop, &n->pause, clock_mono_ms() + PAUSE_MS, on_pause_over);
        }
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

/* ---- what is said from outside ---- */

int egress_rules(struct egress *e, const char *id, const char *text, size_t n, bool cut,
                 struct err *err)
{
    struct policy fresh = POLICY_INIT;
    int r = policy_parse(text, n, &fresh, err);
    if (r < 0)
        return r;
    struct network *net = need(e, id);
    if (!net) {
        policy_done(&fresh);
        return err_set(err, ENOMEM, "out of memory");
    }
    policy_done(&net->policy);
    net->policy = fresh;
    if (cut)
        outlets_judge_again(net);
    return 0;
}

int egress_take(struct egress *e, const char *id, enum egress_fd what, int fd, struct err *err)
{
    struct network *n = need(e, id);
    int r = n ? 0 : -ENOMEM;
    switch (r == 0 ? what : EGRESS_FDS) {
    case EGRESS_TCP:
        drop_fd(e->loop, &n->tcp, &n->tcp_fd);
        r = loop_add(e->loop, &n->tcp, fd, EPOLLIN);
        n->tcp_fd = r < 0 ? -1 : fd;
        break;
    case EGRESS_UDP:
        drop_fd(e->loop, &n->udp, &n->udp_fd);
        r = loop_add(e->loop, &n->udp, fd, EPOLLIN);
        n->udp_fd = r < 0 ? -1 : fd;
        break;
    case EGRESS_LINK:
        drop_fd(e->loop, NULL, &n->link_fd);
        n->link_fd = fd;
        break;
    case EGRESS_FDS: r = r < 0 ? r : -EINVAL; break;
    }
    if (r < 0) {
        (void)close(fd);
        return err_set(err, -r, "cannot take the sockets of '%s'", id);
    }
    return 0;
}

void egress_end(struct egress *e, const char *id)
{
    struct network **at = slot(e, id), *n = *at;
    if (!n)
        return;
    *at = n->next;
    network_free(n);
}

int egress_new(struct loop *loop, const struct egress_config *config, struct egress **ret_egress,
               struct err *err)
{
    struct egress *e = calloc(1, sizeof(*e));
    if (!e)
        return err_set(err, ENOMEM, "out of memory");
    e->loop = loop;
    e->config = *config;
    e->resolver.loop = loop;
    for (const char *const *s = config->resolvers; s && *s; s++) {
        int r = resolver_add(&e->resolver, *s);
        if (r == -EINVAL) {
            free(e);
            return err_set(err, EINVAL, "'%s' is no address of a resolver", *s);
        }
    }
    *ret_egress = e;
    return 0;
}

void egress_free(struct egress *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < ARRAY_LEN(e->networks); i++)
        while (e->networks[i])
            egress_end(e, e->networks[i]->id);
    lane_shelf_done(&e->shelf);
    free(e);
}

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "broker/bound.h"
#include "broker/egress_private.h"
#include "broker/leaf.h"
#include "broker/tap.h"

#define LOG_MODULE "egress"
#define PAUSE_MS 500
#define ACCEPTS_MAX 64 /* before others get their turn */
#define DNS_PORT 53

/* ---- what all share ---- */

struct policy_limits egress_limits(struct egress *e)
{
    own_look(&e->own, clock_mono_ms());
    return (struct policy_limits){ e->config.opened, e->config.n_opened, e->own.ranges, e->own.n };
}

void egress_answered(struct egress_record *rec, const struct policy_answer *answer)
{
    rec->allowed = answer->verdict == POLICY_ALLOW;
    rec->why = answer->why;
    rec->rule[0] = '\0';
    if (answer->rule)
        (void)policy_rule_text(answer->rule, rec->rule);
}

/* ---- one sandbox's ---- */

static struct network **slot(struct egress *e, const char *id)
{
    struct network **at = &e->networks[hash_text(id) % ARRAY_LEN(e->networks)];
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
                           .rest = { -1, datagrams_on_rest },
                           .raw = { -1, echoes_on_v4 },
                           .raw6 = { -1, echoes_on_v6 },
                           .tcp_fd = -1,
                           .udp_fd = -1,
                           .rest_fd = -1,
                           .raw_fd = -1,
                           .raw6_fd = -1,
                           .link_fd = -1,
                           .diag_fd = -1 };
    (void)snprintf(n->id, sizeof(n->id), "%s", id);
    ledger_init(n);
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

static void drop_proxy(struct network *n)
{
    if (n->proxy)
        explicit_bzero(n->proxy, sizeof(*n->proxy));
    free(n->proxy);
    n->proxy = NULL;
}

static void network_free(struct network *n)
{
    struct loop *loop = n->egress->loop;
    outlets_close(n, 0);
    taps_close(n);
    bound_unref(n->bound);
    former_done(&n->former);
    leaves_free(n->leaves);
    names_close(n);
    datagrams_close(n);
    ledger_done(n);
    loop_no_deadline(loop, &n->pause);
    drop_fd(loop, NULL, &n->link_fd);
    drop_fd(loop, NULL, &n->diag_fd);
    drop_fd(loop, &n->tcp, &n->tcp_fd);
    drop_fd(loop, &n->udp, &n->udp_fd);
    drop_fd(loop, &n->rest, &n->rest_fd);
    drop_fd(loop, &n->raw, &n->raw_fd);
    drop_fd(loop, &n->raw6, &n->raw6_fd);
    policy_done(&n->policy);
    drop_proxy(n);
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
    else if (tap_is_inner(n, &to, port))
        tap_begin_inner(n, fd);
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
    if (cut) {
        outlets_judge_again(net);
        taps_judge_again(net);
        datagrams_judge_again(net);
    }
    return 0;
}

int egress_proxy(struct egress *e, const char *id, const char *text, size_t n, struct err *err)
{
    struct proxy up;
    int r = n ? proxy_parse(text, n, &up, err) : 0;
    if (r < 0)
        return r;
    struct network *net = need(e, id);
    struct proxy *fresh = n && net ? malloc(sizeof(*fresh)) : NULL;
    if (fresh)
        *fresh = up;
    explicit_bzero(&up, sizeof(up));
    if (!net || (n && !fresh))
        return err_set(err, ENOMEM, "out of memory");
    bool same = fresh && net->proxy ? proxy_equal(fresh, net->proxy) : fresh == net->proxy;
    drop_proxy(net);
    net->proxy = fresh;
    if (!same) {
        outlets_close(net, 0);
        taps_close(net);
        datagrams_close(net);
    }
    return 0;
}

int egress_bindings(struct egress *e, const char *id, const char *packed, size_t n, struct err *err)
{
    struct network *net = need(e, id);
    struct bound *fresh = NULL;
    if (!net)
        return err_set(err, ENOMEM, "out of memory");
    int r = n ? bound_new(packed, n, &fresh, err) : 0;
    former_follow(&net->former, net->bound, fresh);
    bound_unref(net->bound);
    net->bound = fresh;
    taps_judge_again(net);
    return r;
}

int egress_ca(struct egress *e, const char *id, const char *pem, size_t n, struct err *err)
{
    struct network *net = need(e, id);
    struct leaves *fresh = NULL;
    if (!net)
        return err_set(err, ENOMEM, "out of memory");
    int r = n ? leaves_new(pem, n, &fresh, err) : 0;
    leaves_free(net->leaves);
    net->leaves = fresh;
    return r;
}

/* Takes fd if it succeeds. */
static int replace_watched(struct loop *loop, struct watch *w, int *at, int fd)
{
    drop_fd(loop, w, at);
    int r = loop_add(loop, w, fd, EPOLLIN);
    *at = r < 0 ? -1 : fd;
    return r;
}

static int replace_fd(int *at, int fd)
{
    if (*at >= 0)
        (void)close(*at);
    *at = fd;
    return 0;
}

static int take_fd_of(struct network *n, enum egress_fd what, int fd)
{
    struct loop *loop = n->egress->loop;
    switch (what) {
    case EGRESS_TCP: return replace_watched(loop, &n->tcp, &n->tcp_fd, fd);
    case EGRESS_UDP: return replace_watched(loop, &n->udp, &n->udp_fd, fd);
    case EGRESS_REST: return replace_watched(loop, &n->rest, &n->rest_fd, fd);
    case EGRESS_DIAG: n->whos.diag_fd = fd; return replace_fd(&n->diag_fd, fd);
    case EGRESS_LINK: return replace_fd(&n->link_fd, fd);
    case EGRESS_RAW_V4: return replace_watched(loop, &n->raw, &n->raw_fd, fd);
    case EGRESS_RAW_V6: return replace_watched(loop, &n->raw6, &n->raw6_fd, fd);
    case EGRESS_FDS: break;
    }
    return -EINVAL;
}

int egress_take(struct egress *e, const char *id, enum egress_fd what, int fd, struct err *err)
{
    struct network *n = need(e, id);
    int r = n ? take_fd_of(n, what, fd) : -ENOMEM;
    if (r < 0) {
        (void)close(fd);
        return err_set(err, -r, "cannot take the sockets of '%s'", id);
    }
    return 0;
}

int egress_allot(struct egress *e, const char *id, const struct allot_limits *limits,
                 uint64_t spent)
{
    struct network *n = need(e, id);
    if (!n)
        return -ENOMEM;
    egress_limit(n, limits, spent);
    return 0;
}

void egress_who(struct egress *e, const char *id, const struct broker_who_answer *msg)
{
    struct network *n = *slot(e, id);
    if (n)
        whos_answer(&n->whos, msg);
}

void egress_end(struct egress *e, const char *id)
{
    struct network **at = slot(e, id), *n = *at;
    if (!n)
        return;
    *at = n->next;
    network_free(n);
}

/* A connection has two descriptors, and more while much passes; previews need some as well. */
static size_t count_room(void)
{
    struct rlimit files = { .rlim_cur = 1024 };
    (void)getrlimit(RLIMIT_NOFILE, &files);
    return (size_t)files.rlim_cur / 4;
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
    e->room = count_room();
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
    tls_clients_close(&e->tls_clients);
    lane_shelf_done(&e->shelf);
    own_done(&e->own);
    free(e);
}

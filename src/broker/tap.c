#include "broker/tap.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "broker/early.h"
#include "broker/leaf.h"
#include "base/share.h"
#include "broker/tap_private.h"

#define LOG_MODULE "binding"
#define IDLE_MS 75000          /* between requests */
#define HEAD_MS 15000          /* for a head or a handshake, from its first byte on */
#define REACH_MS 60000         /* names, and several addresses in turn */
#define SHAKE_MS 15000         /* for the other handshake */
#define STUCK_MS 120000        /* neither takes nor gives a byte that is waited for */
#define ANSWER_MS (30 * 60000) /* models think long */
#define REPLY_MS 10000
#define DRAIN_MS 2000

static struct head head; /* the loop has one thread */

/* ---- the end ---- */

static void free_tap(struct later *later)
{
    free(container_of(later, struct tap, later));
}

static void tap_close(struct tap *t)
{
    const struct linger now = { .l_onoff = 1, .l_linger = 0 };
    struct loop *loop = t->net->egress->loop;
    if (t->state == TAP_CLOSED)
        return;
    if (t->state == TAP_ERRAND) /* what it got is not all there is */
        (void)setsockopt(t->sock.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    errand_drop(t);
    who_end(&t->who);
    allot_wait_end(&t->net->allot, &t->wait);
    t->state = TAP_CLOSED;
    upstream_close(t->up);
    t->up = NULL;
    loop_no_deadline(loop, &t->deadline);
    sock_close(&t->sock);
    buf_done(&t->in);
    buf_done(&t->out);
    *t->at = t->next;
    if (t->next)
        t->next->at = t->at;
    t->net->n_taps--;
    t->net->egress->n_outlets--;
    loop_defer(loop, &t->later, free_tap);
}

static void on_deadline(struct deadline *d)
{
    struct tap *t = container_of(d, struct tap, deadline);
    if (t->state == TAP_REACH || (t->state == TAP_ERRAND && !t->answered))
        tap_go_on(t, errand_failed(t, ETIMEDOUT));
    else
        tap_close(t);
}

/* ---- steps ---- */

int tap_reply(struct tap *t, enum tap_page page)
{
    errand_drop(t);
    t->keep = false; /* what else it said may be a part of what was refused */
    t->state = TAP_REPLY;
    int r = tap_page(t, page, &t->out);
    return r < 0 ? r : 1;
}

static int read_head(struct tap *t)
{
    size_t n = head_end(t->in.data, t->in.len, t->seen);
    t->seen = t->in.len;
    if (n > HEAD_MAX || (n == 0 && t->in.len >= HEAD_MAX))
        return tap_reply(t, TAP_HEAD_TOO_LARGE);
    if (n > 0) {
        t->seen = 0;
        t->head_timed = false;
        int r = head_request(t->in.data, n, &head);
        if (r < 0)
            return tap_reply(t, r == -EMSGSIZE ? TAP_HEAD_TOO_LARGE : TAP_BAD_REQUEST);
        return errand_begin(t, &head);
    }
    return flow_fill(&t->sock, &t->in);
}

static int send_reply(struct tap *t)
{
    int r = flow_flush(&t->sock, &t->out);
    if (r <= 0)
        return r;
    if (t->keep) {
        t->state = TAP_HEAD;
        return 1;
    }
    /* Closing with bytes unread would reset the connection and take the answer along. */
    sock_end(&t->sock);
    t->state = TAP_DRAIN;
    t->drained = 0;
    buf_done(&t->in);
    return 1;
}

static int step(struct tap *t)
{
    switch (t->state) {
    case TAP_HEAD: return read_head(t);
    case TAP_GATHER: return errand_gather(t);
    case TAP_REACH: return 0;
    case TAP_ERRAND: return errand_step(t);
    case TAP_TUNNEL: return errand_tunnel(t);
    case TAP_REPLY: return send_reply(t);
    case TAP_DRAIN: return flow_drain(&t->sock, &t->drained);
    case TAP_CLOSED: return 0;
    }
    return -EPROTO;
}

/* ---- waiting ---- */

/* What it says is read now; else it waits in its socket. */
static bool is_heard(const struct tap *t)
{
    switch (t->state) {
    case TAP_REACH: return false;
    case TAP_ERRAND: return !t->sent && !t->req.over && t->up->out.len == 0;
    case TAP_TUNNEL: return !t->req.over && t->up->out.len == 0;
    case TAP_HEAD:
    case TAP_GATHER:
    case TAP_REPLY:
    case TAP_DRAIN:
    case TAP_CLOSED: break;
    }
    return true;
}

static uint32_t client_events(const struct tap *t)
{
    uint32_t out = t->out.len ? EPOLLOUT : 0;
    uint32_t in = is_heard(t) && !t->held[ALLOT_SENT] ? EPOLLIN : 0;
    switch (t->state) {
    case TAP_HEAD:
    case TAP_GATHER: return EPOLLIN | EPOLLRDHUP;
    case TAP_REACH:
    case TAP_ERRAND: return out | in | EPOLLRDHUP;
    case TAP_TUNNEL: return out | in;
    case TAP_REPLY: return EPOLLOUT;
    case TAP_DRAIN: return EPOLLIN;
    case TAP_CLOSED: break;
    }
    return 0;
}

static uint32_t upstream_events(const struct tap *t)
{
    uint32_t out = t->up->out.len ? EPOLLOUT : 0;
    bool taken = t->out.len == 0 && !t->held[ALLOT_RECEIVED];
    if (t->state == TAP_ERRAND)
        return out | (!t->answered || taken ? EPOLLIN | EPOLLRDHUP : 0);
    if (t->state == TAP_TUNNEL)
        return out | (!t->res.over && taken ? EPOLLIN : 0);
    return EPOLLIN | EPOLLRDHUP; /* it waits for the next request */
}

static void set_deadline(struct tap *t, int ms)
{
    loop_deadline(t->net->egress->loop, &t->deadline, clock_mono_ms() + ms, on_deadline);
}

/* Once where a byte now and then is to buy no time. */
static void set_once(struct tap *t, bool *set, int ms)
{
    if (!*set)
        set_deadline(t, ms);
    *set = true;
}

static void arm_head(struct tap *t)
{
    if (t->in.len > 0 || (t->sock.ssl && !SSL_is_init_finished(t->sock.ssl))) {
        set_once(t, &t->head_timed, HEAD_MS);
    } else {
        t->head_timed = false;
        set_deadline(t, IDLE_MS);
    }
}

static void arm_deadline(struct tap *t)
{
    switch (t->state) {
    case TAP_HEAD: arm_head(t); break;
    case TAP_REACH: set_deadline(t, REACH_MS); break;
    case TAP_GATHER: set_deadline(t, STUCK_MS); break;
    case TAP_ERRAND:
        if (!reach_is_there(t->up))
            set_once(t, &t->head_timed, SHAKE_MS);
        else
            set_deadline(t, t->out.len || !t->req.over ? STUCK_MS : ANSWER_MS);
        break;
    case TAP_TUNNEL: loop_no_deadline(t->net->egress->loop, &t->deadline); break;
    case TAP_REPLY: set_deadline(t, REPLY_MS); break;
    case TAP_DRAIN:
        if (t->drained == 0)
            set_deadline(t, DRAIN_MS);
        break;
    case TAP_CLOSED: break;
    }
}

void tap_go_on(struct tap *t, int r)
{
    if (r < 0)
        tap_close(t);
    else
        tap_step(t);
}

void tap_step(struct tap *t)
{
    int r;
    while ((r = step(t)) > 0)
        ;
    if (r < 0) {
        tap_close(t);
        return;
    }
    if (t->state == TAP_CLOSED)
        return;
    errand_carried(t);
    r = sock_want(&t->sock, client_events(t));
    if (r >= 0 && t->up)
        r = sock_want(&t->up->sock, upstream_events(t));
    if (r < 0)
        tap_close(t);
    else
        arm_deadline(t);
}

static void on_client(struct watch *w, uint32_t events)
{
    struct tap *t = container_of(w, struct tap, sock.watch);
    bool waits = t->state == TAP_REACH || t->state == TAP_ERRAND;
    if (waits && !is_heard(t) && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
        tap_close(t); /* nobody is left to hear the answer */
    else
        tap_step(t);
}

/* ---- life ---- */

static struct address inner_address(void)
{
    static const uint8_t bytes[4] = TAP_INNER_ADDRESS;
    return address_v4(bytes);
}

bool tap_is_inner(const struct network *n, const struct address *to, uint16_t port)
{
    struct address inner = inner_address();
    return n->bound && port == TAP_INNER_PORT && address_equal(to, &inner);
}

bool tap_may_be(const struct network *n, const struct address *to, uint16_t port)
{
    const char *names[PINS_NAMES_MAX];
    size_t count = n->bound && n->leaves ? pins_names(n->pins, to, clock_mono_ms(), names) : 0;
    for (size_t i = 0; i < count; i++)
        if (bindings_host(&n->bound->bindings, names[i], port))
            return true;
    return false;
}

bool tap_takes(struct network *n, const char *host, const struct address *to, uint16_t port)
{
    struct policy_limits limits = egress_limits(n->egress);
    return n->bound && n->leaves && bindings_host(&n->bound->bindings, host, port) &&
           pins_has(n->pins, host, to, clock_mono_ms()) && policy_place_open(&limits, to);
}

static struct tap *make(struct network *n, int fd)
{
    const int on = 1;
    struct egress *e = n->egress;
    struct tap *t =
        n->n_taps < share(e->room, e->n_outlets, TAPS_MAX) ? calloc(1, sizeof(*t)) : NULL;
    if (!t) {
        log_debug("a connection to a bound host is refused sandbox=%s taps=%zu", n->id, n->n_taps);
        (void)close(fd);
        return NULL;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    t->net = n;
    sock_init(&t->sock, e->loop, fd, on_client);
    t->in = (struct buf)BUF_INIT(HEAD_MAX + 2 * FLOW_PIECE);
    t->out = (struct buf)BUF_INIT(2 * HEAD_MAX + 16 * FLOW_PIECE);
    t->request = (struct buf)BUF_INIT(TAP_GATHER_MAX + 4 * HEAD_MAX);
    t->gathered = (struct buf)BUF_INIT(TAP_GATHER_MAX);
    t->next = n->taps;
    t->at = &n->taps;
    if (t->next)
        t->next->at = &t->next;
    n->taps = t;
    n->n_taps++;
    e->n_outlets++; /* as many descriptors as one */
    return t;
}

void tap_begin_inner(struct network *n, int fd)
{
    struct policy_answer answer;
    struct egress_record rec = { .wall_ms = clock_now_ms(),
                                 .protocol = POLICY_TCP,
                                 .to = inner_address(),
                                 .port = TAP_INNER_PORT };
    if (!egress_admit(n, &answer)) {
        (void)close(fd);
        egress_answered(&rec, &answer);
        egress_record(n, &rec);
        return;
    }
    struct tap *t = make(n, fd);
    if (!t)
        return;
    t->inner = true;
    t->to = inner_address();
    tap_step(t);
}

void tap_begin(struct network *n, int fd, const struct buf *first, const char *host,
               const struct address *to, uint16_t port)
{
    struct tap *t = make(n, fd);
    if (!t)
        return;
    t->to = *to;
    t->port = port;
    (void)snprintf(t->host, sizeof(t->host), "%s", host);
    t->sock.ssl = leaves_accept(n->leaves, host);
    if (!t->sock.ssl || early_set(t->sock.ssl, fd, first->data, first->len) < 0)
        tap_close(t);
    else
        tap_step(t);
}

void taps_judge_again(struct network *n)
{
    for (struct tap *t = n->taps, *next; t; t = next) {
        next = t->next;
        bool busy = t->state != TAP_HEAD && t->state != TAP_REPLY && t->state != TAP_DRAIN;
        if (busy && !errand_may_stay(t))
            tap_close(t);
    }
}

void taps_close(struct network *n)
{
    while (n->taps)
        tap_close(n->taps);
}

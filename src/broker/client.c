#include "broker/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "broker/client_private.h"
#include "broker/entrance.h"

#define LOG_MODULE "preview"
#define CLIENTS_MAX 20000
#define BUSY_MAX 25000 /* one sandbox may have half: over 10,000, and not all clients */
#define PARKED_MAX 8192
#define IDLE_MS 75000   /* between requests */
#define HEAD_MS 15000   /* for a head, from its first byte on */
#define ASKING_MS 60000 /* a sandbox may have to wake up */
#define STUCK_MS 120000 /* a client that neither takes nor gives a byte that is waited for */
#define REPLY_MS 10000
#define DRAIN_MS 2000
#define TOUCH_MS 5000
#define WAITING_MS 2000 /* the same while nothing passes: it might be frozen meanwhile */

static struct head head; /* the loop has one thread */

/* ---- the end ---- */

static void free_client(struct later *later)
{
    free(container_of(later, struct client, later));
}

static void client_close(struct client *c)
{
    if (c->state == CLIENT_CLOSED)
        return;
    c->state = CLIENT_CLOSED;
    exchange_drop(c);
    line_leave(&c->p->idle, &c->idle);
    upstream_close(c->self);
    c->self = NULL;
    loop_no_deadline(c->p->loop, &c->deadline);
    sock_close(&c->sock);
    buf_done(&c->in);
    buf_done(&c->out);
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    c->p->nclients--;
    loop_defer(c->p->loop, &c->later, free_client);
}

/* All was said that was to be said to a server inside; it has not begun to answer. */
static bool is_waiting(const struct client *c)
{
    return c->state == CLIENT_EXCHANGE && c->way.inside && !c->answered && c->req.over &&
           c->out.len == 0;
}

static void on_deadline(struct deadline *d)
{
    struct client *c = container_of(d, struct client, deadline);
    if (c->state == CLIENT_ASKING) {
        (void)client_reply(c, PAGE_FAILED, false);
        client_step(c);
    } else if (is_waiting(c)) {
        client_step(c); /* which touches */
    } else {
        client_close(c);
    }
}

/* ---- steps ---- */

/* What is under way is dropped; true if another request may follow this one. */
static bool end_request(struct client *c, bool keep)
{
    bool unread = c->request.len == 0; /* its head is still in c->in */
    exchange_drop(c);
    /* A request whose body was not read cannot be followed by another one. */
    keep = keep && c->state == CLIENT_ASKING && c->req.body.kind == BODY_EMPTY;
    if (keep && unread)
        buf_drop_front(&c->in, head_end(c->in.data, c->in.len, 0));
    c->keep = keep;
    c->state = CLIENT_REPLY;
    return keep;
}

static int write_page(struct client *c, enum page page, bool keep, const char *cause,
                      int64_t ended_ms)
{
    struct page_about about = { .sandbox = c->way.sandbox,
                                .port = c->way.port,
                                .cause = cause,
                                .ended_ms = ended_ms,
                                .html = c->way.html,
                                .no_body = c->is_head };
    about.keep = end_request(c, keep);
    int r = page_write(page, &about, &c->out);
    return r < 0 ? r : 1;
}

int client_reply(struct client *c, enum page page, bool keep)
{
    return write_page(c, page, keep, "", 0);
}

static enum page page_of(uint32_t verdict)
{
    switch (verdict) {
    case BROKER_NO_SANDBOX: return PAGE_NO_SANDBOX;
    case BROKER_GONE: return PAGE_GONE;
    case BROKER_ASLEEP: return PAGE_ASLEEP;
    case BROKER_CLOSED: return PAGE_CLOSED;
    case BROKER_FORBIDDEN: return PAGE_FORBIDDEN;
    case BROKER_LIMITED: return PAGE_LIMITED;
    default: return PAGE_FAILED;
    }
}

int client_refuse(struct client *c, const struct broker_answer *answer)
{
    char cause[sizeof(answer->cause)];
    (void)snprintf(cause, sizeof(cause), "%.*s", (int)sizeof(cause) - 1, answer->cause);
    return write_page(c, page_of(answer->verdict), c->keep, cause, answer->ended_ms);
}

int client_redirect(struct client *c, int64_t life_s)
{
    size_t n = head_end(c->in.data, c->in.len, 0);
    if (head_request(c->in.data, n, &head) < 0)
        return -EBADMSG;
    bool keep = c->keep && c->req.body.kind == BODY_EMPTY;
    int r = entrance_write(&head, c->way.proof.token, life_s, c->sock.ssl != NULL, keep, &c->out);
    (void)end_request(c, keep);
    return r < 0 ? r : 1;
}

/* What is known is about the request before it. */
static int refuse_head(struct client *c, enum page page)
{
    c->way = (struct way){ 0 };
    c->is_head = false;
    return client_reply(c, page, false);
}

static int read_head(struct client *c)
{
    size_t n = head_end(c->in.data, c->in.len, c->seen);
    c->seen = c->in.len;
    if (n > HEAD_MAX || (n == 0 && c->in.len >= HEAD_MAX))
        return refuse_head(c, PAGE_HEAD_TOO_LARGE);
    if (n > 0) {
        c->seen = 0;
        c->head_timed = false;
        int r = head_request(c->in.data, n, &head);
        if (r < 0)
            return refuse_head(c, r == -EMSGSIZE ? PAGE_HEAD_TOO_LARGE : PAGE_BAD_REQUEST);
        return exchange_begin(c, &head);
    }
    return flow_fill(&c->sock, &c->in);
}

static int send_reply(struct client *c)
{
    int r = flow_flush(&c->sock, &c->out);
    if (r <= 0)
        return r;
    if (c->keep) {
        c->state = CLIENT_HEAD;
        return 1;
    }
    /* Closing with bytes unread would reset the connection and take the answer along. */
    sock_end(&c->sock);
    c->state = CLIENT_DRAIN;
    c->drained = 0;
    buf_done(&c->in);
    return 1;
}

static int step(struct client *c)
{
    switch (c->state) {
    case CLIENT_HEAD: return read_head(c);
    case CLIENT_ASKING: return 0;
    case CLIENT_EXCHANGE: return exchange_step(c);
    case CLIENT_TUNNEL: return tunnel_step(c);
    case CLIENT_REPLY: return send_reply(c);
    case CLIENT_DRAIN: return flow_drain(&c->sock, &c->drained);
    case CLIENT_CLOSED: return 0;
    }
    return -EPROTO;
}

/* ---- waiting ---- */

/* What it says is read now; else it waits in its socket. */
static bool is_heard(const struct client *c)
{
    switch (c->state) {
    case CLIENT_ASKING: return false;
    case CLIENT_EXCHANGE: return !c->sent && !c->req.over && c->up->out.len == 0;
    case CLIENT_TUNNEL: return !c->req.over && c->up->out.len == 0;
    case CLIENT_HEAD:
    case CLIENT_REPLY:
    case CLIENT_DRAIN:
    case CLIENT_CLOSED: break;
    }
    return true;
}

/* A client that is not heard hardly ever says something: it stays watched as it is, which spares
 * a call or two a request, until it does. */
static uint32_t client_events(const struct client *c)
{
    uint32_t out = c->out.len ? EPOLLOUT : 0;
    switch (c->state) {
    case CLIENT_HEAD: return EPOLLIN | EPOLLRDHUP;
    case CLIENT_DRAIN: return EPOLLIN;
    case CLIENT_REPLY: return EPOLLOUT;
    case CLIENT_ASKING:
    case CLIENT_EXCHANGE: return out | EPOLLRDHUP | (is_heard(c) || !c->muted ? EPOLLIN : 0);
    case CLIENT_TUNNEL: return out | (is_heard(c) ? EPOLLIN : 0);
    case CLIENT_CLOSED: break;
    }
    return 0;
}

static uint32_t upstream_events(const struct client *c)
{
    uint32_t out = c->up->out.len ? EPOLLOUT : 0;
    if (c->state == CLIENT_EXCHANGE)
        return out | (!c->answered || c->out.len == 0 ? EPOLLIN | EPOLLRDHUP : 0);
    return out | (!c->res.over && c->out.len == 0 ? EPOLLIN : 0);
}

static void set_deadline(struct client *c, int ms)
{
    loop_deadline(c->p->loop, &c->deadline, clock_mono_ms() + ms, on_deadline);
}

/* With a request, or with what TLS says before the first. */
static bool has_begun(const struct client *c)
{
    return c->in.len > 0 || sock_is_greeting(&c->sock);
}

static void arm_deadline(struct client *c)
{
    switch (c->state) {
    case CLIENT_HEAD:
        if (!has_begun(c))
            set_deadline(c, IDLE_MS);
        else if (!c->head_timed) /* once: a byte now and then buys no time */
            set_deadline(c, HEAD_MS);
        c->head_timed = has_begun(c);
        break;
    case CLIENT_ASKING: set_deadline(c, ASKING_MS); break;
    case CLIENT_EXCHANGE:
        if (c->out.len || !c->req.over)
            set_deadline(c, STUCK_MS);
        else if (is_waiting(c)) /* a server that thinks is at work, though no byte passes */
            set_deadline(c, WAITING_MS);
        else
            loop_no_deadline(c->p->loop, &c->deadline);
        break;
    case CLIENT_TUNNEL: loop_no_deadline(c->p->loop, &c->deadline); break;
    case CLIENT_REPLY: set_deadline(c, REPLY_MS); break;
    case CLIENT_DRAIN:
        if (c->drained == 0)
            set_deadline(c, DRAIN_MS);
        break;
    case CLIENT_CLOSED: break;
    }
}

/* Bytes that pass keep a sandbox awake, however long ago their request began, and so does one that waits. */
static void touch(struct client *c)
{
    int64_t now = clock_mono_ms(), every = is_waiting(c) ? WAITING_MS : TOUCH_MS;
    if (!c->up || !c->way.inside || now - c->touched_ms < every)
        return;
    struct broker_touch msg = { .type = BROKER_TOUCH };
    memcpy(msg.sandbox, c->way.sandbox, ID_SIZE);
    c->touched_ms = now;
    exchange_count(c, false);
    (void)link_send(c->p->link, &msg, sizeof(msg), -1);
}

void client_step(struct client *c)
{
    int r;
    touch(c);
    while ((r = step(c)) > 0)
        ;
    if (r < 0) {
        client_close(c);
        return;
    }
    if (c->state == CLIENT_CLOSED)
        return;
    r = sock_want(&c->sock, client_events(c));
    if (r >= 0 && c->up)
        r = sock_want(&c->up->sock, upstream_events(c));
    if (r < 0) {
        client_close(c);
        return;
    }
    arm_deadline(c);
    if (c->state == CLIENT_HEAD && c->in.len == 0)
        line_join(&c->p->idle, &c->idle);
    else
        line_leave(&c->p->idle, &c->idle);
}

static void on_client(struct watch *w, uint32_t events)
{
    struct client *c = container_of(w, struct client, sock.watch);
    bool heard = is_heard(c);
    if (!heard && c->state != CLIENT_TUNNEL && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))) {
        client_close(c); /* nobody is left to hear the answer */
        return;
    }
    c->muted = !heard && (c->muted || (events & EPOLLIN));
    client_step(c);
}

void client_on_upstream(struct watch *w, uint32_t events)
{
    struct upstream *u = container_of(w, struct upstream, sock.watch);
    client_step(u->owner);
}

/* ---- life ---- */

static bool is_loopback(const struct sockaddr_storage *a)
{
    static const unsigned char mapped[13] = { [10] = 0xff, 0xff, 127 };
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;
    if (a->ss_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    return a->ss_family == AF_INET6 && (IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
                                        memcmp(&v6->sin6_addr, mapped, sizeof(mapped)) == 0);
}

static void know_peer(struct client *c)
{
    socklen_t n = sizeof(c->peer);
    struct address a;
    if (getpeername(c->sock.fd, (struct sockaddr *)&c->peer, &n) >= 0 &&
        address_from_sockaddr((struct sockaddr *)&c->peer, &a) >= 0)
        (void)address_text(&a, c->peer_text);
    else
        (void)snprintf(c->peer_text, sizeof(c->peer_text), "unknown");
    c->near = is_loopback(&c->peer);
}

/* For one who comes: who has waited longest goes, if there is no other place. */
static bool has_room(struct preview *p)
{
    if (p->nclients >= p->most && p->idle.first)
        client_close(container_of(p->idle.first, struct client, idle));
    return p->nclients < p->most;
}

void preview_client(struct preview *p, int fd, struct ssl_st *ssl)
{
    struct client *c = has_room(p) ? calloc(1, sizeof(*c)) : NULL;
    struct sock own;
    sock_init(&own, p->loop, fd, on_client);
    own.ssl = ssl;
    if (!c || fd_set_nonblock(fd, true) < 0) {
        log_debug("a connection is refused clients=%u", p->nclients);
        sock_close(&own);
        free(c);
        return;
    }
    sock_tune(fd);
    c->p = p;
    c->sock = own;
    c->in = (struct buf)BUF_INIT(HEAD_MAX + 2 * FLOW_PIECE);
    c->out = (struct buf)BUF_INIT(2 * HEAD_MAX + 2 * FLOW_PIECE);
    c->request = (struct buf)BUF_INIT(2 * HEAD_MAX);
    c->next = p->clients;
    c->at = &p->clients;
    if (c->next)
        c->next->at = &c->next;
    p->clients = c;
    p->nclients++;
    know_peer(c);
    client_step(c);
}

static unsigned least(rlim_t a, unsigned b)
{
    return a < b ? (unsigned)a : b;
}

/* Of the files that we may have open: half for clients, a fifth and a twentieth for what is behind them; the
 * rest is for what leaves sandboxes (egress.c has a quarter). */
static void divide_files(struct preview *p)
{
    struct rlimit files = { .rlim_cur = 1024 };
    (void)getrlimit(RLIMIT_NOFILE, &files);
    p->most = least(files.rlim_cur / 2, CLIENTS_MAX);
    crowd_init(&p->busy, least(files.rlim_cur / 5, BUSY_MAX));
    parked_init(&p->parked, p->loop, least(files.rlim_cur / 20, PARKED_MAX));
}

int preview_init(struct preview *p, struct loop *loop, struct link *link, const char *domain,
                 struct err *err)
{
    *p = (struct preview){ .loop = loop, .link = link, .domain = domain };
    divide_files(p);
    return asks_init(&p->asks, err);
}

void preview_done(struct preview *p)
{
    while (p->clients)
        client_close(p->clients);
    parked_done(&p->parked);
    own_names_done(&p->own_names);
}

void preview_answer(struct preview *p, const struct broker_answer *answer, int fd)
{
    asks_answer(&p->asks, answer, fd);
}

#include "broker/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "broker/client_private.h"

#define LOG_MODULE "preview"
#define CLIENTS_MAX 20000
#define READ_BYTES (16 * 1024)
#define IDLE_MS 75000   /* between requests */
#define HEAD_MS 15000   /* for a head, from its first byte on */
#define ASKING_MS 60000 /* a sandbox may have to wake up */
#define STUCK_MS 120000 /* a client that neither takes nor gives a byte that is waited for */
#define REPLY_MS 10000
#define DRAIN_MS 2000
#define TOUCH_MS 5000
#define DRAIN_MAX (1024 * 1024)

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

static void on_deadline(struct deadline *d)
{
    struct client *c = container_of(d, struct client, deadline);
    if (c->state == CLIENT_ASKING) {
        (void)client_reply(c, PAGE_FAILED, false);
        client_step(c);
    } else {
        client_close(c);
    }
}

/* ---- steps ---- */

int client_reply(struct client *c, enum page page, bool keep)
{
    struct page_about about = {
        .sandbox = c->way.sandbox, .port = c->way.port, .html = c->way.html, .no_body = c->is_head
    };
    bool unread = c->request.len == 0; /* its head is still in c->in */
    exchange_drop(c);
    /* A request whose body was not read cannot be followed by another one. */
    keep = keep && c->state == CLIENT_ASKING && c->req.body.kind == BODY_EMPTY;
    if (keep && unread)
        buf_drop_front(&c->in, head_end(c->in.data, c->in.len, 0));
    c->keep = about.keep = keep;
    c->state = CLIENT_REPLY;
    int r = page_write(page, &about, &c->out);
    return r < 0 ? r : 1;
}

static int read_head(struct client *c)
{
    if (c->in.len == 0 && !c->head_timed)
        c->way = (struct way){ 0 };
    size_t n = head_end(c->in.data, c->in.len, c->seen);
    c->seen = c->in.len;
    if (n > HEAD_MAX || (n == 0 && c->in.len >= HEAD_MAX))
        return client_reply(c, PAGE_HEAD_TOO_LARGE, false);
    if (n > 0) {
        c->seen = 0;
        c->head_timed = false;
        int r = head_request(c->in.data, n, &head);
        if (r < 0)
            return client_reply(c, r == -EMSGSIZE ? PAGE_HEAD_TOO_LARGE : PAGE_BAD_REQUEST, false);
        return exchange_begin(c, &head);
    }
    int r = buf_reserve(&c->in, READ_BYTES);
    if (r < 0)
        return r;
    ssize_t got = sock_read(&c->sock, c->in.data + c->in.len, READ_BYTES);
    if (got == -EAGAIN && c->in.len == 0)
        buf_done(&c->in);
    if (got <= 0)
        return got == -EAGAIN ? 0 : -ECONNRESET;
    c->in.len += (size_t)got;
    return 1;
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

static int drain(struct client *c)
{
    char nowhere[4096];
    while (c->drained < DRAIN_MAX) {
        ssize_t n = c->sock.ssl ? recv(c->sock.fd, nowhere, sizeof(nowhere), MSG_DONTWAIT)
                                : sock_read(&c->sock, nowhere, sizeof(nowhere));
        if (n == -EAGAIN || (n == -1 && errno == EAGAIN))
            return 0;
        if (n <= 0)
            return -ECONNRESET;
        c->drained += (size_t)n;
    }
    return -ECONNRESET;
}

static int step(struct client *c)
{
    switch (c->state) {
    case CLIENT_HEAD: return read_head(c);
    case CLIENT_ASKING: return 0;
    case CLIENT_EXCHANGE: return exchange_step(c);
    case CLIENT_TUNNEL: return tunnel_step(c);
    case CLIENT_REPLY: return send_reply(c);
    case CLIENT_DRAIN: return drain(c);
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

static void arm_deadline(struct client *c)
{
    switch (c->state) {
    case CLIENT_HEAD:
        if (c->in.len == 0)
            set_deadline(c, IDLE_MS);
        else if (!c->head_timed) /* once: a byte now and then buys no time */
            set_deadline(c, HEAD_MS);
        c->head_timed = c->in.len > 0;
        break;
    case CLIENT_ASKING: set_deadline(c, ASKING_MS); break;
    case CLIENT_EXCHANGE:
        if (c->out.len || !c->req.over)
            set_deadline(c, STUCK_MS);
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

/* Bytes that pass keep a sandbox awake, however long ago their request began. */
static void touch(struct client *c)
{
    int64_t now = clock_mono_ms();
    if (!c->up || !c->way.inside || now - c->touched_ms < TOUCH_MS)
        return;
    struct broker_touch msg = { .type = BROKER_TOUCH };
    memcpy(msg.sandbox, c->way.sandbox, ID_SIZE);
    c->touched_ms = now;
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
    if (r < 0)
        client_close(c);
    else
        arm_deadline(c);
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

static void know_peer(struct client *c)
{
    socklen_t n = sizeof(c->peer);
    struct address a;
    if (getpeername(c->sock.fd, (struct sockaddr *)&c->peer, &n) >= 0 &&
        address_from_sockaddr((struct sockaddr *)&c->peer, &a) >= 0)
        (void)address_text(&a, c->peer_text);
    else
        (void)snprintf(c->peer_text, sizeof(c->peer_text), "unknown");
}

void preview_client(struct preview *p, int fd, struct ssl_st *ssl)
{
    const int on = 1;
    struct client *c = p->nclients < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
    struct sock own;
    sock_init(&own, p->loop, fd, on_client);
    own.ssl = ssl;
    if (!c || fd_set_nonblock(fd, true) < 0) {
        log_debug("a connection is refused clients=%u", p->nclients);
        sock_close(&own);
        free(c);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
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

int preview_init(struct preview *p, struct loop *loop, struct link *link, const char *domain,
                 struct err *err)
{
    *p = (struct preview){ .loop = loop, .link = link, .domain = domain };
    parked_init(&p->parked, loop);
    return asks_init(&p->asks, err);
}

void preview_done(struct preview *p)
{
    while (p->clients)
        client_close(p->clients);
    parked_done(&p->parked);
}

void preview_answer(struct preview *p, const struct broker_answer *answer, int fd)
{
    asks_answer(&p->asks, answer, fd);
}

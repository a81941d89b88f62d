/* One request and its answer: which server, the way there, the way back. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/client_private.h"

#define READ_BYTES (16 * 1024)

static struct head head; /* the loop has one thread */

void exchange_drop(struct client *c)
{
    ask_cancel(&c->ask);
    upstream_close(c->up);
    c->up = NULL;
    buf_done(&c->request);
}

/* ---- which server ---- */

static void on_answer(struct ask *ask, const struct broker_answer *answer, int fd);

static int ask_warrend(struct client *c)
{
    struct broker_ask msg = { .type = BROKER_ASK, .port = c->way.port };
    memcpy(msg.sandbox, c->way.sandbox, ID_SIZE);
    memcpy(msg.token, c->way.token, BROKER_TOKEN_SIZE);
    ask_begin(&c->p->asks, &c->ask, on_answer);
    msg.number = c->ask.number;
    c->state = CLIENT_ASKING;
    if (link_send(c->p->link, &msg, sizeof(msg), -1) < 0)
        return client_reply(c, PAGE_FAILED, false);
    return 1;
}

static enum page page_of(uint32_t verdict)
{
    switch (verdict) {
    case BROKER_NO_SANDBOX: return PAGE_NO_SANDBOX;
    case BROKER_ASLEEP: return PAGE_ASLEEP;
    case BROKER_CLOSED: return PAGE_CLOSED;
    case BROKER_FORBIDDEN: return PAGE_FORBIDDEN;
    default: return PAGE_FAILED;
    }
}

static void adopt(struct client *c, struct upstream *u)
{
    u->owner = c;
    u->sock.watch.fn = client_on_upstream;
    c->up = u;
}

/* The head is still in c->in: it was well when it was read first. */
static int start_fresh(struct client *c, const struct broker_answer *answer, int fd)
{
    struct parked_verdict v = { 0 };
    memcpy(v.token, c->way.token, sizeof(v.token));
    memcpy(v.host, answer->host, sizeof(v.host));
    v.host[sizeof(v.host) - 1] = '\0';
    parked_learn(&c->p->parked, c->way.sandbox, c->way.port, &v);
    struct upstream *u = upstream_new(c->p->loop, fd);
    if (!u)
        return client_reply(c, PAGE_FAILED, false);
    adopt(c, u);
    if (c->request.len > 0) /* tried before, on a connection that had ended */
        return exchange_start(c, NULL, v.host);
    size_t n = head_end(c->in.data, c->in.len, 0);
    if (head_request(c->in.data, n, &head) < 0)
        return -EBADMSG;
    return exchange_start(c, &head, v.host);
}

static void on_answer(struct ask *ask, const struct broker_answer *answer, int fd)
{
    struct client *c = container_of(ask, struct client, ask);
    int r;
    if (answer->verdict == BROKER_OK && fd >= 0) {
        r = start_fresh(c, answer, fd);
    } else {
        if (fd >= 0)
            (void)close(fd);
        parked_forget(&c->p->parked, c->way.sandbox, c->way.port);
        r = client_reply(c, page_of(answer->verdict), c->keep);
    }
    if (r < 0)
        (void)client_reply(c, PAGE_FAILED, false);
    client_step(c);
}

static bool is_open(const struct upstream *u)
{
    char byte;
    return recv(u->sock.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* warrend itself: one end of a pair goes to it, and is as good as a connection. */
static int reach_self(struct client *c, const struct head *h)
{
    struct upstream *kept = c->self;
    c->self = NULL;
    if (kept && is_open(kept)) {
        kept->reused = true;
        adopt(c, kept);
        return exchange_start(c, h, "");
    }
    upstream_close(kept);
    struct broker_pass msg = { .type = BROKER_PASS, .peer_len = sizeof(c->peer), .peer = c->peer };
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return client_reply(c, PAGE_FAILED, false);
    struct upstream *u = upstream_new(c->p->loop, pair[0]);
    if (link_send(c->p->link, &msg, sizeof(msg), pair[1]) < 0 || !u) {
        upstream_close(u);
        return client_reply(c, PAGE_FAILED, false);
    }
    adopt(c, u);
    return exchange_start(c, h, "");
}

static int reach_inside(struct client *c, const struct head *h)
{
    struct parked_verdict v;
    /* A connection that waited may have ended a moment ago, and what has a body cannot be sent twice. */
    struct upstream *u =
        h->body != BODY_EMPTY || h->upgrade
            ? NULL
            : parked_take(&c->p->parked, c->way.sandbox, c->way.port, c->way.token, &v);
    if (!u)
        return ask_warrend(c);
    adopt(c, u);
    return exchange_start(c, h, v.host);
}

int exchange_begin(struct client *c, const struct head *h)
{
    c->is_head = text_is(h->method, "HEAD");
    c->keep = h->keep_alive && h->minor == 1;
    c->upgrade = h->upgrade;
    c->sent = c->answered = c->lost = c->retried = false;
    c->req_ended = c->res_ended = false;
    c->touched_ms = clock_mono_ms(); /* warrend was asked, just now or within a second */
    flow_start(&c->req, h->body, h->length);
    if (way_find(h, c->p->domain, &c->way) < 0)
        return client_reply(c, PAGE_BAD_REQUEST, false);
    return c->way.inside ? reach_inside(c, h) : reach_self(c, h);
}

/* ---- the way there ---- */

int exchange_start(struct client *c, const struct head *h, const char *host)
{
    int r = 0;
    if (h) {
        struct rewrite how = { .tls = c->sock.ssl != NULL, .peer = c->peer_text, .host = host };
        way_rewrite(&c->way, &how);
        r = rewrite_request(h, &how, &c->request);
        buf_drop_front(&c->in, h->size);
    }
    if (r >= 0)
        r = buf_append(&c->up->out, c->request.data, c->request.len);
    c->state = CLIENT_EXCHANGE;
    if (r < 0)
        return r;
    r = flow_gather(&c->req, &c->in, &c->up->out);
    return r == -EBADMSG ? client_reply(c, PAGE_BAD_REQUEST, false) : r < 0 ? r : 1;
}

/* It ended before it answered. If it had been used before, it may have ended before the request
 * reached it: that is tried again, once, on a new one. */
static int server_lost(struct client *c)
{
    bool again = c->up->reused && c->up->in.len == 0 && !c->retried &&
                 c->req.body.kind == BODY_EMPTY && c->request.len > 0;
    upstream_close(c->up);
    c->up = NULL;
    if (!again)
        return client_reply(c, c->way.inside ? PAGE_BROKEN : PAGE_FAILED, false);
    c->retried = true;
    c->sent = c->lost = false;
    if (c->way.inside)
        return ask_warrend(c);
    return reach_self(c, NULL);
}

static int send_request(struct client *c)
{
    switch (flow_run(&c->req, &c->sock, &c->in, &c->up->sock, &c->up->out)) {
    case FLOW_DONE: c->sent = true; return 0;
    case FLOW_WAIT_FROM:
    case FLOW_WAIT_TO: return 0;
    case FLOW_FROM_LOST: return -ECONNRESET;
    case FLOW_BROKEN:
        if (c->answered)
            return -EBADMSG;
        return client_reply(c, PAGE_BAD_REQUEST, false);
    case FLOW_TO_LOST: /* it may have answered before it stopped listening */
        buf_done(&c->up->out);
        c->sent = c->lost = true;
        return 0;
    }
    return -EPROTO;
}

/* ---- the way back ---- */

/* 1: more came, 0: wait. */
static int fill_answer(struct client *c)
{
    struct buf *in = &c->up->in;
    if (in->len >= HEAD_MAX)
        return client_reply(c, PAGE_BROKEN, false);
    int r = buf_reserve(in, READ_BYTES);
    if (r < 0)
        return r;
    ssize_t n = sock_read(&c->up->sock, in->data + in->len, READ_BYTES);
    if (n == -EAGAIN)
        return 0;
    if (n <= 0)
        return server_lost(c);
    in->len += (size_t)n;
    return 1;
}

static int start_tunnel(struct client *c, const struct head *h)
{
    if (!c->upgrade || !h->upgrade)
        return client_reply(c, PAGE_BROKEN, false);
    int r = rewrite_answer(h, true, &c->out);
    buf_drop_front(&c->up->in, h->size);
    flow_start(&c->req, BODY_UNTIL_END, 0);
    flow_start(&c->res, BODY_UNTIL_END, 0);
    c->state = CLIENT_TUNNEL;
    return r < 0 ? r : 1;
}

static int start_answer(struct client *c, const struct head *h)
{
    c->keep = c->keep && h->body != BODY_UNTIL_END && c->req.over;
    c->up->keep = h->keep_alive;
    int r = rewrite_answer(h, c->keep, &c->out);
    buf_drop_front(&c->up->in, h->size);
    flow_start(&c->res, h->body, h->length);
    if (r >= 0)
        r = flow_gather(&c->res, &c->up->in, &c->out);
    c->answered = true;
    buf_done(&c->request);
    return r < 0 ? r : 1;
}

static int read_answer(struct client *c)
{
    struct buf *in = &c->up->in;
    size_t n = head_end(in->data, in->len, 0);
    if (n == 0)
        return fill_answer(c);
    if (head_answer(in->data, n, c->is_head, &head) < 0)
        return client_reply(c, PAGE_BROKEN, false);
    if (head.status == 101)
        return start_tunnel(c, &head);
    if (head.status >= 200)
        return start_answer(c, &head);
    int r = rewrite_answer(&head, true, &c->out); /* 100, 103: on the way to the answer */
    buf_drop_front(in, n);
    if (r >= 0)
        r = flow_flush(&c->sock, &c->out);
    return r < 0 ? r : 1;
}

static int finish(struct client *c)
{
    struct upstream *u = c->up;
    c->up = NULL;
    buf_done(&c->request);
    if (!u->keep || u->in.len > 0 || u->out.len > 0 || !c->sent || c->lost)
        upstream_close(u);
    else if (c->way.inside)
        parked_put(&c->p->parked, c->way.sandbox, c->way.port, u);
    else
        c->self = u;
    if (c->self) {
        (void)sock_want(&c->self->sock, 0);
        buf_done(&c->self->in);
    }
    c->state = c->keep ? CLIENT_HEAD : CLIENT_REPLY; /* with nothing left to say */
    return 1;
}

int exchange_step(struct client *c)
{
    int r = 0;
    if (!c->sent)
        r = send_request(c);
    if (r != 0)
        return r;
    if (!c->answered)
        return read_answer(c);
    switch (flow_run(&c->res, &c->up->sock, &c->up->in, &c->sock, &c->out)) {
    case FLOW_DONE: return finish(c);
    case FLOW_WAIT_FROM:
    case FLOW_WAIT_TO: return 0;
    /* Cut, so that the client sees that something is missing. */
    case FLOW_FROM_LOST:
    case FLOW_TO_LOST:
    case FLOW_BROKEN: return -ECONNRESET;
    }
    return -EPROTO;
}

/* ---- no longer HTTP ---- */

static int pass_tunnel(struct flow *f, struct sock *from, struct buf *early, struct sock *to,
                       struct buf *pending, bool *ended)
{
    switch (flow_run(f, from, early, to, pending)) {
    case FLOW_DONE:
        if (!*ended)
            sock_end(to);
        *ended = true;
        return 0;
    case FLOW_WAIT_FROM:
    case FLOW_WAIT_TO: return 0;
    case FLOW_FROM_LOST:
    case FLOW_TO_LOST:
    case FLOW_BROKEN: return -ECONNRESET;
    }
    return -EPROTO;
}

int tunnel_step(struct client *c)
{
    struct upstream *u = c->up;
    int r = pass_tunnel(&c->req, &c->sock, &c->in, &u->sock, &u->out, &c->req_ended);
    if (r >= 0)
        r = pass_tunnel(&c->res, &u->sock, &u->in, &c->sock, &c->out, &c->res_ended);
    return r < 0 ? r : c->req_ended && c->res_ended ? -ECONNRESET : 0;
}

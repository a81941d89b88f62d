/* One request and its answer: which server, the way there, the way back. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "broker/client_private.h"
#include "broker/tally.h"

static struct head head; /* the loop has one thread */

void exchange_count(struct client *c, bool begun)
{
    if (!c->up || !c->way.inside || !c->p->tally)
        return;
    struct sock *s = &c->up->sock;
    struct tally_row row = {
        .kind = TALLY_PREVIEW, .connections = begun, .sent_bytes = s->got, .received_bytes = s->put
    };
    s->got = s->put = 0;
    if (!begun && !row.sent_bytes && !row.received_bytes)
        return;
    memcpy(row.sandbox, c->way.sandbox, sizeof(row.sandbox));
    tally_add(c->p->tally, &row);
}

static void leave(struct client *c)
{
    crowd_leave(&c->p->busy, c->ticket);
    c->ticket = 0;
}

void exchange_drop(struct client *c)
{
    leave(c);
    ask_cancel(&c->ask);
    exchange_count(c, false);
    upstream_close(c->up);
    c->up = NULL;
    buf_done(&c->request);
}

/* ---- which server ---- */

static void on_answer(struct ask *ask, const struct broker_answer *answer, int fd);

static int ask_warrend(struct client *c)
{
    struct broker_ask msg = {
        .type = BROKER_ASK, .port = c->way.port, .look = c->look, .peer = c->peer
    };
    memcpy(msg.sandbox, c->way.sandbox, ID_SIZE);
    msg.proof = c->way.proof;
    ask_begin(&c->p->asks, &c->ask, on_answer);
    msg.number = c->ask.number;
    c->state = CLIENT_ASKING;
    if (link_send(c->p->link, &msg, sizeof(msg), -1) < 0)
        return client_reply(c, PAGE_FAILED, false);
    return 1;
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
    const struct parked_verdict *v =
        parked_learn(&c->p->parked, c->way.sandbox, c->way.port, &c->way.proof, answer);
    struct upstream *u = upstream_new(c->p->loop, fd);
    if (!u || !v) {
        upstream_close(u);
        return client_reply(c, PAGE_FAILED, false);
    }
    adopt(c, u);
    if (c->request.len > 0) /* tried before, on a connection that had ended */
        return exchange_start(c, NULL, v);
    size_t n = head_end(c->in.data, c->in.len, 0);
    if (head_request(c->in.data, n, &head) < 0)
        return -EBADMSG;
    return exchange_start(c, &head, v);
}

/* Whoever else has its place there keeps it when this one may not enter. */
static bool is_lost(uint32_t verdict)
{
    return verdict != BROKER_FORBIDDEN && verdict != BROKER_LIMITED;
}

static void on_answer(struct ask *ask, const struct broker_answer *answer, int fd)
{
    struct client *c = container_of(ask, struct client, ask);
    int r;
    if (answer->verdict == BROKER_OK && c->look) {
        r = client_redirect(c, answer->life_s);
    } else if (answer->verdict == BROKER_OK && fd >= 0) {
        r = start_fresh(c, answer, take_fd(fd));
    } else {
        if (is_lost(answer->verdict))
            parked_forget(&c->p->parked, c->way.sandbox, c->way.port);
        r = client_refuse(c, answer);
    }
    if (fd >= 0)
        (void)close(fd);
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
        return exchange_start(c, h, NULL);
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
    return exchange_start(c, h, NULL);
}

/* It does no harm twice. Of others nobody can say, when a connection breaks, whether they were done. */
static bool may_repeat(const struct head *h)
{
    static const char *const methods[] = { "GET", "HEAD", "OPTIONS", "PUT", "DELETE" };
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (text_is(h->method, methods[i]))
            return h->body == BODY_EMPTY;
    return false;
}

static int reach_inside(struct client *c, const struct head *h)
{
    const struct parked_verdict *v;
    bool plain = text_is(h->method, "GET") || c->is_head;
    c->ticket = crowd_enter(&c->p->busy, c->way.sandbox);
    if (c->ticket == 0)
        return client_reply(c, PAGE_FAILED, false);
    /* What the URL of a page shows, its history keeps: a person is sent on without the token. What
     * a script opens, a WebSocket or a stream of events, cannot be redirected, and need not be. */
    c->look = c->way.by_query && c->way.html && plain && !h->upgrade && h->body == BODY_EMPTY;
    if (c->look)
        return ask_warrend(c);
    /* A connection that waited may have ended a moment ago: what cannot be sent twice gets a new one. */
    struct upstream *u = !may_repeat(h) || h->upgrade ? NULL
                                                      : parked_take(&c->p->parked, c->way.sandbox,
                                                                    c->way.port, &c->way.proof, &v);
    if (!u)
        return ask_warrend(c);
    adopt(c, u);
    return exchange_start(c, h, v);
}

int exchange_begin(struct client *c, const struct head *h)
{
    struct way_map map = { c->p->domain, &c->p->own_names, c->sock.ssl != NULL };
    c->is_head = text_is(h->method, "HEAD");
    c->keep = h->keep_alive && h->minor == 1;
    c->upgrade = rewrite_upgrades(h);
    c->look = c->sent = c->answered = c->lost = c->retried = false;
    c->req_ended = c->res_ended = false;
    c->before = 0;
    c->touched_ms = clock_mono_ms(); /* warrend was asked, just now or within a second */
    flow_start(&c->req, h->body, h->length);
    c->req.body.bare = true;
    c->way = (struct way){ 0 };
    if (way_find(h, &map, &c->way) < 0)
        return client_reply(c, PAGE_BAD_REQUEST, false);
    if (c->way.nobody)
        return client_reply(c, PAGE_NOBODY, false);
    return c->way.inside ? reach_inside(c, h) : reach_self(c, h);
}

/* ---- the way there ---- */

int exchange_start(struct client *c, const struct head *h, const struct parked_verdict *v)
{
    int r = 0;
    if (h) {
        struct rewrite how = { .tls = c->sock.ssl != NULL,
                               .near = c->near,
                               .peer = c->peer_text,
                               .host = v ? v->host : "",
                               .data = v ? v->data : NULL };
        way_rewrite(&c->way, &how);
        r = rewrite_request(h, &how, &c->request);
        buf_drop_front(&c->in, h->size);
        exchange_count(c, true);
    }
    if (r >= 0)
        r = buf_append(&c->up->out, c->request.data, c->request.len);
    c->state = CLIENT_EXCHANGE;
    if (r < 0)
        return r;
    r = flow_gather(&c->req, &c->in, &c->up->out);
    if (!c->req.over)
        sock_hurry(&c->sock);
    return r == -EBADMSG ? client_reply(c, PAGE_BAD_REQUEST, false) : r < 0 ? r : 1;
}

/* It ended before it answered. If it had been used before, it may have ended before the request
 * reached it: that is tried again, once, on a new one. */
static int server_lost(struct client *c)
{
    bool again = c->up->reused && c->up->in.len == 0 && !c->retried &&
                 c->req.body.kind == BODY_EMPTY && c->request.len > 0;
    exchange_count(c, false);
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
    enum flow_state s = flow_run(&c->req, &c->sock, &c->in, &c->up->sock, &c->up->out);
    int r = flow_sent(s, &c->up->out, &c->lost);
    c->sent |= r > 0;
    if (r == -EBADMSG && !c->answered)
        return client_reply(c, PAGE_BAD_REQUEST, false);
    return r < 0 ? r : 0;
}

/* ---- the way back ---- */

/* 1: more came, 0: wait. */
static int fill_answer(struct client *c)
{
    if (c->up->in.len >= HEAD_MAX)
        return client_reply(c, PAGE_BROKEN, false);
    int r = flow_fill(&c->up->sock, &c->up->in);
    return r == -ECONNRESET ? server_lost(c) : r;
}

static int start_tunnel(struct client *c, const struct head *h)
{
    if (!c->upgrade || !h->upgrade)
        return client_reply(c, PAGE_BROKEN, false);
    int r = rewrite_answer(h, c->way.inside, true, &c->out);
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
    int r = rewrite_answer(h, c->way.inside, c->keep, &c->out);
    buf_drop_front(&c->up->in, h->size);
    flow_start(&c->res, h->body, h->length);
    if (r >= 0)
        r = flow_gather(&c->res, &c->up->in, &c->out);
    c->answered = true;
    if (!c->res.over && c->way.inside)
        sock_hurry(&c->up->sock); /* servers that write head and body apart are common */
    buf_done(&c->request);
    return r < 0 ? r : 1;
}

static int read_answer(struct client *c)
{
    struct buf *in = &c->up->in;
    size_t n = head_end(in->data, in->len, c->up->seen);
    c->up->seen = n == 0 ? in->len : 0;
    if (n == 0)
        return fill_answer(c);
    if (head_answer(in->data, n, c->is_head, &head) < 0)
        return client_reply(c, PAGE_BROKEN, false);
    if (head.status == 101)
        return start_tunnel(c, &head);
    if (head.status >= 200)
        return start_answer(c, &head);
    /* One that never gets to its answer would have us read for ever, and nobody else would be served. */
    c->before += n;
    if (c->before > HEAD_MAX)
        return client_reply(c, PAGE_BROKEN, false);
    int r = rewrite_answer(&head, c->way.inside, true,
                           &c->out); /* 100, 103: on the way to the answer */
    buf_drop_front(in, n);
    if (r >= 0)
        r = flow_flush(&c->sock, &c->out);
    return r < 0 ? r : 1;
}

static int finish(struct client *c)
{
    struct upstream *u = c->up;
    exchange_count(c, false);
    leave(c);
    c->up = NULL;
    buf_done(&c->request);
    bool last = c->way.inside && c->req.body.kind != BODY_EMPTY; /* as it was told */
    if (last || !u->keep || u->in.len > 0 || u->out.len > 0 || !c->sent || c->lost)
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
    r = flow_result(flow_run(&c->res, &c->up->sock, &c->up->in, &c->sock, &c->out));
    return r > 0 ? finish(c) : r;
}

/* ---- no longer HTTP ---- */

int tunnel_step(struct client *c)
{
    struct upstream *u = c->up;
    enum flow_state out = flow_run(&c->req, &c->sock, &c->in, &u->sock, &u->out);
    int r = flow_tunnelled(out, &u->sock, &c->req_ended);
    if (r >= 0) {
        enum flow_state in = flow_run(&c->res, &u->sock, &u->in, &c->sock, &c->out);
        r = flow_tunnelled(in, &c->sock, &c->res_ended);
    }
    return r < 0 ? r : c->req_ended && c->res_ended ? -ECONNRESET : 0;
}

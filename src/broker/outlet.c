/* One connection out of a sandbox: judged, dialled, relayed.
 *
 * What may be allowed by its name is not told before its first bytes were read. Protocols in which the
 * server speaks first would wait for ever, so where the resolved name alone is good
 * enough for them the server is dialled meanwhile and may speak; what the client says is still
 * held until it is known to be what it should. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/egress_private.h"
#include "net/opening.h"
#include "net/requests.h"

#define OPENING_MS 30000 /* to say something that we wait for */
#define DIAL_MS 15000
#define REFUSAL_MS 1000 /* to take the reason */
#define HTTP_PORT 80
#define HTTP_PIECE (16 * 1024)
#define HTTP_EARLY_MAX (HEAD_MAX + 2 * HTTP_PIECE) /* what requests_take may give at once */

enum outlet_state {
    OUTLET_OPENING,  /* its first bytes are awaited; the server may be dialled already */
    OUTLET_RELAY,    /* nothing is looked at any more; the server may still be dialled */
    OUTLET_REFUSING, /* a client of HTTP is told why */
    OUTLET_CLOSED,
};

struct outlet {
    struct network *net;
    struct outlet *next, **at;
    struct later later;
    struct deadline deadline;
    struct watch in_watch, out_watch;
    uint32_t in_wanted, out_wanted;
    int in, out; /* the sandbox's side, the world's */
    enum outlet_state state;
    bool connected;
    bool heard; /* a refused client has sent something */
    bool owed;  /* a record of its end: what was refused has its record already */
    enum policy_name named;
    struct requests *http; /* requests that are judged one by one; NULL: there are none */
    struct lane up, down;
    struct policy_answer answer; /* the latest; its rule is good until the rules change */
    struct egress_record rec;
};

static void on_in(struct watch *w, uint32_t events);
static void on_out(struct watch *w, uint32_t events);

/* ---- ends ---- */

static void free_outlet(struct later *l)
{
    free(container_of(l, struct outlet, later));
}

/* A reset rather than an end: the other side must not take what it got for all there is. */
static void close_side(int *fd, bool reset)
{
    const struct linger now = { .l_onoff = 1, .l_linger = 0 };
    if (*fd < 0)
        return;
    if (reset)
        (void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    (void)close(*fd);
    *fd = -1;
}

static void end(struct outlet *o, bool reset)
{
    struct egress *e = o->net->egress;
    if (o->state == OUTLET_CLOSED)
        return;
    o->state = OUTLET_CLOSED;
    if (o->owed) {
        o->rec.sent_bytes = o->up.passed;
        o->rec.received_bytes = o->down.passed;
        egress_record(o->net, &o->rec);
    }
    loop_no_deadline(e->loop, &o->deadline);
    loop_remove(e->loop, &o->in_watch);
    loop_remove(e->loop, &o->out_watch);
    close_side(&o->in, reset);
    close_side(&o->out, reset);
    lane_done(&o->up, &e->shelf);
    lane_done(&o->down, &e->shelf);
    if (o->http)
        requests_done(o->http);
    free(o->http);
    *o->at = o->next;
    if (o->next)
        o->next->at = o->at;
    o->net->n_outlets--;
    loop_defer(e->loop, &o->later, free_outlet);
}

static void on_deadline(struct deadline *d)
{
    struct outlet *o = container_of(d, struct outlet, deadline);
    if (o->state == OUTLET_RELAY && !o->connected)
        o->rec.failure = ETIMEDOUT;
    end(o, true);
}

/* ---- waiting ---- */

static int want(struct outlet *o, struct watch *w, int fd, uint32_t *wanted, uint32_t events)
{
    struct loop *loop = o->net->egress->loop;
    int r = 0;
    if (fd < 0 || events == *wanted)
        return 0;
    if (events == 0)
        loop_remove(loop, w); /* a hangup that nobody can act on must not keep the loop busy */
    else if (*wanted == 0)
        r = loop_add(loop, w, fd, events);
    else
        r = loop_change(loop, w, events);
    *wanted = events;
    return r;
}

static void want_both(struct outlet *o, uint32_t in, uint32_t out)
{
    if (want(o, &o->in_watch, o->in, &o->in_wanted, in) < 0 ||
        want(o, &o->out_watch, o->out, &o->out_wanted, out) < 0)
        end(o, true);
}

/* ---- the verdict ---- */

static struct policy_answer judge_named(struct outlet *o, const char *given)
{
    struct policy_limits limits = egress_limits(o->net->egress);
    struct policy_flow f = { .protocol = POLICY_TCP,
                             .to = o->rec.to,
                             .port = o->rec.port,
                             .named = POLICY_NAME_GIVEN,
                             .name = given,
                             .pinned = &given };
    f.n_pinned = pins_has(o->net->pins, given, &o->rec.to, clock_mono_ms()) ? 1 : 0;
    return policy_judge(&o->net->policy, &limits, &f);
}

static struct policy_answer judge(struct outlet *o, enum policy_name named)
{
    const char *names[PINS_NAMES_MAX];
    if (named == POLICY_NAME_GIVEN)
        return judge_named(o, o->rec.name);
    struct policy_limits limits = egress_limits(o->net->egress);
    struct policy_flow f = { .protocol = POLICY_TCP,
                             .to = o->rec.to,
                             .port = o->rec.port,
                             .named = named,
                             .pinned = names };
    f.n_pinned = pins_names(o->net->pins, &o->rec.to, clock_mono_ms(), names);
    if (f.n_pinned) /* for the log */
        (void)snprintf(o->rec.name, sizeof(o->rec.name), "%s", names[0]);
    return policy_judge(&o->net->policy, &limits, &f);
}

static void say_why(struct outlet *o)
{
    char body[1024], head[256], address[ADDRESS_TEXT_SIZE];
    const char *to = o->rec.name[0] ? o->rec.name : address_text(&o->rec.to, address);
    /* Names and rules are made of letters that need no escape. */
    int n = snprintf(body, sizeof(body),
                     "{\"error\":{\"code\":\"network_denied\",\"message\":\"the network of this "
                     "sandbox does not reach %s port %u%s%s%s\"}}\n",
                     to, o->rec.port, o->rec.rule[0] ? " (rule '" : "", o->rec.rule,
                     o->rec.rule[0] ? "')" : "");
    int h = snprintf(head, sizeof(head),
                     "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\n"
                     "Content-Length: %d\r\nConnection: close\r\n\r\n",
                     n);
    /* A fresh socket has room for it. */
    if (send(o->in, head, (size_t)h, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE) == h)
        (void)send(o->in, body, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(o->in, SHUT_WR);
}

/* Fast: a reset. Who speaks HTTP gets the reason first. */
static void refuse(struct outlet *o, const struct policy_answer *answer, bool http)
{
    struct egress *e = o->net->egress;
    o->owed = false;
    egress_answered(&o->rec, answer);
    egress_record(o->net, &o->rec);
    if (!http) {
        end(o, true);
        return;
    }
    o->state = OUTLET_REFUSING;
    loop_remove(e->loop, &o->out_watch);
    close_side(&o->out, true);
    o->heard = o->up.early.len > 0 || o->http;
    if (o->heard)
        say_why(o);
    loop_deadline(e->loop, &o->deadline, clock_mono_ms() + REFUSAL_MS, on_deadline);
    want_both(o, EPOLLIN, 0);
}

/* Read and forget what a refused client says, until it has taken the answer and ends. */
static void hear_out(struct outlet *o)
{
    char rest[4096];
    ssize_t n = recv(o->in, rest, sizeof(rest), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end(o, n < 0);
        return;
    }
    if (!o->heard)
        say_why(o);
    o->heard = true;
}

/* ---- dialling ---- */

static void tune(int fd)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static void dial(struct outlet *o)
{
    struct sockaddr_storage sa;
    socklen_t len = address_to_sockaddr(&o->rec.to, o->rec.port, &sa);
    o->out = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int r = o->out < 0 ? -errno : 0;
    if (r == 0) {
        tune(o->out);
        r = connect(o->out, (const struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS ? -errno
                                                                                           : 0;
    }
    if (r < 0) {
        o->rec.failure = -r;
        end(o, true);
    }
}

/* 1: it is there, 0: wait, below zero: it is not. */
static int dialled(struct outlet *o)
{
    int failure = 0;
    socklen_t len = sizeof(failure);
    struct sockaddr_storage sa;
    socklen_t sa_len = sizeof(sa);
    if (getsockopt(o->out, SOL_SOCKET, SO_ERROR, &failure, &len) < 0)
        return -errno;
    if (failure)
        return -failure;
    if (getpeername(o->out, (struct sockaddr *)&sa, &sa_len) < 0)
        return errno == ENOTCONN ? 0 : -errno;
    return 1;
}

/* ---- the first bytes ---- */

static void allow(struct outlet *o, const struct policy_answer *answer)
{
    egress_answered(&o->rec, answer);
    o->owed = true;
    o->state = OUTLET_RELAY;
    if (o->out < 0)
        dial(o);
    if (o->state == OUTLET_RELAY && !o->connected)
        loop_deadline(o->net->egress->loop, &o->deadline, clock_mono_ms() + DIAL_MS, on_deadline);
}

/* 1: something came, 0: wait, below zero: it is over. */
static int hear(struct outlet *o)
{
    struct buf *b = &o->up.early;
    size_t room = OPENING_MAX - b->len < 2048 ? OPENING_MAX - b->len : 2048;
    if (buf_reserve(b, room) < 0)
        return -ENOMEM;
    ssize_t n = recv(o->in, b->data + b->len, room, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    b->len += (size_t)n;
    return n == 0 ? -ECONNRESET : 1;
}

/* ---- HTTP ---- */

static bool host_allowed(void *arg, const char host[HOST_SIZE])
{
    struct outlet *o = arg;
    o->answer = judge_named(o, host);
    bool allowed = o->answer.verdict == POLICY_ALLOW;
    if (allowed || o->http->count == 0) {
        o->named = POLICY_NAME_GIVEN;
        memcpy(o->rec.name, host, HOST_SIZE);
    } else { /* what was done before goes on under its own name */
        struct egress_record rec = o->rec;
        memcpy(rec.name, host, HOST_SIZE);
        egress_answered(&rec, &o->answer);
        egress_record(o->net, &rec);
    }
    return allowed;
}

/* What may pass of these bytes goes to the lane. What may not ends the connection: an answer to an
 * earlier request may be on its way, so a reason has its place before the first only. */
static int take_requests(struct outlet *o, const char *p, size_t n)
{
    int r = requests_take(o->http, p, n, host_allowed, o, &o->up.early);
    if (r < 0 && r != -EACCES)
        o->answer = (struct policy_answer){ POLICY_DENY, POLICY_BY_DEFAULT, NULL };
    if (r < 0 && o->http->count)
        end(o, true);
    else if (r < 0)
        refuse(o, &o->answer, true);
    else if (o->state == OUTLET_OPENING && o->http->count)
        allow(o, &o->answer);
    return r;
}

static void begin_requests(struct outlet *o)
{
    struct buf first = o->up.early;
    o->up.early = (struct buf)BUF_INIT(HTTP_EARLY_MAX);
    o->http = malloc(sizeof(*o->http));
    if (o->http) {
        *o->http = (struct requests)REQUESTS_INIT;
        (void)take_requests(o, first.data, first.len);
    } else {
        end(o, true);
    }
    buf_done(&first);
}

/* As a lane runs, but for the look at what passes. */
static enum lane_state run_requests(struct outlet *o)
{
    static char piece[HTTP_PIECE]; /* the loop has one thread */
    for (;;) {
        int r = o->out >= 0 && o->connected ? lane_push(&o->up, o->out) : o->up.early.len == 0;
        if (r <= 0)
            return r < 0 ? LANE_LOST : LANE_WAIT_TO;
        if (o->up.ended)
            return shutdown(o->out, SHUT_WR) < 0 && errno != ENOTCONN ? LANE_LOST : LANE_DONE;
        ssize_t n = recv(o->in, piece, sizeof(piece), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return LANE_WAIT_FROM;
        if (n < 0 || (n == 0 && o->out < 0))
            return LANE_LOST;
        o->up.ended = n == 0;
        if (n > 0 && take_requests(o, piece, (size_t)n) < 0)
            return LANE_WAIT_FROM; /* it is closed, or about to be */
    }
}

static void read_opening(struct outlet *o)
{
    if (o->http) {
        if (run_requests(o) == LANE_LOST)
            end(o, true);
        return;
    }
    int r = hear(o);
    if (r <= 0) {
        if (r < 0)
            end(o, r != -ECONNRESET);
        return;
    }
    char name[HOST_SIZE];
    enum opening what = opening_read(o->up.early.data, o->up.early.len, o->rec.port, name);
    switch (what) {
    case OPENING_MORE: return;
    case OPENING_TLS:
        o->named = POLICY_NAME_GIVEN;
        memcpy(o->rec.name, name, sizeof(name));
        break;
    case OPENING_OTHER: o->named = POLICY_NAME_NONE; break;
    case OPENING_HTTP:
    case OPENING_BAD: o->named = POLICY_NAME_BAD; break;
    }
    o->answer = judge(o, o->named);
    if (what == OPENING_HTTP)
        begin_requests(o);
    else if (o->answer.verdict == POLICY_ALLOW)
        allow(o, &o->answer);
    else
        refuse(o, &o->answer, false);
}

/* ---- the relay ---- */

static void relay(struct outlet *o)
{
    struct lane_shelf *shelf = &o->net->egress->shelf;
    bool held = o->state == OUTLET_OPENING;
    enum lane_state up = held      ? LANE_WAIT_FROM
                         : o->http ? run_requests(o)
                                   : lane_run(&o->up, shelf, o->in, o->out);
    if (o->state == OUTLET_CLOSED || o->state == OUTLET_REFUSING)
        return;
    enum lane_state down = lane_run(&o->down, shelf, o->out, o->in);
    if (up == LANE_LOST || down == LANE_LOST) {
        end(o, true);
        return;
    }
    if (up == LANE_DONE && down == LANE_DONE) {
        end(o, false);
        return;
    }
    want_both(o, (up == LANE_WAIT_FROM ? EPOLLIN : 0u) | (down == LANE_WAIT_TO ? EPOLLOUT : 0u),
              (down == LANE_WAIT_FROM ? EPOLLIN : 0u) | (up == LANE_WAIT_TO ? EPOLLOUT : 0u));
}

static void step(struct outlet *o)
{
    if (o->state == OUTLET_CLOSED || o->state == OUTLET_REFUSING)
        return;
    if (o->out >= 0 && !o->connected) {
        int r = dialled(o);
        if (r < 0) {
            o->rec.failure = -r;
            end(o, true);
            return;
        }
        o->connected = r > 0;
        if (o->connected && o->state == OUTLET_RELAY)
            loop_no_deadline(o->net->egress->loop, &o->deadline);
    }
    if (o->connected)
        relay(o);
    else
        want_both(o, o->state == OUTLET_OPENING ? EPOLLIN : 0u, o->out >= 0 ? EPOLLOUT : 0u);
}

static void on_in(struct watch *w, uint32_t events)
{
    struct outlet *o = container_of(w, struct outlet, in_watch);
    if (o->state == OUTLET_REFUSING)
        hear_out(o);
    else if (o->state == OUTLET_OPENING && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        read_opening(o);
    step(o);
}

static void on_out(struct watch *w, uint32_t events)
{
    step(container_of(w, struct outlet, out_watch));
}

/* ---- life ---- */

static void begin(struct outlet *o)
{
    struct policy_answer answer = judge(o, POLICY_NAME_UNKNOWN);
    switch (answer.verdict) {
    case POLICY_DENY: refuse(o, &answer, o->rec.port == HTTP_PORT); return;
    case POLICY_ALLOW: allow(o, &answer); break;
    case POLICY_WAIT:
        answer = judge(o, POLICY_NAME_NONE);
        /* Those two ports are the client's to speak on first, and in tongues that name a host. */
        if (answer.verdict == POLICY_ALLOW && o->rec.port != HTTP_PORT && o->rec.port != 443) {
            egress_answered(&o->rec, &answer);
            o->owed = true;
            dial(o);
        } else {
            loop_deadline(o->net->egress->loop, &o->deadline, clock_mono_ms() + OPENING_MS,
                          on_deadline);
        }
        break;
    }
    step(o);
}

void outlet_begin(struct network *n, int fd, const struct address *to, uint16_t port)
{
    struct outlet *o = n->n_outlets < OUTLETS_MAX ? calloc(1, sizeof(*o)) : NULL;
    if (!o) {
        close_side(&fd, true);
        return;
    }
    *o = (struct outlet){
        .net = n,
        .in_watch = { -1, on_in },
        .out_watch = { -1, on_out },
        .in = fd,
        .out = -1,
        .named = POLICY_NAME_UNKNOWN,
        .rec = { .wall_ms = clock_now_ms(), .protocol = POLICY_TCP, .to = *to, .port = port }
    };
    lane_init(&o->up, OPENING_MAX);
    lane_init(&o->down, 0);
    tune(fd);
    o->next = n->outlets;
    o->at = &n->outlets;
    if (o->next)
        o->next->at = &o->next;
    n->outlets = o;
    n->n_outlets++;
    begin(o);
}

void outlets_judge_again(struct network *n)
{
    for (struct outlet *o = n->outlets, *next; o; o = next) {
        next = o->next;
        if (o->state != OUTLET_RELAY && o->state != OUTLET_OPENING)
            continue;
        struct policy_answer answer = judge(o, o->named);
        if (answer.verdict == POLICY_WAIT && o->state == OUTLET_RELAY)
            answer = judge(o, POLICY_NAME_NONE); /* it was let through unread */
        if (answer.verdict == POLICY_DENY)
            end(o, true);
    }
}

void outlets_close(struct network *n)
{
    while (n->outlets)
        end(n->outlets, true);
}

/* One connection out of a sandbox: judged, dialled, relayed.
 *
 * What may be allowed by its name is not told before its first bytes were read. Protocols in which the
 * server speaks first would wait for ever, so where the resolved name alone is good
 * enough for them the server is dialled meanwhile and may speak; what the client says is still
 * held until it is known to be what it should (outlet_opening.c, outlet_http.c). */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/outlet_private.h"
#include "base/share.h"
#include "broker/tap.h"
#include "net/opening.h"
#include "net/requests.h"

#define OPENING_MS 30000 /* to say something that we wait for */
#define KEEP_IDLE_S 75
#define HTTP_PORT 80

static void on_in(struct watch *w, uint32_t events);
static void on_out(struct watch *w, uint32_t events);

bool outlet_is_over(const struct outlet *o)
{
    return o->state != OUTLET_OPENING && o->state != OUTLET_RELAY;
}

/* ---- ends ---- */

static void free_outlet(struct later *l)
{
    free(container_of(l, struct outlet, later));
}

void outlet_close_side(int *fd, bool reset)
{
    const struct linger now = { .l_onoff = 1, .l_linger = 0 };
    if (*fd < 0)
        return;
    if (reset)
        (void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    (void)close(*fd);
    *fd = -1;
}

void outlet_end(struct outlet *o, bool reset)
{
    struct egress *e = o->net->egress;
    if (o->state == OUTLET_CLOSED)
        return;
    o->state = OUTLET_CLOSED;
    if (o->owed) {
        egress_carried(o->net, &o->rec, o->up.passed, o->down.passed);
        egress_record_who(o->net, &o->rec, &o->who);
    }
    who_end(&o->who);
    allot_wait_end(&o->net->allot, &o->wait);
    loop_no_deadline(e->loop, &o->deadline);
    dial_cancel(&o->dial);
    loop_remove(e->loop, &o->in_watch);
    loop_remove(e->loop, &o->out_watch);
    outlet_close_side(&o->in, reset);
    outlet_close_side(&o->out, reset);
    lane_done(&o->up, &e->shelf);
    lane_done(&o->down, &e->shelf);
    if (o->http)
        requests_done(o->http);
    free(o->http);
    *o->at = o->next;
    if (o->next)
        o->next->at = o->at;
    o->net->n_outlets--;
    e->n_outlets--;
    loop_defer(e->loop, &o->later, free_outlet);
}

void outlet_on_deadline(struct deadline *d)
{
    struct outlet *o = container_of(d, struct outlet, deadline);
    if (o->state == OUTLET_OPENING)
        o->rec.failure = ETIMEDOUT;
    if (o->state == OUTLET_HELD)
        outlet_tell_refused(o);
    else
        outlet_end(o, true);
}

void outlet_wait_opening(struct outlet *o)
{
    if (!o->deadline.at) /* a byte now and then buys no time */
        loop_deadline(o->net->egress->loop, &o->deadline, clock_mono_ms() + OPENING_MS,
                      outlet_on_deadline);
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

void outlet_want(struct outlet *o, uint32_t in, uint32_t out)
{
    if (want(o, &o->in_watch, o->in, &o->in_wanted, in) < 0 ||
        want(o, &o->out_watch, o->out, &o->out_wanted, out) < 0)
        outlet_end(o, true);
}

/* ---- the verdict ---- */

struct policy_answer outlet_judge_named(struct outlet *o, const char *given)
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

struct policy_answer outlet_judge(struct outlet *o, enum policy_name named)
{
    const char *names[PINS_NAMES_MAX];
    if (named == POLICY_NAME_GIVEN)
        return outlet_judge_named(o, o->rec.name);
    struct policy_limits limits = egress_limits(o->net->egress);
    struct policy_flow f = { .protocol = POLICY_TCP,
                             .to = o->rec.to,
                             .port = o->rec.port,
                             .named = named,
                             .name = o->rec.name, /* read only for POLICY_NAME_HIDDEN */
                             .pinned = names };
    f.n_pinned = pins_names(o->net->pins, &o->rec.to, clock_mono_ms(), names);
    if (f.n_pinned && named != POLICY_NAME_HIDDEN) /* for the log */
        (void)snprintf(o->rec.name, sizeof(o->rec.name), "%s", names[0]);
    return policy_judge(&o->net->policy, &limits, &f);
}

/* ---- dialling ---- */

/* The kernel of a client that ended without a word forgets it after a minute, and says so when asked:
 * else a server that never ends would keep its place for ever. */
static void tune(int fd)
{
    int on = 1, idle_s = KEEP_IDLE_S;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
}

static void fail(struct outlet *o, int failure)
{
    o->rec.failure = failure;
    outlet_end(o, true);
}

bool outlet_is_dialling(const struct outlet *o)
{
    return o->dial.fn != NULL;
}

static void step(struct outlet *o);

static void on_dialled(struct dial *d, int fd)
{
    struct outlet *o = container_of(d, struct outlet, dial);
    o->out = fd < 0 ? -1 : fd;
    if (fd < 0)
        fail(o, -fd);
    else
        step(o);
}

static void dial(struct outlet *o)
{
    bool named = o->named == POLICY_NAME_GIVEN || o->named == POLICY_NAME_HIDDEN;
    const char *said = named ? o->rec.name : "";
    int r = dial_begin(&o->dial, o->net, &o->rec.to, o->rec.port, said, on_dialled);
    if (r < 0)
        fail(o, -r);
}

static void begun(struct outlet *o, const struct policy_answer *answer)
{
    egress_answered(&o->rec, answer);
    if (!o->rec.flow)
        egress_begun(o->net, &o->rec);
    o->owed = true;
}

void outlet_allow(struct outlet *o, const struct policy_answer *answer)
{
    begun(o, answer);
    o->state = OUTLET_RELAY;
    loop_no_deadline(o->net->egress->loop, &o->deadline);
    if (o->out < 0 && !outlet_is_dialling(o))
        dial(o);
}

/* ---- the relay ---- */

static void on_turn(struct allot_wait *w)
{
    step(container_of(w, struct outlet, wait));
}

static void relay(struct outlet *o)
{
    struct lane_shelf *shelf = &o->net->egress->shelf;
    bool held = o->state == OUTLET_OPENING;
    o->up.may = egress_may(o->net, ALLOT_SENT);
    o->down.may = egress_may(o->net, ALLOT_RECEIVED);
    enum lane_state up = held      ? LANE_WAIT_FROM
                         : o->http ? outlet_run_requests(o)
                                   : lane_run(&o->up, shelf, o->in, o->out);
    if (outlet_is_over(o))
        return;
    int heard = up == LANE_HELD ? outlet_hear_answer(o) : 1;
    if (heard < 0) {
        outlet_end(o, true);
        return;
    }
    if (heard == 0) {
        outlet_want(o, EPOLLERR, EPOLLIN);
        return;
    }
    if (up == LANE_HELD) /* it goes on, in one way or the other */
        up = o->http ? outlet_run_requests(o) : lane_run(&o->up, shelf, o->in, o->out);
    if (outlet_is_over(o))
        return;
    enum lane_state down = lane_run(&o->down, shelf, o->out, o->in);
    egress_carried(o->net, &o->rec, o->up.passed, o->down.passed);
    if (up == LANE_LOST || down == LANE_LOST) {
        outlet_end(o, true);
        return;
    }
    if (up == LANE_DONE && down == LANE_DONE) {
        outlet_end(o, false);
        return;
    }
    uint32_t in = (up == LANE_WAIT_FROM ? EPOLLIN : 0u) | (down == LANE_WAIT_TO ? EPOLLOUT : 0u);
    if (up == LANE_WAIT_TURN || down == LANE_WAIT_TURN)
        egress_wait(o->net, &o->wait, on_turn);
    else if (!in && down != LANE_DONE)
        in = EPOLLERR; /* it has said all it will; that it is gone must still be heard */
    outlet_want(o, in,
                (down == LANE_WAIT_FROM ? EPOLLIN : 0u) | (up == LANE_WAIT_TO ? EPOLLOUT : 0u));
}

static void step(struct outlet *o)
{
    if (outlet_is_over(o))
        return;
    if (o->out >= 0)
        relay(o);
    else
        outlet_want(o, o->state == OUTLET_OPENING ? EPOLLIN : 0u, 0);
}

static void on_in(struct watch *w, uint32_t events)
{
    struct outlet *o = container_of(w, struct outlet, in_watch);
    if (o->state == OUTLET_REFUSING)
        outlet_hear_out(o);
    else if (o->state == OUTLET_HELD && o->unheard)
        outlet_listen_in(o);
    else if (o->state == OUTLET_OPENING && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        outlet_read_opening(o);
    else if (o->in_wanted == EPOLLERR && (events & EPOLLERR))
        outlet_end(o, true);
    step(o);
}

static void on_out(struct watch *w, uint32_t events)
{
    step(container_of(w, struct outlet, out_watch));
}

/* ---- life ---- */

static void begin(struct outlet *o, bool admitted)
{
    struct policy_answer answer = o->answer;
    if (admitted)
        answer = outlet_judge(o, POLICY_NAME_UNKNOWN);
    bool bound =
        admitted && answer.why != POLICY_BY_PLACE && tap_may_be(o->net, &o->rec.to, o->rec.port);
    if (bound)
        answer.verdict = POLICY_WAIT; /* whatever the rules say */
    switch (answer.verdict) {
    case POLICY_DENY: outlet_refuse(o, &answer, o->rec.port == HTTP_PORT); return;
    case POLICY_ALLOW: outlet_allow(o, &answer); break;
    case POLICY_WAIT:
        answer = outlet_judge(o, POLICY_NAME_NONE);
        /* Those two ports are the client's to speak on first, and in tongues that name a host. */
        if (answer.verdict == POLICY_ALLOW && !bound && o->rec.port != HTTP_PORT &&
            o->rec.port != 443) {
            begun(o, &answer);
            dial(o);
        } else {
            outlet_wait_opening(o);
        }
        break;
    }
    step(o);
}

void outlet_begin(struct network *n, int fd, const struct address *to, uint16_t port)
{
    /* Those that are refused count while they are told so. */
    size_t most = share(n->egress->room, n->egress->n_outlets, OUTLETS_MAX);
    struct outlet *o = n->n_outlets < 2 * most ? calloc(1, sizeof(*o)) : NULL;
    if (!o) {
        outlet_close_side(&fd, true);
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
    bool admitted = egress_admit(n, &o->answer);
    n->n_outlets++;
    n->egress->n_outlets++;
    (void)egress_ask_who(n, fd, &o->who, outlet_on_who);
    begin(o, admitted);
}

void outlets_judge_again(struct network *n)
{
    for (struct outlet *o = n->outlets, *next; o; o = next) {
        next = o->next;
        if (outlet_is_over(o))
            continue;
        struct policy_answer answer = outlet_judge(o, o->named);
        if (answer.verdict == POLICY_WAIT && o->state == OUTLET_RELAY)
            answer = outlet_judge(o, POLICY_NAME_NONE); /* it was let through unread */
        if (answer.verdict == POLICY_DENY)
            outlet_end(o, true);
    }
}

void outlets_close(struct network *n, int failure)
{
    while (n->outlets) {
        if (failure)
            n->outlets->rec.failure = failure;
        outlet_end(n->outlets, true);
    }
}

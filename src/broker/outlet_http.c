/* Requests over plain HTTP: each is judged by the host that it names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "broker/outlet_private.h"
#include "net/requests.h"

#define HTTP_PIECE (16 * 1024)
#define HTTP_EARLY_MAX (HEAD_MAX + 2 * HTTP_PIECE) /* what requests_take may give at once */

static bool host_allowed(void *arg, const char host[HOST_SIZE])
{
    struct outlet *o = arg;
    o->answer = host[0] ? outlet_judge_named(o, host) : outlet_judge(o, POLICY_NAME_BAD);
    bool allowed = o->answer.verdict == POLICY_ALLOW;
    if (allowed || o->http->count == 0) {
        o->named = host[0] ? POLICY_NAME_GIVEN : POLICY_NAME_BAD;
        memcpy(o->rec.name, host, HOST_SIZE);
    } else { /* what was done before goes on under its own name */
        struct egress_record rec = o->rec;
        memcpy(rec.name, host, HOST_SIZE);
        rec.flow = 0; /* it is one of its own */
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
    if (r < 0 && r != -EACCES) {
        o->answer = (struct policy_answer){ POLICY_DENY, POLICY_BY_DEFAULT, NULL };
        o->rec.name[0] = '\0'; /* it is not for the name that was resolved, if for any */
    }
    if (r < 0 && o->http->count)
        outlet_end(o, true);
    else if (r < 0)
        outlet_refuse(o, &o->answer, true);
    else if (o->state == OUTLET_OPENING && o->http->count)
        outlet_allow(o, &o->answer);
    return r;
}

void outlet_begin_requests(struct outlet *o)
{
    struct buf first = o->up.early;
    o->up.early = (struct buf)BUF_INIT(HTTP_EARLY_MAX);
    o->http = malloc(sizeof(*o->http));
    if (o->http) {
        *o->http = (struct requests)REQUESTS_INIT;
        (void)take_requests(o, first.data, first.len);
    } else {
        outlet_end(o, true);
    }
    buf_done(&first);
}

/* As a lane runs, but for the look at what passes. */
enum lane_state outlet_run_requests(struct outlet *o)
{
    static char piece[HTTP_PIECE]; /* the loop has one thread */
    for (;;) {
        int r = o->out >= 0 ? lane_push(&o->up, o->out) : o->up.early.len == 0;
        if (r <= 0)
            return r < 0 ? LANE_LOST : LANE_WAIT_TO;
        if (o->http->asking)
            return LANE_HELD;
        if (o->up.ended)
            return shutdown(o->out, SHUT_WR) < 0 && errno != ENOTCONN ? LANE_LOST : LANE_DONE;
        if (o->up.may == 0)
            return LANE_WAIT_TURN;
        ssize_t n =
            recv(o->in, piece, o->up.may < sizeof(piece) ? o->up.may : sizeof(piece), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return LANE_WAIT_FROM;
        if (n < 0 || (n == 0 && o->out < 0))
            return LANE_LOST;
        o->up.ended = n == 0;
        o->up.may -= (size_t)n;
        if (n > 0 && take_requests(o, piece, (size_t)n) < 0)
            return LANE_WAIT_FROM; /* it is closed, or about to be */
    }
}

/* What the server says to the request for a WebSocket: 1 it was understood, 0: wait, below zero: over. */
int outlet_hear_answer(struct outlet *o)
{
    struct buf *b = &o->down.early;
    b->max = HEAD_MAX;
    if (buf_reserve(b, HEAD_MAX - b->len) < 0)
        return -ENOMEM;
    ssize_t n = recv(o->out, b->data + b->len, HEAD_MAX - b->len, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ECONNRESET;
    b->len += (size_t)n;
    int r = requests_answered(o->http, b->data, b->len, host_allowed, o, &o->up.early);
    if (r == 2) {
        requests_done(o->http);
        free(o->http);
        o->http = NULL;
    }
    return r > 0 ? 1 : r;
}

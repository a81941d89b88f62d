/* The first bytes of a connection: what they say it is, and what becomes of it. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "broker/outlet_private.h"
#include "broker/tap.h"
#include "net/opening.h"

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
    return n == 0 ? -ENODATA : 1;
}

/* To a host that is bound: its requests are looked at elsewhere. */
static void hand_over(struct outlet *o, const char *name)
{
    int fd = o->in;
    loop_remove(o->net->egress->loop, &o->in_watch);
    o->in = -1;
    o->owed = false;
    tap_begin(o->net, fd, &o->up.early, name, &o->rec.to, o->rec.port);
    outlet_end(o, true);
}

void outlet_read_opening(struct outlet *o)
{
    if (o->http) {
        if (outlet_run_requests(o) == LANE_LOST)
            outlet_end(o, true);
        return;
    }
    int r = hear(o);
    bool all =
        r == -ENODATA && (o->out >= 0 || outlet_is_dialling(o)); /* the server may still speak */
    if (r <= 0 && !all) {
        if (r < 0)
            outlet_end(o, r != -ENODATA);
        return;
    }
    char name[HOST_SIZE];
    const struct buf *said = &o->up.early;
    bool greeted = o->down.passed > 0;
    enum opening what = all ? opening_ended(said->data, said->len, greeted)
                            : opening_read(said->data, said->len, o->rec.port, name);
    /* Behind a server's greeting comes no request of HTTP: the end of a line is not waited for. */
    if (greeted && (what == OPENING_MORE || what == OPENING_BAD) &&
        opening_ended(said->data, said->len, greeted) == OPENING_OTHER)
        what = OPENING_OTHER;
    switch (what) {
    case OPENING_MORE: outlet_wait_opening(o); return;
    case OPENING_TLS:
    case OPENING_TLS_ENCRYPTED: /* a tap decrypts no other name */
        if (tap_takes(o->net, name, &o->rec.to, o->rec.port)) {
            hand_over(o, name);
            return;
        }
        o->named = what == OPENING_TLS ? POLICY_NAME_GIVEN : POLICY_NAME_HIDDEN;
        memcpy(o->rec.name, name, sizeof(name));
        break;
    case OPENING_OTHER: o->named = POLICY_NAME_NONE; break;
    case OPENING_HTTP:
    case OPENING_BAD: o->named = POLICY_NAME_BAD; break;
    }
    o->answer = outlet_judge(o, o->named);
    if (what == OPENING_HTTP)
        outlet_begin_requests(o);
    else if (o->answer.verdict == POLICY_ALLOW)
        outlet_allow(o, &o->answer);
    else
        outlet_refuse(o, &o->answer, false);
}

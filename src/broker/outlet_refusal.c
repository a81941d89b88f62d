/* A connection that may not be: who made it is told, in words if it can read them. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "broker/outlet_private.h"
#include "net/opening.h"

#define REFUSAL_MS 1000 /* to take the reason */
#define HOLD_MS 50      /* a refusal, until it is known whom: most are gone a moment later */
#define LISTEN_MS 250   /* and until the client has shown what it speaks */
#define FIRST_MAX 2048  /* more than a line of a request */

/* Fast: a reset. Who speaks HTTP gets the reason first. */
void outlet_tell_refused(struct outlet *o)
{
    egress_record_who(o->net, &o->rec, &o->who);
    if (!o->spoke_http) {
        outlet_end(o, true);
        return;
    }
    o->state = OUTLET_REFUSING;
    o->heard = o->up.early.len > 0 || o->http;
    if (o->heard)
        refusal_say(o->in, &o->rec);
    loop_deadline(o->net->egress->loop, &o->deadline, clock_mono_ms() + REFUSAL_MS,
                  outlet_on_deadline);
    outlet_want(o, EPOLLIN, 0);
}

void outlet_refuse(struct outlet *o, const struct policy_answer *answer, bool http)
{
    struct egress *e = o->net->egress;
    o->owed = false;
    o->spoke_http = http;
    egress_answered(&o->rec, answer);
    dial_cancel(&o->dial);
    loop_remove(e->loop, &o->out_watch);
    outlet_close_side(&o->out, true);
    o->state = OUTLET_HELD;
    o->unheard = !http && o->up.early.len == 0 && egress_may_listen(o->net);
    if (!o->unheard && !who_waits(&o->who)) {
        outlet_tell_refused(o);
        return;
    }
    loop_deadline(e->loop, &o->deadline, clock_mono_ms() + (o->unheard ? LISTEN_MS : HOLD_MS),
                  outlet_on_deadline);
    outlet_want(o, o->unheard ? EPOLLIN : 0, 0);
}

/* The first bytes of a refused client, left where they are: a request over HTTP gets an answer, whatever
 * the port. */
void outlet_listen_in(struct outlet *o)
{
    char said[FIRST_MAX], name[HOST_SIZE];
    ssize_t n = recv(o->in, said, sizeof(said), MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    o->unheard = false;
    o->spoke_http = n > 0 && opening_read(said, (size_t)n, o->rec.port, name) == OPENING_HTTP;
    if (n > 0)
        egress_listened(o->net);
    outlet_want(o, 0, 0);
    if (!who_waits(&o->who))
        outlet_tell_refused(o);
}

void outlet_on_who(struct who *w, const char *program)
{
    struct outlet *o = container_of(w, struct outlet, who);
    (void)snprintf(o->rec.program, sizeof(o->rec.program), "%s", program);
    if (o->state == OUTLET_HELD && !o->unheard)
        outlet_tell_refused(o);
}

/* Read and forget what a refused client says, until it has taken the answer and ends. */
void outlet_hear_out(struct outlet *o)
{
    char rest[4096];
    ssize_t n = recv(o->in, rest, sizeof(rest), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        outlet_end(o, n < 0);
        return;
    }
    if (!o->heard)
        refusal_say(o->in, &o->rec);
    o->heard = true;
}

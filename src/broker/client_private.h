/* What client.c and exchange.c share. */
#pragma once
#include "broker/client.h"
#include "broker/flow.h"
#include "broker/page.h"
#include "broker/way.h"
#include "broker/sock.h"
#include "net/address.h"
#include "net/head.h"

enum client_state {
    CLIENT_HEAD,     /* reading a request's head, or waiting for one */
    CLIENT_ASKING,   /* warrend decides */
    CLIENT_EXCHANGE, /* the request goes to its server, the answer comes back */
    CLIENT_TUNNEL,   /* both are free to say what they like: WebSocket */
    CLIENT_REPLY,    /* an answer of our own */
    CLIENT_DRAIN,    /* we have said all; until the client has heard it */
    CLIENT_CLOSED,
};

struct client {
    struct preview *p;
    struct client *next, **at;
    enum client_state state;
    struct sock sock;
    struct deadline deadline;
    struct later later;
    struct sockaddr_storage peer;
    char peer_text[ADDRESS_TEXT_SIZE];
    bool near; /* it is on this machine */
    struct buf in, out;
    size_t seen;        /* of `in`: there was no end of a head */
    size_t drained;     /* bytes thrown away */
    bool head_timed;    /* the deadline of this head is set */
    bool muted;         /* it has more to say than we want to hear yet */
    int64_t touched_ms; /* when warrend last heard that somebody is at work here */
    struct line_place idle;
    unsigned ticket; /* while it is at a sandbox's port */

    /* the request at hand */
    struct way way;
    struct ask ask;
    struct buf request; /* its head as it is sent on, until the answer begins */
    struct flow req, res;
    struct upstream *up, *self; /* self: to warrend, kept for the next request */
    size_t before;              /* bytes of heads that came before the answer's own: 100, 103 */
    bool is_head, keep, upgrade;
    bool look; /* warrend is asked about its token alone: it will be redirected */
    bool sent, answered, lost, retried; /* lost: its server takes no more of it */
    bool req_ended, res_ended;          /* CLIENT_TUNNEL */
};

/* 1: go on, 0: wait, below zero: close. */
int exchange_begin(struct client *c, const struct head *h);
int exchange_step(struct client *c);
int tunnel_step(struct client *c);
/* The server is there: send it the request that waits in c->in. */
int exchange_start(struct client *c, const struct head *h, const struct parked_verdict *v);
void exchange_drop(struct client *c); /* whatever is under way */
void exchange_count(struct client *c,
                    bool begun); /* what its server got and said since the last time */

int client_reply(struct client *c, enum page page, bool keep);
/* The same of what became of the sandbox; and the redirect behind a token that is right. */
int client_refuse(struct client *c, const struct broker_answer *answer);
int client_redirect(struct client *c, int64_t life_s);
void client_step(struct client *c);
void client_on_upstream(struct watch *w, uint32_t events);

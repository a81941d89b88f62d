/* What tap.c, errand.c, reach.c and tap_page.c share. */
#pragma once
#include "broker/bound.h"
#include "broker/dial.h"
#include "broker/egress_private.h"
#include "broker/parked.h"
#include "broker/sock.h"
#include "broker/tap.h"
#include "broker/answer_redact.h"

struct credential;

#define TAP_ADDRESSES_MAX 4                /* of one host, tried in turn */
#define TAP_JSON_MAX (1024 * 1024)         /* an answer that is read as a whole */
#define TAP_GATHER_MAX (4 * 1024 * 1024)   /* a body that is signed as a whole */
#define TAPS_GATHER_MAX (16 * 1024 * 1024) /* of all of a sandbox's */
#define GATHER_ALL (256 * 1024 * 1024)     /* of all sandboxes' */

enum tap_state {
    TAP_HEAD,   /* reading a request's head, or waiting for one; the handshake too */
    TAP_GATHER, /* its body is needed as a whole */
    TAP_REACH,  /* a connection to its host is being made */
    TAP_ERRAND, /* the request goes there, the answer comes back */
    TAP_TUNNEL, /* WebSocket */
    TAP_REPLY,  /* an answer of our own, or the last of another's */
    TAP_DRAIN,  /* we have said all; until the client has heard it */
    TAP_CLOSED,
};

enum tap_page {
    TAP_BAD_REQUEST,
    TAP_HEAD_TOO_LARGE,
    TAP_METHOD,
    TAP_MISDIRECTED,
    TAP_DENIED,
    TAP_NO_NAME,
    TAP_NO_VALUE,
    TAP_BODY_TOO_LARGE,
    TAP_SIGNED_PIECES,
    TAP_UNREACHABLE,
    TAP_CERTIFICATE,
    TAP_BROKEN,
    TAP_ENCODED,
    TAP_WITHHELD,
};

struct tap {
    struct network *net;
    struct tap *next, **at;
    enum tap_state state;
    struct sock sock;
    struct deadline deadline;
    struct later later;
    bool inner;
    struct address to; /* where the client went; not if inner */
    struct buf in, out;
    size_t seen;     /* of `in`: there was no end of a head */
    size_t drained;  /* bytes thrown away */
    bool head_timed; /* the deadline of this head is set */

    /* the request at hand */
    char host[HOST_SIZE]; /* whom it is for; of who came by TLS always the same */
    uint16_t port;
    struct bound *bound; /* what it was judged with */
    struct buf request;  /* as it is sent, with what was gathered of its body */
    struct buf gathered;
    size_t n_gathered; /* bytes of its body that are in memory, here or in the request */
    struct flow req;
    struct answer_redact res;
    bool hides; /* the answer is searched for secrets */
    enum binding_answer answer;
    unsigned status;           /* of an answer held back until it is complete */
    bool is_head, keep, plain; /* plain: its client knows no chunks */
    bool last;                 /* on its connection to the host */
    bool upgrade, sent, answered, lost, retried, req_ended, res_ended;
    bool owed;        /* a record of it */
    bool repeatable;  /* to ask twice is to ask once */
    uint64_t carries; /* bindings, a bit each: what goes along and was not told of */
    struct egress_record rec;
    uint64_t head_bytes;   /* of answers */
    bool held[ALLOT_WAYS]; /* no more may be read now */
    struct allot_wait wait;
    struct who who;
    char program[128]; /* of the client; "": not known */

    /* the way there */
    struct upstream *up; /* kept for the next request */
    char up_host[HOST_SIZE];
    uint16_t up_port;
    struct dial dial;
    struct lookup lookup;
    struct address addresses[TAP_ADDRESSES_MAX];
    size_t n_addresses, next_address;
};

/* ---- tap.c ---- */
void tap_step(struct tap *t);
int tap_reply(struct tap *t, enum tap_page page);
/* As loop callbacks need it: go on with what came of this. */
void tap_go_on(struct tap *t, int r);

/* ---- errand.c: 1: go on, 0: wait, below zero: close ---- */
int errand_begin(struct tap *t, const struct head *h);
void errand_carried(struct tap *t); /* counts what has passed */
int errand_gather(struct tap *t);
int errand_start(struct tap *t); /* its host is there */
int errand_failed(struct tap *t, int failure);
int errand_step(struct tap *t);
int errand_tunnel(struct tap *t);
void errand_drop(struct tap *t); /* whatever is under way; what is owed is told */

int errand_keep(struct tap *t, size_t n); /* counts bytes in memory; -EMSGSIZE: too many */

/* ---- errand_answer.c ---- */
/* How much comes back of the answer to a request that these bindings fit. */
enum binding_answer errand_answer_of(const struct tap *t, const struct binding *const *fits,
                                     size_t n);
/* Answer the client in the server's place: at once by the status, or once a JSON body is
 * complete (errand_answer_step). */
int errand_answer_head(struct tap *t, const struct head *h);
int errand_answer_step(struct tap *t);

/* ---- errand_uses.c ---- */
void errand_note_uses(struct tap *t, const struct credential *c);
void errand_tell_uses(struct tap *t);

/* ---- errand_judge.c ---- */
/* Whom it is for, by its name within if it has one. 0, or the page that says why for nobody. */
int errand_find_host(struct tap *t, const struct head *h, char ret_name[HOST_SIZE]);
/* How many bindings fit a request whose host is known. */
int errand_match(struct tap *t, const struct head *h, const char *name,
                 const struct binding *fits[BINDINGS_MAX]);
/* The same, as an entry of its log begins; without any the rules decide. Below zero: it may not go. */
int errand_judge(struct tap *t, const struct head *h, const char *name,
                 const struct binding *fits[BINDINGS_MAX]);
bool errand_may_stay(struct tap *t); /* as bindings and rules are now */

/* ---- reach.c ---- */
int reach_begin(struct tap *t);
void reach_cancel(struct tap *t);
/* Has it shaken hands? Then its certificate is good. */
bool reach_is_there(struct upstream *u);
bool reach_is_refused(struct upstream *u); /* its certificate is not */
bool reach_is_idle(struct upstream *u);    /* it still waits for a request */
void reach_on_upstream(struct watch *w, uint32_t events);

/* ---- tap_page.c ---- */
int tap_page(const struct tap *t, enum tap_page page, struct buf *out);

/* egress_private - what the parts of egress share: outlets (connections) and names (DNS). */
#pragma once
#include "broker/allot.h"
#include "broker/egress.h"
#include "broker/former.h"
#include "broker/lane.h"
#include "broker/own.h"
#include "broker/resolver.h"
#include "broker/tls_client.h"
#include "broker/tally.h"
#include "broker/unresolved.h"
#include "broker/who.h"
#include "net/pins.h"

#define OUTLETS_MAX 2048  /* connections of one sandbox at once */
#define QUESTIONS_MAX 128 /* of one sandbox at once */

struct bound;
struct leaves;
struct datagrams;
struct outlet;
struct tap;
struct names_job;
struct names_stream;

struct network {
    struct egress *egress;
    struct network *next;
    char id[ID_SIZE];
    struct policy policy;
    struct pins *pins;
    struct proxy *proxy;                    /* its own; NULL: none */
    struct watch tcp, udp, rest, raw, raw6; /* their fds are -1 while there are none */
    int tcp_fd, udp_fd, rest_fd, link_fd, raw_fd, raw6_fd;
    struct datagrams *datagrams; /* NULL while there were none */
    struct deadline pause;       /* there was no descriptor for another connection */
    int diag_fd;
    struct whos whos;
    struct allot allot;
    struct deadline refill, cut; /* bytes may be read again; its sum is used up */
    struct bucket records;       /* that may be told of */
    struct bucket patience;      /* refused clients that may be waited for (outlet_refusal.c) */
    struct unresolveds unresolved;
    struct outlet *outlets;
    size_t n_outlets;
    struct bound *bound; /* NULL: nothing is bound */
    struct former former;
    struct leaves *leaves; /* NULL: it has no CA */
    struct tap *taps;
    size_t n_taps;
    size_t n_gathered; /* bytes of bodies that were to be signed, until they are sent */
    struct names_job *jobs;
    size_t n_jobs;
    struct names_stream *streams;
    size_t n_streams;
};

struct egress {
    struct loop *loop;
    struct egress_config config;
    struct resolver resolver;
    struct lane_shelf shelf;
    struct tls_clients tls_clients;
    size_t n_flows; /* of datagrams, of all sandboxes */
    struct own own;
    uint64_t last_flow;
    size_t n_gathered; /* of all sandboxes */
    size_t n_outlets;  /* of all sandboxes, */
    size_t room;       /* for which there are descriptors for so many */
    struct network *networks[256];
};

/* What the operator says, with this machine's addresses as they are now. */
struct policy_limits egress_limits(struct egress *e);
void egress_answered(struct egress_record *rec, const struct policy_answer *answer);

/* ---- ledger.c: how much, and who; for everything that carries something ---- */
void ledger_init(struct network *n);
void ledger_done(struct network *n);
void egress_limit(struct network *n, const struct allot_limits *limits, uint64_t spent);
/* Tells of an attempt; of too many at once only that they were. */
void egress_record(struct network *n, struct egress_record *rec);
/* The same once `who` knows whose it was; who is free then. */
void egress_record_who(struct network *n, struct egress_record *rec, struct who *who);
/* May a refused client be waited for, until it shows what it speaks? Silent ones use this up: whoever
 * tries again and again is reset at once. egress_listened: it did speak, and costs nothing. */
bool egress_may_listen(struct network *n);
void egress_listened(struct network *n);
/* May it begin? False: refuse it, with what is in *ret_answer. */
bool egress_admit(struct network *n, struct policy_answer *ret_answer);
/* It was allowed: counts as a connection, and has a number from now on. */
void egress_begun(struct network *n, struct egress_record *rec);
/* So many bytes it may read now; 0: call egress_wait, and read when fn is called. */
size_t egress_may(struct network *n, enum allot_way way);
void egress_wait(struct network *n, struct allot_wait *w, void (*fn)(struct allot_wait *wait));
/* What it has passed on since it began: counts what is new of that. */
void egress_carried(struct network *n, struct egress_record *rec, uint64_t sent, uint64_t received);
/* A request carried this secret to the host of its binding. No limit of the log's keeps it from being told. */
void egress_used(struct network *n, const char *secret, const char *host, uint16_t port);
/* Asks who is at the other end of fd, a connection. False: it will not be known. */
bool egress_ask_who(struct network *n, int fd, struct who *w,
                    void (*fn)(struct who *w, const char *program));

/* ---- outlet.c ---- */
/* A connection that was accepted for `to`; taken. */
void outlet_begin(struct network *n, int fd, const struct address *to, uint16_t port);
void outlets_judge_again(struct network *n);        /* the rules have changed */
void outlets_close(struct network *n, int failure); /* failure: for what is open; 0 */

/* ---- refusal.c ---- */
void refusal_say(int fd, const struct egress_record *rec); /* to a client of HTTP, in JSON */

/* ---- datagrams.c ---- */
void datagrams_on_rest(struct watch *w, uint32_t events); /* of a network's rest */
void datagrams_judge_again(struct network *n);
void datagrams_close(struct network *n);

/* ---- echoes.c ---- */
void echoes_on_v4(struct watch *w, uint32_t events); /* of its raw */
void echoes_on_v6(struct watch *w, uint32_t events);

/* ---- names.c ---- */
void names_on_udp(struct watch *w, uint32_t events); /* of a network's udp */
void names_stream_begin(struct network *n, int fd);  /* questions over TCP; taken */
void names_close(struct network *n);

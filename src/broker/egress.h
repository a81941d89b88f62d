/* egress - the way out of sandboxes: each one's rules, its sockets, and what passes through them.
 *
 * A sandbox's network is two sockets in its namespace (kernel/steer) and the rules that are applied to
 * what arrives there. Closing them is cutting it off. Who may have which rules is decided
 * elsewhere; every verdict is told to whoever keeps the log. Nothing here blocks. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "base/loop.h"
#include "net/exempt.h"
#include "broker/allot.h"
#include "net/host.h"
#include "net/policy.h"
#include "net/proxy.h"

struct egress;
struct trust;
struct tally;
struct broker_who;
struct broker_who_answer;

/* As kernel/steer.h makes them. */
enum egress_fd {
    EGRESS_TCP,
    EGRESS_UDP,
    EGRESS_REST,
    EGRESS_LINK,
    EGRESS_DIAG,
    EGRESS_RAW_V4,
    EGRESS_RAW_V6,
    EGRESS_FDS
};

/* One attempt: when it was refused, while it lasts, and when it is over. */
struct egress_record {
    char sandbox[ID_SIZE];
    int64_t wall_ms; /* when it began */
    bool question; /* a name to be resolved; its address is the one that is out of reach, if any */
    bool allowed;
    enum policy_protocol protocol;
    enum policy_why why;
    struct address to;
    uint16_t port;
    /* Allowed, and nothing came of it: errno of a connection that could not be made; of a question
     * ENOENT (there is no such name), ENODATA (no address), ENETUNREACH (none that this machine has
     * a way to), ECONNREFUSED (the resolver refuses), ETIMEDOUT (none answers), else EREMOTEIO */
    int failure;
    char name[HOST_SIZE];             /* what it said, or what was resolved to that address; "" */
    char rule[POLICY_RULE_TEXT_SIZE]; /* "": none */
    bool open;                        /* it goes on: there will be another record of this flow */
    uint64_t flow;                    /* in all records of one connection; 0: there is one alone */
    uint64_t sent_bytes, received_bytes; /* so far */
    char binding[64];                    /* that put a credential in; "": none */
    char program[128];                   /* that made it; "": not known */
    int64_t told_ms;                     /* ledger.c's: when it was last told of */
};

struct egress_config {
    const char *const *resolvers; /* as in resolver.h; NULL after the last */
    const struct range *opened;   /* keeps; places that the operator lets sandboxes reach */
    size_t n_opened;
    const struct proxy *proxy;   /* keeps; what everything but `direct` goes through; NULL: none */
    const struct exempt *direct; /* keeps; NULL only without a proxy */
    struct trust *trust;         /* keeps; NULL: nobody under TLS is believed */
    void (*record)(void *arg, const struct egress_record *record);
    int (*who)(void *arg, const struct broker_who *msg); /* NULL: nobody knows */
    struct tally *tally;                                 /* keeps; NULL: nobody counts */
    void *arg;
};

int egress_new(struct loop *loop, const struct egress_config *config, struct egress **ret_egress,
               struct err *err);
void egress_free(struct egress *e); /* everything is cut */
DEFINE_FREEP(struct egress *, egress_free)

/* Rules for this sandbox from now on; with `cut` also for what is open already. */
int egress_rules(struct egress *e, const char *id, const char *text, size_t n, bool cut,
                 struct err *err);
/* The proxy that all it sends goes through from now on; "": none. What is open goes another way, and is
 * cut, if that is a change. -EINVAL. */
int egress_proxy(struct egress *e, const char *id, const char *text, size_t n, struct err *err);
/* Its bindings with their values (net/binding.h), and its own CA (leaf.h), from now on; nothing at
 * all: none. On failure it has none. */
int egress_bindings(struct egress *e, const char *id, const char *packed, size_t n,
                    struct err *err);
int egress_ca(struct egress *e, const char *id, const char *pem, size_t n, struct err *err);
/* One of the descriptors of its namespace; taken. One that was there before is closed. */
int egress_take(struct egress *e, const char *id, enum egress_fd what, int fd, struct err *err);
/* How much it may carry from now on, and what of that it has carried. */
int egress_allot(struct egress *e, const char *id, const struct allot_limits *limits,
                 uint64_t spent);
void egress_who(struct egress *e, const char *id, const struct broker_who_answer *msg);
void egress_end(struct egress *e, const char *id); /* the sandbox is gone */

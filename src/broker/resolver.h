/* resolver - questions to the machine's own DNS resolvers, answered by a call.
 *
 * Each question goes out from a socket of its own, so from a port of its own, with a random number: an answer
 * from elsewhere must guess both. An answer that did not fit is asked for again over TCP. The resolvers are
 * tried in turn. Nothing is kept: they do that. */
#pragma once
#include <stddef.h>

#include "base/loop.h"
#include "net/dns.h"

#define RESOLVER_SERVERS_MAX 3
#define RESOLVER_OPEN_MAX 4096 /* questions at once, of all sandboxes */

struct resolver_server {
    struct address address;
    uint16_t port;
};

struct resolver {
    struct loop *loop;
    struct resolver_server servers[RESOLVER_SERVERS_MAX];
    size_t n_servers;
    size_t n_open;
};

/* A question is embedded in what it is for. */
struct lookup {
    struct resolver *resolver;
    struct watch watch;
    struct deadline deadline;
    int fd; /* -1 while it waits for nothing */
    unsigned tries;
    unsigned
        failed;    /* why the latest that answered gives no answer (enum dns_rcode); 0: none did */
    bool stream;   /* over TCP, */
    bool asked;    /* where the question goes out when it is connected, */
    struct buf in; /* and the answer comes in pieces */
    uint16_t id;
    enum dns_type type;
    char name[HOST_SIZE];
    /* answer: NULL when none came. */
    void (*fn)(struct lookup *l, const struct dns_answer *answer);
};

/* "ADDRESS" or "ADDRESS:PORT", "[ADDRESS]:PORT"; -EINVAL, -E2BIG. */
int resolver_add(struct resolver *r, const char *text);
/* fn is called once, not before this returns. Below zero: not at all. */
int lookup_begin(struct lookup *l, struct resolver *r, const char *name, enum dns_type type,
                 void (*fn)(struct lookup *l, const struct dns_answer *answer));
void lookup_cancel(struct lookup *l); /* may not wait at all */

/* out - egress as warrend drives it: what it says becomes calls, what happens becomes messages. */
#pragma once
#include "broker/egress.h"
#include "broker/link.h"

struct out;

/* What the operator says; texts are as its options have them, or NULL. Keeps only trust. */
struct out_config {
    const char *resolvers, *open; /* lists with commas */
    const char *proxy;            /* net/proxy.h */
    const char *proxy_except;     /* net/exempt.h */
    bool proxy_names;             /* it is told names rather than addresses */
    struct trust *trust;
};
int out_new(struct loop *loop, const struct out_config *config, struct out **ret_out,
            struct err *err);
void out_free(struct out *o);
/* Greets warrend, which then says whom it has. Keeps link. */
void out_start(struct out *o, struct link *link);

/* Handlers of the messages of this; fd is taken. */
void out_net(struct out *o, const void *msg, int fd);
void out_net_end(struct out *o, const void *msg);
void out_limits(struct out *o, const void *msg);
void out_who(struct out *o, const void *msg);
struct tally *out_tally(struct out *o); /* what sandboxes carried; others add to it too */

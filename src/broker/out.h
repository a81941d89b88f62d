/* out - egress as warrend drives it: what it says becomes calls, what happens becomes messages. */
#pragma once
#include "broker/egress.h"
#include "broker/link.h"

struct out;

/* resolvers, open: lists with commas, or NULL. Keeps neither. */
int out_new(struct loop *loop, const char *resolvers, const char *open, struct out **ret_out,
            struct err *err);
void out_free(struct out *o);
/* Greets warrend, which then says whom it has. Keeps link. */
void out_start(struct out *o, struct link *link);

/* Handlers of the messages of this; fd is taken. */
void out_net(struct out *o, const void *msg, int fd);
void out_net_end(struct out *o, const void *msg);

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
#include "net/host.h"
#include "net/policy.h"

struct egress;

enum egress_fd { EGRESS_TCP, EGRESS_UDP, EGRESS_LINK, EGRESS_FDS };

/* One attempt, when it was refused, or when it is over. */
struct egress_record {
    char sandbox[ID_SIZE];
    int64_t wall_ms; /* when it began */
    bool question;   /* a name to be resolved; then there is no address */
    bool allowed;
    enum policy_protocol protocol;
    enum policy_why why;
    struct address to;
    uint16_t port;
    int failure;          /* errno of a connection that was allowed and could not be made */
    char name[HOST_SIZE]; /* what it said, or what was resolved to that address; "" */
    char rule[POLICY_RULE_TEXT_SIZE]; /* "": none */
    uint64_t sent_bytes, received_bytes;
};

struct egress_config {
    const char *const *resolvers; /* as in resolver.h; NULL after the last */
    const struct range *opened;   /* keeps; places that the operator lets sandboxes reach */
    size_t n_opened;
    void (*record)(void *arg, const struct egress_record *record);
    void *arg;
};

int egress_new(struct loop *loop, const struct egress_config *config, struct egress **ret_egress,
               struct err *err);
void egress_free(struct egress *e); /* everything is cut */
DEFINE_FREEP(struct egress *, egress_free)

/* Rules for this sandbox from now on; with `cut` also for what is open already. */
int egress_rules(struct egress *e, const char *id, const char *text, size_t n, bool cut,
                 struct err *err);
/* One of the descriptors of its namespace; taken. One that was there before is closed. */
int egress_take(struct egress *e, const char *id, enum egress_fd what, int fd, struct err *err);
void egress_end(struct egress *e, const char *id); /* the sandbox is gone */

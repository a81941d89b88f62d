/* policy - what a sandbox may reach: rules in order, the first that fits decides, else no.
 *
 * A rule names a host (exactly, or everything below it), a range of addresses, or everything, with
 * ports and protocols. A rule by host speaks of names, and an address proves none: it fits a
 * connection only if the name that the client sends is one that was resolved to this very address for
 * this sandbox (its pins). So a judgement may have to wait for the first bytes, and says so. UDP is
 * opened by address alone. Places that are nobody's business (the host, its networks, metadata
 * services) are out of reach whatever the rules say, unless the operator names them.
 * Knows no sockets and no clock; nothing blocks. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "net/address.h"

#define POLICY_RULES_MAX 256
#define POLICY_PORTS_MAX 8        /* ranges of ports in one rule */
#define POLICY_RULE_TEXT_SIZE 400 /* action, host, eight ranges of ports, protocol */
#define POLICY_TEXT_MAX (64 * 1024)

enum policy_protocol { POLICY_TCP = 1, POLICY_UDP = 2, POLICY_ICMP = 4 }; /* ICMP: echo alone */
#define POLICY_EVERY (POLICY_TCP | POLICY_UDP | POLICY_ICMP)
enum policy_target { POLICY_ANYTHING, POLICY_HOST, POLICY_RANGE };

struct policy_ports {
    uint16_t low, high;
};

struct policy_rule {
    bool allow;
    enum policy_target target;
    unsigned protocols; /* enum policy_protocol, or-ed */
    char *host;         /* POLICY_HOST: canonical pattern */
    struct range range; /* POLICY_RANGE */
    struct policy_ports ports[POLICY_PORTS_MAX];
    size_t n_ports; /* 0: every port */
};

struct policy {
    struct policy_rule *rules;
    size_t n_rules;
};

#define POLICY_INIT \
    {               \
        NULL, 0     \
    }

void policy_done(struct policy *p);

/* One rule as people write it: "allow *.example.com 443,8000-8010", "deny 10.0.0.0/8", "allow
 * 203.0.113.7 53 udp", "allow *". Allowing means tcp and denying means any protocol unless said.
 * -EINVAL, invalid_network: what is wrong with it; -E2BIG: there are too many. */
int policy_add(struct policy *p, const char *text, size_t n, struct err *err);
/* Rules, one a line. On failure *ret_policy is untouched. */
int policy_parse(const char *text, size_t n, struct policy *ret_policy, struct err *err);
/* A set of rules by name: "none", "open", "agents". -ENOENT. */
int policy_preset(const char *name, struct policy *ret_policy, struct err *err);
/* What "agents" allows; after the last one comes one without a host. */
struct policy_agent {
    const char *kind, *host, *ports;
};
const struct policy_agent *policy_agents(void);
const char *policy_rule_text(const struct policy_rule *rule, char out[POLICY_RULE_TEXT_SIZE]);
int policy_text(const struct policy *p, struct buf *out); /* as policy_parse reads it */

/* What the machine's operator says for every sandbox. */
struct policy_limits {
    const struct range
        *opened; /* private and special places that the operator lets sandboxes reach */
    size_t n_opened;
    const struct range
        *closed; /* this machine's own addresses; in an opened range only if it is just the one */
    size_t n_closed;
};

/* What is known of the name that a client speaks to. */
enum policy_name {
    POLICY_NAME_UNKNOWN, /* its first bytes were not read yet */
    POLICY_NAME_NONE,    /* it speaks something that names no host */
    POLICY_NAME_GIVEN,   /* TLS or HTTP, and this is the name */
    POLICY_NAME_HIDDEN,  /* TLS with a name, and perhaps another, encrypted one */
    POLICY_NAME_BAD,     /* TLS or HTTP without a name, or with one that cannot be read */
};

struct policy_flow {
    enum policy_protocol protocol;
    struct address to;
    uint16_t port;
    enum policy_name named;
    const char *name;          /* POLICY_NAME_GIVEN, POLICY_NAME_HIDDEN: canonical */
    const char *const *pinned; /* names that were resolved to this address, canonical */
    size_t n_pinned;
};

enum policy_verdict { POLICY_DENY, POLICY_ALLOW, POLICY_WAIT }; /* WAIT: only while UNKNOWN */
enum policy_why {
    POLICY_BY_RULE,     /* `rule` decided */
    POLICY_BY_DEFAULT,  /* no rule fits */
    POLICY_BY_PLACE,    /* an address that is out of reach for all */
    POLICY_BY_MISMATCH, /* a rule allows the name, but it was not resolved to this address */
    /* no judgement on where to, but limits of how much */
    POLICY_BY_CONNECTIONS, /* too many are open */
    POLICY_BY_PACE,        /* too many were begun within a second */
    POLICY_BY_BYTES,       /* its sum of bytes is used up */
    /* about the destination again; last, since logs keep the numbers */
    POLICY_BY_HIDDEN, /* a rule allows the name in clear, but the server may read another */
};

struct policy_answer {
    enum policy_verdict verdict;
    enum policy_why why;
    const struct policy_rule *rule; /* of POLICY_BY_RULE, _MISMATCH, _HIDDEN; keeps: the policy's */
};

struct policy_answer policy_judge(const struct policy *p, const struct policy_limits *limits,
                                  const struct policy_flow *flow);
/* May any sandbox reach this address, as far as no rule is concerned? */
bool policy_place_open(const struct policy_limits *limits, const struct address *to);
/* Is this name to be resolved at all? A name that no rule could let through is not asked for: the
 * question alone would carry data out. Ranges speak of names only if they are everything there is of a family. */
struct policy_answer policy_resolves(const struct policy *p, const char *name);

/* What would have let an attempt through, or what to look at: one sentence for each reason. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/network.h"
#include "net/policy.h"

/* A name that does not lead anywhere. */
static const char *question_hint(uint32_t failure)
{
    switch (failure) {
    case ENOENT:
        return "there is no such name: look for a typing error; names of a private network need "
               "a resolver that knows them (the operator's option resolvers)";
    case ENODATA: return "the name is there and has no address";
    case ENETUNREACH: return "all its addresses are of a family to which this machine has no route";
    case ETIMEDOUT:
        return "no resolver answered: the operator looks at the option resolvers, or at "
               "/etc/resolv.conf of this machine";
    case ECONNREFUSED: return "the resolver refuses: the operator looks at the option resolvers";
    default: return "the resolver could not say; try again, or have the operator look at it";
    }
}

static const char *connection_hint(uint32_t failure)
{
    switch (failure) {
    case ECONNREFUSED: return "nothing listens there";
    case ETIMEDOUT: return "nobody answers there";
    case ENETUNREACH:
    case EHOSTUNREACH: return "this machine has no way there";
    case EHOSTDOWN: return "the proxy is not reached, or its certificate is not trusted";
    case EKEYREJECTED: return "the proxy does not take its user and password";
    case EDQUOT: return "raise total_mb of network_limits";
    default: return NULL;
    }
}

/* The rule that would let it pass: for the name if it has one. */
static int rule_hint(const struct broker_record *r, char *out, size_t size)
{
    const char *to = r->name[0] ? r->name : r->address;
    if (r->question)
        return snprintf(out, size, "a rule lets it through: allow %s", to);
    if (r->udp == 2)
        return snprintf(out, size, "a rule lets it through: allow %s icmp", r->address);
    if (r->udp)
        return snprintf(out, size, "a rule lets it through: allow %s %u udp", r->address, r->port);
    return snprintf(out, size, "a rule lets it through: allow %s %u", to, r->port);
}

static int denial_hint(const struct broker_record *r, char *out, size_t size)
{
    switch ((enum policy_why)r->why) {
    case POLICY_BY_RULE:
        return snprintf(out, size, "this rule denies it: take it away, or put an allow before it");
    case POLICY_BY_DEFAULT: return rule_hint(r, out, size);
    case POLICY_BY_PLACE:
        return snprintf(out, size,
                        "%s is private or reserved, or this machine's: only the operator can open "
                        "it (egress-open = %s)",
                        r->address, r->address);
    case POLICY_BY_MISMATCH:
        return snprintf(out, size,
                        "the name was not resolved to this address here: let the client resolve "
                        "the name that it asks for, or allow %s %u",
                        r->address, r->port);
    case POLICY_BY_HIDDEN:
        return snprintf(out, size,
                        "the client hides the name (ECH): switch that off in it, or allow %s %u",
                        r->address, r->port);
    case POLICY_BY_CONNECTIONS:
        return snprintf(out, size, "raise connections of network_limits, or close some");
    case POLICY_BY_PACE: return snprintf(out, size, "raise connections_per_s of network_limits");
    case POLICY_BY_BYTES: return snprintf(out, size, "raise total_mb of network_limits");
    }
    return 0;
}

const char *network_hint(const struct broker_record *r, char out[NETWORK_HINT_SIZE])
{
    const char *fixed = NULL;
    out[0] = '\0';
    if (!r->allowed)
        (void)denial_hint(r, out, NETWORK_HINT_SIZE);
    else if (r->failure)
        fixed = r->question ? question_hint(r->failure) : connection_hint(r->failure);
    if (fixed)
        (void)snprintf(out, NETWORK_HINT_SIZE, "%s", fixed);
    return out[0] ? out : NULL;
}

const char *network_error(const struct broker_record *r)
{
    if (!r->failure)
        return NULL;
    if (!r->question)
        return strerrorname_np((int)r->failure);
    switch (r->failure) {
    case ENOENT: return "NXDOMAIN";
    case ENODATA: return "NODATA";
    case ENETUNREACH: return "NOROUTE";
    case ETIMEDOUT: return "TIMEOUT";
    case ECONNREFUSED: return "REFUSED";
    default: return "SERVFAIL";
    }
}

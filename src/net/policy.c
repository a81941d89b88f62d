#include "net/policy.h"

#include <string.h>

#include "net/host.h"

static bool in_ranges(const struct range *ranges, size_t n, const struct address *a)
{
    for (size_t i = 0; i < n; i++)
        if (range_has(&ranges[i], a))
            return true;
    return false;
}

static bool opened_itself(const struct policy_limits *limits, const struct address *to)
{
    for (size_t i = 0; i < limits->n_opened; i++)
        if (limits->opened[i].prefix == to->bits && range_has(&limits->opened[i], to))
            return true;
    return false;
}

bool policy_place_open(const struct policy_limits *limits, const struct address *to)
{
    struct address inner;
    bool wrapped = address_inner(to, &inner);
    /* A range that is opened for a site's servers was not meant for this machine, which is in it, nor for
     * what hands out credentials. */
    if (in_ranges(limits->closed, limits->n_closed, to) || address_is_guarded(to) ||
        (wrapped &&
         (in_ranges(limits->closed, limits->n_closed, &inner) || address_is_guarded(&inner))))
        return opened_itself(limits, to);
    return in_ranges(limits->opened, limits->n_opened, to) || address_kind_of(to) == ADDRESS_PUBLIC;
}

static bool port_fits(const struct policy_rule *rule, uint16_t port)
{
    for (size_t i = 0; i < rule->n_ports; i++)
        if (port >= rule->ports[i].low && port <= rule->ports[i].high)
            return true;
    return rule->n_ports == 0;
}

/* A denied address is denied in every form; an allowed one is allowed as it was written. */
static bool range_fits(const struct policy_rule *rule, const struct address *to)
{
    struct address inner;
    if (range_has(&rule->range, to))
        return true;
    return !rule->allow && address_inner(to, &inner) && range_has(&rule->range, &inner);
}

static bool pinned(const struct policy_flow *f, const char *name)
{
    for (size_t i = 0; i < f->n_pinned; i++)
        if (strcmp(f->pinned[i], name) == 0)
            return true;
    return false;
}

static bool any_pin_matches(const struct policy_flow *f, const char *pattern)
{
    for (size_t i = 0; i < f->n_pinned; i++)
        if (host_matches(pattern, f->pinned[i]))
            return true;
    return false;
}

enum fit { FIT_NO, FIT_YES, FIT_UNSURE, FIT_MISMATCH };

static enum fit host_fits(const struct policy_rule *rule, const struct policy_flow *f)
{
    switch (f->named) {
    case POLICY_NAME_GIVEN:
        if (!host_matches(rule->host, f->name))
            return FIT_NO;
        return !rule->allow || pinned(f, f->name) ? FIT_YES : FIT_MISMATCH;
    case POLICY_NAME_HIDDEN:
        if (rule->allow)
            return host_matches(rule->host, f->name) ? FIT_MISMATCH : FIT_NO;
        return host_matches(rule->host, f->name) || any_pin_matches(f, rule->host) ? FIT_YES
                                                                                   : FIT_NO;
    case POLICY_NAME_NONE: return any_pin_matches(f, rule->host) ? FIT_YES : FIT_NO;
    case POLICY_NAME_BAD: return !rule->allow && any_pin_matches(f, rule->host) ? FIT_YES : FIT_NO;
    case POLICY_NAME_UNKNOWN:
        /* Any name may follow, so a denied one may; an allowed one only if it is pinned. */
        return !rule->allow || any_pin_matches(f, rule->host) ? FIT_UNSURE : FIT_NO;
    }
    return FIT_NO;
}

static enum fit rule_fits(const struct policy_rule *rule, const struct policy_flow *f)
{
    if (!(rule->protocols & f->protocol) || !port_fits(rule, f->port))
        return FIT_NO;
    switch (rule->target) {
    case POLICY_ANYTHING: return FIT_YES;
    case POLICY_RANGE: return range_fits(rule, &f->to) ? FIT_YES : FIT_NO;
    case POLICY_HOST: return host_fits(rule, f);
    }
    return FIT_NO;
}

struct policy_answer policy_judge(const struct policy *p, const struct policy_limits *limits,
                                  const struct policy_flow *f)
{
    const struct policy_rule *mismatched = NULL;
    if (!policy_place_open(limits, &f->to))
        return (struct policy_answer){ POLICY_DENY, POLICY_BY_PLACE, NULL };
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct policy_rule *rule = &p->rules[i];
        switch (rule_fits(rule, f)) {
        case FIT_NO: break;
        case FIT_MISMATCH: mismatched = mismatched ? mismatched : rule; break;
        case FIT_UNSURE: return (struct policy_answer){ POLICY_WAIT, POLICY_BY_RULE, rule };
        case FIT_YES:
            return (struct policy_answer){ rule->allow ? POLICY_ALLOW : POLICY_DENY, POLICY_BY_RULE,
                                           rule };
        }
    }
    if (mismatched)
        return (struct policy_answer){ POLICY_DENY,
                                       f->named == POLICY_NAME_HIDDEN ? POLICY_BY_HIDDEN
                                                                      : POLICY_BY_MISMATCH,
                                       mismatched };
    return (struct policy_answer){ POLICY_DENY, POLICY_BY_DEFAULT, NULL };
}

/* Does the rule speak of this name, wherever of that family it leads? */
static bool speaks_of(const struct policy_rule *rule, const char *name, unsigned bits)
{
    switch (rule->target) {
    case POLICY_ANYTHING: return true;
    case POLICY_HOST: return host_matches(rule->host, name);
    case POLICY_RANGE: return rule->range.prefix == 0 && rule->range.net.bits == bits;
    }
    return false;
}

/* The last port from this one on that a rule before `at` keeps this name from; 0: none does. */
static uint32_t denied_until(const struct policy *p, size_t at, const char *name, unsigned bits,
                             uint32_t port)
{
    for (size_t i = 0; i < at; i++) {
        const struct policy_rule *rule = &p->rules[i];
        /* What denies UDP alone leaves a connection that needs the address. */
        if (rule->allow || !(rule->protocols & POLICY_TCP) || !speaks_of(rule, name, bits))
            continue;
        if (rule->n_ports == 0)
            return UINT16_MAX;
        for (size_t k = 0; k < rule->n_ports; k++)
            if (port >= rule->ports[k].low && port <= rule->ports[k].high)
                return rule->ports[k].high;
    }
    return 0;
}

/* Is there a port that the rule at `at` allows and none before it has denied? */
static bool leaves_port(const struct policy *p, size_t at, const char *name, unsigned bits)
{
    static const struct policy_ports every = { 1, UINT16_MAX };
    const struct policy_rule *rule = &p->rules[at];
    const struct policy_ports *spans = rule->n_ports ? rule->ports : &every;
    for (size_t i = 0; i < (rule->n_ports ? rule->n_ports : 1); i++)
        for (uint32_t port = spans[i].low; port <= spans[i].high;) {
            uint32_t until = denied_until(p, at, name, bits, port);
            if (!until)
                return true;
            port = until + 1;
        }
    return false;
}

static struct policy_answer resolves(const struct policy *p, const char *name, unsigned bits)
{
    const struct policy_rule *denies = NULL; /* the first that keeps it from some port */
    bool shadowed = false;
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct policy_rule *rule = &p->rules[i];
        if (!speaks_of(rule, name, bits))
            continue;
        if (rule->allow && leaves_port(p, i, name, bits))
            return (struct policy_answer){ POLICY_ALLOW, POLICY_BY_RULE, rule };
        shadowed |= rule->allow;
        if (rule->allow || !(rule->protocols & POLICY_TCP))
            continue;
        denies = denies ? denies : rule;
        if (rule->n_ports == 0)
            return (struct policy_answer){ POLICY_DENY, POLICY_BY_RULE, shadowed ? denies : rule };
    }
    return (struct policy_answer){ POLICY_DENY, shadowed ? POLICY_BY_RULE : POLICY_BY_DEFAULT,
                                   shadowed ? denies : NULL };
}

struct policy_answer policy_resolves(const struct policy *p, const char *name)
{
    struct policy_answer v4 = resolves(p, name, 32);
    return v4.verdict == POLICY_ALLOW ? v4 : resolves(p, name, 128);
}

/* Rules as people write them, and the sets of rules that have a name. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "net/host.h"
#include "net/policy.h"

#define WORDS_MAX 4 /* action, target, ports, protocol */

struct word {
    const char *p;
    size_t n;
};

static bool word_is(struct word w, const char *text)
{
    return w.n == strlen(text) && memcmp(w.p, text, w.n) == 0;
}

static bool gap(char c)
{
    return c == ' ' || c == '\t';
}

/* The words of a line: how many, WORDS_MAX + 1 if there are more. */
static size_t split(const char *p, size_t n, struct word words[WORDS_MAX])
{
    size_t count = 0, i = 0;
    while (i < n) {
        if (gap(p[i])) {
            i++;
            continue;
        }
        size_t start = i;
        while (i < n && !gap(p[i]))
            i++;
        if (count == WORDS_MAX)
            return WORDS_MAX + 1;
        words[count++] = (struct word){ p + start, i - start };
    }
    return count;
}

static int wrong(struct err *err, struct word w, const char *what)
{
    char shown[81];
    size_t n = w.n < sizeof(shown) - 1 ? w.n : sizeof(shown) - 1;
    for (size_t i = 0; i < n; i++)
        shown[i] = w.p[i] > ' ' && w.p[i] < 0x7f ? w.p[i] : '?';
    shown[n] = '\0';
    return err_fail(err, FAIL_INVALID_NETWORK, "'%s' %s", shown, what);
}

/* 1 to 65535; -EINVAL. */
static int read_port(struct word w, uint16_t *ret)
{
    unsigned v = 0;
    if (w.n == 0 || w.n > 5)
        return -EINVAL;
    for (size_t i = 0; i < w.n; i++) {
        if (w.p[i] < '0' || w.p[i] > '9')
            return -EINVAL;
        v = v * 10 + (unsigned)(w.p[i] - '0');
    }
    if (v == 0 || v > UINT16_MAX)
        return -EINVAL;
    *ret = (uint16_t)v;
    return 0;
}

static int read_span(struct word w, struct policy_ports *ret)
{
    const char *dash = memchr(w.p, '-', w.n);
    size_t n = dash ? (size_t)(dash - w.p) : w.n;
    if (read_port((struct word){ w.p, n }, &ret->low) < 0)
        return -EINVAL;
    ret->high = ret->low;
    if (dash && read_port((struct word){ dash + 1, w.n - n - 1 }, &ret->high) < 0)
        return -EINVAL;
    return ret->low <= ret->high ? 0 : -EINVAL;
}

static int read_ports(struct word w, struct policy_rule *rule, struct err *err)
{
    struct word all = w;
    while (w.n) {
        const char *comma = memchr(w.p, ',', w.n);
        size_t n = comma ? (size_t)(comma - w.p) : w.n;
        if (rule->n_ports == POLICY_PORTS_MAX)
            return wrong(err, all, "names too many ports; use ranges such as 8000-8010");
        if (read_span((struct word){ w.p, n }, &rule->ports[rule->n_ports]) < 0 ||
            (comma && n + 1 == w.n))
            return wrong(err, all, "is not a list of ports such as 443,8000-8010");
        rule->n_ports++;
        w = comma ? (struct word){ comma + 1, w.n - n - 1 } : (struct word){ NULL, 0 };
    }
    return 0;
}

static int read_protocol(struct word w, unsigned *ret)
{
    if (word_is(w, "tcp"))
        *ret = POLICY_TCP;
    else if (word_is(w, "udp"))
        *ret = POLICY_UDP;
    else if (word_is(w, "icmp"))
        *ret = POLICY_ICMP;
    else if (word_is(w, "any"))
        *ret = POLICY_EVERY;
    else
        return -EINVAL;
    return 0;
}

static int read_target(struct word w, struct policy_rule *rule, struct err *err)
{
    char host[HOST_SIZE];
    if (word_is(w, "*")) {
        rule->target = POLICY_ANYTHING;
        return 0;
    }
    if (range_parse(w.p, w.n, &rule->range) == 0) {
        rule->target = POLICY_RANGE;
        return 0;
    }
    if (host_pattern(w.p, w.n, host) < 0)
        return wrong(err, w,
                     "is neither a host name such as example.com or *.example.com, nor an address "
                     "or range such as 203.0.113.0/24");
    rule->target = POLICY_HOST;
    rule->host = strdup(host);
    return rule->host ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int read_rule(struct word words[WORDS_MAX], size_t n, struct policy_rule *rule,
                     struct err *err)
{
    if (!word_is(words[0], "allow") && !word_is(words[0], "deny"))
        return wrong(err, words[0], "must be 'allow' or 'deny'");
    rule->allow = words[0].p[0] == 'a';
    rule->protocols = rule->allow ? POLICY_TCP : POLICY_EVERY;
    if (n > 2 && read_protocol(words[n - 1], &rule->protocols) == 0)
        n--;
    else if (n == WORDS_MAX)
        return wrong(err, words[3], "is no protocol: tcp, udp, icmp or any");
    int r = read_target(words[1], rule, err);
    if (r == 0 && n > 2 && !word_is(words[2], "*"))
        r = read_ports(words[2], rule, err);
    if (r == 0 && rule->allow && rule->target != POLICY_RANGE && rule->protocols != POLICY_TCP)
        r = wrong(err, words[1],
                  "can be allowed for tcp alone; udp and icmp are allowed by address, which "
                  "they show, and not by name, which they do not");
    return r;
}

static void rule_done(struct policy_rule *rule)
{
    free(rule->host);
}

int policy_add(struct policy *p, const char *text, size_t n, struct err *err)
{
    struct word words[WORDS_MAX] = { 0 };
    _cleanup_(rule_done) struct policy_rule rule = { 0 };
    if (p->n_rules >= POLICY_RULES_MAX)
        return err_fail_as(err, E2BIG, FAIL_INVALID_NETWORK, "there are more than %d rules",
                           POLICY_RULES_MAX);
    size_t count = split(text, n, words);
    if (count < 2 || count > WORDS_MAX)
        return wrong(err, (struct word){ text, n },
                     "is no rule; write 'allow' or 'deny', a host or range, and if need be ports "
                     "and a protocol");
    int r = read_rule(words, count, &rule, err);
    if (r < 0)
        return r;
    if ((p->n_rules & (p->n_rules - 1)) == 0) { /* full: it has a power of two */
        size_t room = p->n_rules ? 2 * p->n_rules : 1;
        void *more = reallocarray(p->rules, room, sizeof(rule));
        if (!more)
            return err_set(err, ENOMEM, "out of memory");
        p->rules = more;
    }
    p->rules[p->n_rules++] = rule;
    rule.host = NULL;
    return 0;
}

void policy_done(struct policy *p)
{
    for (size_t i = 0; i < p->n_rules; i++)
        rule_done(&p->rules[i]);
    free(p->rules);
    *p = (struct policy)POLICY_INIT;
}

int policy_parse(const char *text, size_t n, struct policy *ret_policy, struct err *err)
{
    _cleanup_(policy_done) struct policy p = POLICY_INIT;
    if (n > POLICY_TEXT_MAX)
        return err_fail_as(err, E2BIG, FAIL_INVALID_NETWORK, "the rules are too long");
    while (n) {
        const char *end = memchr(text, '\n', n);
        size_t line = end ? (size_t)(end - text) : n;
        int r = line ? policy_add(&p, text, line, err) : 0;
        if (r < 0)
            return r;
        line += end != NULL;
        text += line;
        n -= line;
    }
    *ret_policy = p;
    p = (struct policy)POLICY_INIT;
    return 0;
}

static int add_agents(struct policy *p, struct err *err)
{
    int r = 0;
    for (const struct policy_agent *a = policy_agents(); r == 0 && a->host; a++) {
        char rule[POLICY_RULE_TEXT_SIZE];
        int n = snprintf(rule, sizeof(rule), "allow %s %s", a->host, a->ports);
        r = policy_add(p, rule, (size_t)n, err);
    }
    return r;
}

int policy_preset(const char *name, struct policy *ret_policy, struct err *err)
{
    _cleanup_(policy_done) struct policy p = POLICY_INIT;
    static const char everything[] = "allow *";
    int r = 0;
    if (strcmp(name, "open") == 0)
        r = policy_add(&p, everything, sizeof(everything) - 1, err);
    else if (strcmp(name, "agents") == 0)
        r = add_agents(&p, err);
    else if (strcmp(name, "none") != 0)
        r = err_fail_as(err, ENOENT, FAIL_INVALID_NETWORK,
                        "there is no network '%s': none, agents, open", name);
    if (r < 0)
        return r;
    *ret_policy = p;
    p = (struct policy)POLICY_INIT;
    return 0;
}

/* A rule's text has room for everything a rule can hold. */
static size_t put(char *out, size_t at, const char *fmt, ...) _printf_(3, 4);
static size_t put(char *out, size_t at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(out + at, POLICY_RULE_TEXT_SIZE - at, fmt, args);
    va_end(args);
    return n < 0 || at + (size_t)n >= POLICY_RULE_TEXT_SIZE ? POLICY_RULE_TEXT_SIZE - 1
                                                            : at + (size_t)n;
}

const char *policy_rule_text(const struct policy_rule *rule, char out[POLICY_RULE_TEXT_SIZE])
{
    char range[RANGE_TEXT_SIZE];
    const char *target = rule->target == POLICY_HOST    ? rule->host
                         : rule->target == POLICY_RANGE ? range_text(&rule->range, range)
                                                        : "*";
    size_t at = put(out, 0, "%s %s", rule->allow ? "allow" : "deny", target);
    for (size_t i = 0; i < rule->n_ports; i++) {
        const struct policy_ports *s = &rule->ports[i];
        at = put(out, at, "%c%u", i ? ',' : ' ', s->low);
        if (s->high != s->low)
            at = put(out, at, "-%u", s->high);
    }
    unsigned usual = rule->allow ? POLICY_TCP : POLICY_EVERY;
    if (rule->protocols != usual)
        (void)put(out, at, " %s",
                  rule->protocols == POLICY_TCP    ? "tcp"
                  : rule->protocols == POLICY_UDP  ? "udp"
                  : rule->protocols == POLICY_ICMP ? "icmp"
                                                   : "any");
    return out;
}

int policy_text(const struct policy *p, struct buf *out)
{
    char text[POLICY_RULE_TEXT_SIZE];
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->n_rules; i++)
        r = buf_printf(out, "%s\n", policy_rule_text(&p->rules[i], text));
    return r;
}

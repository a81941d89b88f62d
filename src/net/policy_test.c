#include "net/policy.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "net/host.h"

static struct policy rules(const char *text)
{
    struct policy p = POLICY_INIT;
    struct err err = ERR_INIT;
    if (policy_parse(text, strlen(text), &p, &err) < 0)
        fail_msg("%s", err.msg);
    return p;
}

static struct address at(const char *text)
{
    struct address a = { 0 };
    CHECK_OK(address_parse(text, strlen(text), &a));
    return a;
}

/* One connection: to, port, what is known of its name, the name, one pinned name. */
struct
try {
    const char *to;
    uint16_t port;
    enum policy_name named;
    const char *name, *pin;
};

static struct policy_answer judge(const struct policy *p, const struct try *t)
{
    static const struct policy_limits nothing;
    struct policy_flow f = { .protocol = POLICY_TCP,
                             .to = at(t->to),
                             .port = t->port,
                             .named = t->named,
                             .name = t->name,
                             .pinned = &t->pin,
                             .n_pinned = t->pin ? 1 : 0 };
    return policy_judge(p, &nothing, &f);
}

static enum policy_verdict verdict(const char *text, struct try t)
{
    _cleanup_(policy_done) struct policy p = rules(text);
    return judge(&p, &t).verdict;
}

#define IP "93.184.216.34"
#define GIVEN POLICY_NAME_GIVEN
#define NONE POLICY_NAME_NONE
#define BAD POLICY_NAME_BAD
#define UNKNOWN POLICY_NAME_UNKNOWN

TEST(what_no_rule_allows_is_denied)
{
    CHECK_EQ(verdict("", (struct try){ IP, 443, GIVEN, "a.test", "a.test" }), POLICY_DENY);
    CHECK_EQ(verdict("allow b.test", (struct try){ IP, 443, GIVEN, "a.test", "a.test" }),
             POLICY_DENY);
}

TEST(the_first_rule_that_fits_decides)
{
    struct try t = { IP, 443, NONE, NULL, NULL };
    CHECK_EQ(verdict("deny 93.184.0.0/16\nallow *", t), POLICY_DENY);
    CHECK_EQ(verdict("allow *\ndeny 93.184.0.0/16", t), POLICY_ALLOW);
    CHECK_EQ(verdict("deny * 1-442\nallow *", t), POLICY_ALLOW);
    CHECK_EQ(verdict("allow * 80,443", t), POLICY_ALLOW);
    CHECK_EQ(verdict("allow * 80,444-500", t), POLICY_DENY);
}

TEST(a_name_counts_where_it_was_resolved_to_the_address)
{
    const char *p = "allow *.a.test 443";
    CHECK_EQ(verdict(p, (struct try){ IP, 443, GIVEN, "x.a.test", "x.a.test" }), POLICY_ALLOW);
    CHECK_EQ(verdict(p, (struct try){ IP, 443, GIVEN, "x.a.test", NULL }), POLICY_DENY);
    CHECK_EQ(verdict(p, (struct try){ IP, 443, GIVEN, "y.a.test", "x.a.test" }), POLICY_DENY);
    CHECK_EQ(verdict(p, (struct try){ IP, 443, GIVEN, "evil.test", "x.a.test" }), POLICY_DENY);
    CHECK_EQ(verdict(p, (struct try){ IP, 80, GIVEN, "x.a.test", "x.a.test" }), POLICY_DENY);
    _cleanup_(policy_done) struct policy q = rules(p);
    struct policy_answer a = judge(&q, &(struct try){ IP, 443, GIVEN, "x.a.test", NULL });
    CHECK_EQ(a.why, POLICY_BY_MISMATCH);
    CHECK(a.rule == &q.rules[0]);
}

TEST(a_rule_by_host_needs_a_name_that_can_be_read)
{
    const char *p = "allow a.test";
    CHECK_EQ(verdict(p, (struct try){ IP, 443, BAD, NULL, "a.test" }), POLICY_DENY);
    CHECK_EQ(verdict(p, (struct try){ IP, 22, NONE, NULL, "a.test" }), POLICY_ALLOW);
    CHECK_EQ(verdict(p, (struct try){ IP, 22, NONE, NULL, "b.test" }), POLICY_DENY);
    CHECK_EQ(verdict("allow 93.184.216.34", (struct try){ IP, 443, BAD, NULL, NULL }),
             POLICY_ALLOW);
}

TEST(a_rule_by_host_allows_no_name_that_may_be_another)
{
    struct try t = { IP, 443, POLICY_NAME_HIDDEN, "a.test", "a.test" };
    CHECK_EQ(verdict("allow a.test", t), POLICY_DENY);
    CHECK_EQ(verdict("allow a.test\nallow *", t), POLICY_ALLOW);
    CHECK_EQ(verdict("allow 93.184.216.34", t), POLICY_ALLOW);
    CHECK_EQ(verdict("deny a.test\nallow *", t), POLICY_DENY);
    t.name = "b.test";
    CHECK_EQ(verdict("deny a.test\nallow *", t), POLICY_DENY);
    CHECK_EQ(verdict("deny c.test\nallow *", t), POLICY_ALLOW);
    _cleanup_(policy_done) struct policy q = rules("allow b.test");
    CHECK_EQ(judge(&q, &t).why, POLICY_BY_HIDDEN);
}

TEST(the_first_bytes_are_waited_for_only_where_they_matter)
{
    struct try pin = { IP, 443, UNKNOWN, NULL, "a.test" }, bare = { IP, 443, UNKNOWN, NULL, NULL };
    CHECK_EQ(verdict("allow a.test", pin), POLICY_WAIT);
    CHECK_EQ(verdict("allow a.test", bare), POLICY_DENY);
    CHECK_EQ(verdict("allow *\ndeny a.test", pin), POLICY_ALLOW);
    CHECK_EQ(verdict("deny a.test\nallow *", bare), POLICY_WAIT);
    CHECK_EQ(verdict("deny a.test 80\nallow *", bare), POLICY_ALLOW);
}

TEST(a_denied_name_is_denied_wherever_it_leads)
{
    const char *p = "deny *.evil.test\nallow *";
    CHECK_EQ(verdict(p, (struct try){ IP, 443, GIVEN, "x.evil.test", NULL }), POLICY_DENY);
    CHECK_EQ(verdict(p, (struct try){ IP, 443, GIVEN, "good.test", NULL }), POLICY_ALLOW);
    CHECK_EQ(verdict(p, (struct try){ IP, 22, NONE, NULL, "x.evil.test" }), POLICY_DENY);
    CHECK_EQ(verdict(p, (struct try){ IP, 443, BAD, NULL, "x.evil.test" }), POLICY_DENY);
}

TEST(special_places_are_out_of_reach_unless_the_operator_opens_them)
{
    static const char *const places[] = {
        "127.0.0.1",       "10.0.0.1",        "169.254.169.254", "::1",
        "::ffff:10.0.0.1", "fe80::1",         "fd00:ec2::254",   "64:ff9b::a9fe:a9fe",
        "224.0.0.1",       "100.100.100.200", "0.0.0.0"
    };
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        CHECK_EQ(verdict("allow *\nallow 10.0.0.0/8\nallow ::/0",
                         (struct try){ places[i], 80, NONE, NULL, NULL }),
                 POLICY_DENY);

    _cleanup_(policy_done) struct policy p = rules("allow *");
    struct range opened, closed;
    CHECK_OK(range_parse("10.1.0.0/16", 11, &opened));
    CHECK_OK(range_parse(IP, strlen(IP), &closed));
    struct policy_limits limits = { &opened, 1, &closed, 1 };
    struct policy_flow f = { .protocol = POLICY_TCP, .to = at("10.1.2.3"), .port = 80 };
    CHECK_EQ(policy_judge(&p, &limits, &f).verdict, POLICY_ALLOW);
    f.to = at("10.2.2.3");
    CHECK_EQ(policy_judge(&p, &limits, &f).why, POLICY_BY_PLACE);
    f.to = at(IP); /* public, but this machine's own */
    CHECK_EQ(policy_judge(&p, &limits, &f).why, POLICY_BY_PLACE);
    f.to = at("64:ff9b::5db8:d822"); /* the same in another form */
    CHECK_EQ(policy_judge(&p, &limits, &f).why, POLICY_BY_PLACE);
    /* It must be opened itself, not along with others. */
    CHECK_OK(range_parse("10.1.2.3", 8, &closed));
    f.to = at("10.1.2.3");
    CHECK_EQ(policy_judge(&p, &limits, &f).why, POLICY_BY_PLACE);
    opened = closed;
    CHECK_EQ(policy_judge(&p, &limits, &f).verdict, POLICY_ALLOW);
}

TEST(a_wide_range_opens_neither_the_machine_nor_metadata)
{
    static const char *const guarded[] = { "0.0.0.0",
                                           "127.0.0.2",
                                           "169.254.169.254",
                                           "169.254.170.2",
                                           "168.63.129.16",
                                           "100.100.100.200",
                                           "::",
                                           "::1",
                                           "fd00:ec2::254",
                                           "fd20:ce::254",
                                           "2002:7f00:2::",
                                           "64:ff9b::a9fe:a9fe" };
    struct range opened[3];
    CHECK_OK(range_parse("0.0.0.0/0", 9, &opened[0]));
    CHECK_OK(range_parse("::/0", 4, &opened[1]));
    struct policy_limits limits = { opened, 2, NULL, 0 };
    for (size_t i = 0; i < ARRAY_LEN(guarded); i++) {
        struct address a = at(guarded[i]);
        limits.n_opened = 2;
        if (policy_place_open(&limits, &a))
            fail_msg("%s was opened along with others", guarded[i]);
        limits.n_opened = 3; /* named itself */
        opened[2] = (struct range){ a, a.bits };
        CHECK(policy_place_open(&limits, &a));
    }
    struct address near = at("169.254.169.253"), mine = at("10.1.2.3"), own6 = at("fd00:ec2::253");
    CHECK(policy_place_open(&limits, &near) && policy_place_open(&limits, &mine) &&
          policy_place_open(&limits, &own6));
}

TEST(a_denied_range_is_denied_in_every_form)
{
    const char *p = "deny 93.184.0.0/16\nallow *";
    CHECK_EQ(verdict(p, (struct try){ "64:ff9b::5db8:d822", 80, NONE, NULL, NULL }), POLICY_DENY);
    CHECK_EQ(
        verdict("allow 93.184.0.0/16", (struct try){ "64:ff9b::5db8:d822", 80, NONE, NULL, NULL }),
        POLICY_DENY);
}

TEST(udp_is_opened_by_address_alone)
{
    static const struct policy_limits nothing;
    struct policy_flow f = { .protocol = POLICY_UDP, .to = at(IP), .port = 443 };
    _cleanup_(policy_done) struct policy open = rules("allow *\nallow 93.184.216.34");
    _cleanup_(policy_done) struct policy named = rules("allow 93.184.216.34 443 udp");
    _cleanup_(policy_done) struct policy any = rules("allow 0.0.0.0/0 any");
    CHECK_EQ(policy_judge(&open, &nothing, &f).verdict, POLICY_DENY);
    CHECK_EQ(policy_judge(&named, &nothing, &f).verdict, POLICY_ALLOW);
    CHECK_EQ(policy_judge(&any, &nothing, &f).verdict, POLICY_ALLOW);
    _cleanup_(policy_done) struct policy ping =
        rules("deny 93.184.216.35\nallow 93.184.216.0/24 icmp");
    CHECK_EQ(policy_judge(&ping, &nothing, &f).verdict, POLICY_DENY);
    f.protocol = POLICY_ICMP;
    f.port = 0;
    CHECK_EQ(policy_judge(&ping, &nothing, &f).verdict, POLICY_ALLOW);
    CHECK_EQ(policy_judge(&any, &nothing, &f).verdict, POLICY_ALLOW);
    CHECK_EQ(policy_judge(&open, &nothing, &f).verdict, POLICY_DENY);
    CHECK_EQ(policy_judge(&named, &nothing, &f).verdict, POLICY_DENY);
}

TEST(only_names_that_may_lead_somewhere_are_resolved)
{
    static const struct {
        const char *rules, *name;
        enum policy_verdict verdict;
    } cases[] = {
        { "", "a.test", POLICY_DENY },
        { "allow a.test 443", "a.test", POLICY_ALLOW },
        { "allow a.test 443", "b.test", POLICY_DENY },
        { "allow *.a.test", "data.a.test", POLICY_ALLOW },
        { "deny x.a.test\nallow *.a.test", "x.a.test", POLICY_DENY },
        { "deny x.a.test 80\nallow *.a.test", "x.a.test", POLICY_ALLOW },
        { "deny x.a.test udp\nallow *.a.test", "x.a.test", POLICY_ALLOW },
        { "allow *", "a.test", POLICY_ALLOW },
        { "allow 93.184.216.34", "a.test", POLICY_DENY },
        { "allow 0.0.0.0/0", "a.test", POLICY_ALLOW },
        { "allow a.test\ndeny 0.0.0.0/0\nallow *", "a.test", POLICY_ALLOW },
        { "allow a.test\ndeny 0.0.0.0/0\ndeny ::/0\nallow *", "b.test", POLICY_DENY },
        { "deny ::/0\nallow *", "a.test", POLICY_ALLOW }, /* one family is left */
        { "deny 0.0.0.0/0\nallow *.a.test", "b.a.test", POLICY_ALLOW },
        { "deny 0.0.0.0/0\nallow 0.0.0.0/0", "a.test", POLICY_DENY },
        /* Denied at each port that is allowed: nothing is left of it. */
        { "deny *.x.test 443\nallow *.test.x.test 443\nallow *.x.test 443", "a.x.test",
          POLICY_DENY },
        { "deny *.x.test 80,400-500\nallow *.x.test 80,443", "data.x.test", POLICY_DENY },
        { "deny *.x.test 80\ndeny a.x.test 1-79\ndeny * 81-65535\nallow *.x.test", "a.x.test",
          POLICY_DENY },
        { "deny *.x.test 80\ndeny a.x.test 1-79\ndeny * 81-65534\nallow *.x.test", "a.x.test",
          POLICY_ALLOW },
        { "deny *.x.test 443\nallow *.x.test 443\nallow a.x.test 22", "a.x.test", POLICY_ALLOW },
        { "deny *.x.test 443 udp\nallow *.x.test 443", "a.x.test", POLICY_ALLOW },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(policy_done) struct policy p = rules(cases[i].rules);
        if (policy_resolves(&p, cases[i].name).verdict != cases[i].verdict)
            fail_msg("%s under '%s'", cases[i].name, cases[i].rules);
    }
}

TEST(rules_are_written_as_they_are_read)
{
    static const char text[] = "allow *.a.test 443,8000-8010\n"
                               "deny 10.0.0.0/8\n"
                               "deny * 25 tcp\n"
                               "allow 2001:db8::/32 udp\n"
                               "allow 192.0.2.1 53 any\n"
                               "allow 192.0.2.0/24 icmp\n"
                               "deny 192.0.2.3 icmp\n"
                               "allow *\n";
    _cleanup_(policy_done) struct policy p = rules(text);
    _cleanup_(buf_done) struct buf out = BUF_INIT(POLICY_TEXT_MAX);
    CHECK_OK(policy_text(&p, &out));
    CHECK_STR(out.data, text);
    _cleanup_(policy_done) struct policy q = rules("  allow\tA.Test.  *  tcp \n\ndeny b.test any");
    buf_clear(&out);
    CHECK_OK(policy_text(&q, &out));
    CHECK_STR(out.data, "allow a.test\ndeny b.test\n");
}

TEST(what_is_no_rule_is_refused_with_a_reason)
{
    static const char *const bad[] = {
        "allow",
        "permit a.test",
        "allow a.test 0",
        "allow a.test 65536",
        "allow a.test 1,",
        "allow a.test 9-1",
        "allow a.test 80 tcp x",
        "allow a.test 80 sctp",
        "allow a.test udp",
        "allow a.test icmp",
        "allow * icmp",
        "allow * any",
        "allow *.test",
        "allow 10.0.0.0/40",
        "allow 127.1",
        "allow b\xc3\xbc.test",
        "allow http://a.test",
        "allow a.test:443",
        "allow a.test 1,2,3,4,5,6,7,8,9",
        "allow a.test -",
        "allow a.test ,",
        "ALLOW a.test",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct policy p = POLICY_INIT;
        struct err err = ERR_INIT;
        if (policy_parse(bad[i], strlen(bad[i]), &p, &err) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
        CHECK_STR(failure_name(err.failure), "invalid_network");
        CHECK(p.rules == NULL);
    }
}

TEST(there_are_only_so_many_rules)
{
    _cleanup_(policy_done) struct policy p = POLICY_INIT;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < POLICY_RULES_MAX; i++)
        CHECK_OK(policy_add(&p, "allow a.test", 12, &err));
    CHECK_EQ(policy_add(&p, "allow a.test", 12, &err), -E2BIG);
    CHECK_EQ(p.n_rules, POLICY_RULES_MAX);
}

TEST(sets_of_rules_have_names)
{
    _cleanup_(policy_done) struct policy none = POLICY_INIT, open = POLICY_INIT,
                                         agents = POLICY_INIT;
    struct policy other = POLICY_INIT;
    struct err err = ERR_INIT;
    CHECK_OK(policy_preset("none", &none, &err));
    CHECK_EQ(none.n_rules, 0);
    CHECK_OK(policy_preset("open", &open, &err));
    CHECK_EQ(policy_resolves(&open, "a.test").verdict, POLICY_ALLOW);
    CHECK_OK(policy_preset("agents", &agents, &err));
    CHECK_EQ(policy_resolves(&agents, "a.test").verdict, POLICY_DENY);
    for (const struct policy_agent *a = policy_agents(); a->host; a++) {
        const char *name = a->host[0] == '*' ? a->host + 2 : a->host; /* below it, or it */
        char below[HOST_SIZE];
        (void)snprintf(below, sizeof(below), "%s%s", a->host[0] == '*' ? "x." : "", name);
        CHECK_EQ(policy_resolves(&agents, below).verdict, POLICY_ALLOW);
        for (const struct policy_agent *b = policy_agents(); b < a; b++)
            CHECK(strcmp(a->host, b->host) != 0);
    }
    CHECK_EQ(policy_preset("all", &other, &err), -ENOENT);
}

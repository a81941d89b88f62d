#include "net/dns.h"

#include <errno.h>

#include "base/check.h"

/* A message, written as its bytes: the NUL of the literal is not part of it. */
#define BYTES(text_) (text_), sizeof(text_) - 1

#define A_TEST "\1a\4test\0"
#define QUERY(n_extra_) "\x12\x34\1\0\0\1\0\0\0\0\0" n_extra_
#define ANSWER(n_) "\x12\x34\x81\x80\0\1\0" n_ "\0\0\0\0"

static struct dns_question question(const char *p, size_t n)
{
    struct dns_question q;
    CHECK_EQ(dns_read_question(p, n, &q), 0);
    return q;
}

TEST(a_question_is_read)
{
    struct dns_question q = question(BYTES(QUERY("\0") "\1A\4tEst\0\0\1\0\1"));
    CHECK_EQ(q.id, 0x1234);
    CHECK_EQ(q.type, DNS_A);
    CHECK_STR(q.name, "a.test");
    CHECK_EQ(q.udp_max, DNS_UDP_PLAIN);
    CHECK(q.recursion && !q.edns);
    q = question(BYTES(QUERY("\1") A_TEST "\0\x1c\0\1"
                                          "\0\0\x29\x10\0\0\0\0\0\0\0"));
    CHECK_EQ(q.type, DNS_AAAA);
    CHECK(q.edns);
    CHECK_EQ(q.udp_max, DNS_UDP_MAX);
}

TEST(a_name_that_no_host_has_is_read_as_none)
{
    CHECK_STR(question(BYTES(QUERY("\0") "\0\0\1\0\1")).name, "");
    CHECK_STR(question(BYTES(QUERY("\0") "\3a.b\4test\0\0\1\0\1")).name, "");
    CHECK_STR(question(BYTES(QUERY("\0") "\3a\0b\4test\0\0\1\0\1")).name, "");
    CHECK_STR(question(BYTES(QUERY("\0") "\1\xff\4test\0\0\1\0\1")).name, "");
}

TEST(what_is_no_question_is_refused)
{
    static const struct {
        const char *p;
        size_t n;
        int r;
    } cases[] = {
        { BYTES(""), -EBADMSG },
        { BYTES("\x12\x34\1\0\0\1\0\0\0\0\0"), -EBADMSG },
        { BYTES(ANSWER("\0") A_TEST "\0\1\0\1"), -EBADMSG }, /* an answer */
        { BYTES(QUERY("\0") A_TEST "\0\1\0"), -EINVAL },     /* cut */
        { BYTES(QUERY("\0") A_TEST "\0\1\0\1x"), -EINVAL },  /* more than that */
        { BYTES(QUERY("\0") "\1a\4tes"), -EINVAL },          /* cut in a label */
        { BYTES(QUERY("\0") "\x40"
                            "a\0\0\1\0\1"),
          -EINVAL },                                        /* no such label */
        { BYTES(QUERY("\0") "\xc0\x00\0\1\0\1"), -EINVAL }, /* into the header */
        { BYTES(QUERY("\0") "\xc0\x0c\0\1\0\1"), -EINVAL }, /* to itself */
        { BYTES(QUERY("\1") A_TEST "\0\1\0\1"), -EINVAL },  /* promised more */
        { BYTES("\x12\x34\1\0\0\2\0\0\0\0\0\0" A_TEST "\0\1\0\1" A_TEST "\0\1\0\1"), -EINVAL },
        { BYTES("\x12\x34\x28\0\0\1\0\0\0\0\0\0" A_TEST "\0\1\0\1"), -EOPNOTSUPP }, /* update */
        { BYTES(QUERY("\0") A_TEST "\0\1\0\3"), -EOPNOTSUPP },                      /* chaos */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dns_question q;
        int r = dns_read_question(cases[i].p, cases[i].n, &q);
        if (r != cases[i].r)
            fail_msg("case %zu gave %d", i, r);
        CHECK_EQ(q.n_raw, 0);
    }
}

TEST(a_reply_repeats_the_question_and_holds_its_family)
{
    static const uint8_t four[4] = { 93, 184, 216, 34 }, six[16] = { 0x20, 1, [15] = 7 };
    const struct address both[] = { address_v6(six), address_v4(four) };
    struct dns_question q = question(BYTES(QUERY("\0") "\1A\4test\0\0\1\0\1"));
    struct dns_reply reply = { .ttl = 60, .addresses = both, .n_addresses = 2 };
    static const char want[] = "\x12\x34\x81\x80\0\1\0\1\0\0\0\0"
                               "\1A\4test\0\0\1\0\1"
                               "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x5d\xb8\xd8\x22";
    _cleanup_(buf_done) struct buf out = BUF_INIT(DNS_UDP_MAX);
    CHECK_OK(dns_write_reply(&q, &reply, q.udp_max, &out));
    CHECK_EQ(out.len, sizeof(want) - 1);
    CHECK_MEM(out.data, want, out.len);
    struct dns_answer a;
    CHECK_OK(dns_read_answer(out.data, out.len, 0x1234, "a.test", DNS_A, &a));
    CHECK_EQ(a.n_addresses, 1);
    CHECK(address_equal(&a.addresses[0], &both[1]));
    CHECK_EQ(a.ttl, 60);
}

TEST(a_reply_that_is_too_long_is_cut_and_says_so)
{
    struct address many[DNS_ADDRESSES_MAX];
    for (size_t i = 0; i < DNS_ADDRESSES_MAX; i++) {
        const uint8_t bytes[4] = { 93, 184, 216, (uint8_t)i };
        many[i] = address_v4(bytes);
    }
    struct dns_question q = question(BYTES(QUERY("\0") A_TEST "\0\1\0\1"));
    struct dns_reply reply = { .addresses = many, .n_addresses = DNS_ADDRESSES_MAX };
    _cleanup_(buf_done) struct buf out = BUF_INIT(DNS_TCP_MAX);
    CHECK_OK(dns_write_reply(&q, &reply, DNS_UDP_PLAIN, &out));
    CHECK(out.len <= DNS_UDP_PLAIN);
    struct dns_answer a;
    CHECK_OK(dns_read_answer(out.data, out.len, 0x1234, "a.test", DNS_A, &a));
    CHECK(a.truncated);
    buf_clear(&out);
    CHECK_OK(dns_write_reply(&q, &reply, DNS_TCP_MAX, &out));
    CHECK_OK(dns_read_answer(out.data, out.len, 0x1234, "a.test", DNS_A, &a));
    CHECK(!a.truncated);
    CHECK_EQ(a.n_addresses, DNS_ADDRESSES_MAX);
}

TEST(a_refusal_carries_its_reason_to_those_who_can_read_it)
{
    struct dns_reply reply = { .rcode = DNS_NXDOMAIN, .reason = DNS_PROHIBITED };
    struct dns_question q = question(BYTES(QUERY("\1") A_TEST "\0\1\0\1"
                                                              "\0\0\x29\x10\0\0\0\0\0\0\0"));
    static const char tail[] = "\0\0\x29\4\xd0\0\0\0\0\0\6\0\xf\0\2\0\x12";
    _cleanup_(buf_done) struct buf out = BUF_INIT(DNS_UDP_MAX);
    CHECK_OK(dns_write_reply(&q, &reply, q.udp_max, &out));
    CHECK_EQ(out.data[3] & 0xf, DNS_NXDOMAIN);
    CHECK_MEM(out.data + out.len - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
}

TEST(our_own_question_can_be_read)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(DNS_UDP_MAX);
    CHECK_OK(dns_write_question(7, "www.a.test", DNS_AAAA, &out));
    struct dns_question q = question(out.data, out.len);
    CHECK_EQ(q.id, 7);
    CHECK_STR(q.name, "www.a.test");
    CHECK_EQ(q.type, DNS_AAAA);
    CHECK(q.edns && q.recursion);
}

#define ASKED A_TEST "\0\1\0\1"
#define IN_A(ttl_, last_) "\0\1\0\1\0\0\0" ttl_ "\0\4\x5d\xb8\xd8" last_

static int answer(const char *p, size_t n, struct dns_answer *ret)
{
    return dns_read_answer(p, n, 0x1234, "a.test", DNS_A, ret);
}

TEST(aliases_are_followed_in_any_order)
{
    /* b.test has the address; a.test is c.b.test is b.test */
    static const char m[] = ANSWER("\3") ASKED
        "\1b\4test\0" IN_A("\x3c", "\1") "\1c\1b\4test\0\0\5\0\1\0\0\0\x1e\0\2\xc0\x18"
                                         "\xc0\x0c\0\5\0\1\0\0\0\x28\0\2\xc0\x2e";
    struct dns_answer a;
    CHECK_OK(answer(m, sizeof(m) - 1, &a));
    CHECK_EQ(a.n_addresses, 1);
    CHECK_EQ(a.ttl, 30);
}

TEST(addresses_of_other_names_are_not_taken)
{
    static const char m[] =
        ANSWER("\2") ASKED "\4evil\4test\0" IN_A("\x3c", "\1") "\xc0\x0c" IN_A("\x3c", "\2");
    struct dns_answer a;
    CHECK_OK(answer(m, sizeof(m) - 1, &a));
    CHECK_EQ(a.n_addresses, 1);
    CHECK_EQ(a.addresses[0].bytes[3], 2);
}

TEST(a_circle_of_aliases_ends)
{
    static const char m[] = ANSWER("\1") ASKED "\xc0\x0c\0\5\0\1\0\0\0\x28\0\2\xc0\x0c";
    struct dns_answer a;
    CHECK_OK(answer(m, sizeof(m) - 1, &a));
    CHECK_EQ(a.n_addresses, 0);
    CHECK_EQ(a.ttl, 0);
}

TEST(an_answer_to_something_else_is_not_ours)
{
    static const char good[] = ANSWER("\1") ASKED "\xc0\x0c" IN_A("\x3c", "\1");
    struct dns_answer a;
    CHECK_OK(answer(good, sizeof(good) - 1, &a));
    CHECK_EQ(dns_read_answer(BYTES(good), 0x1235, "a.test", DNS_A, &a), -EBADMSG);
    CHECK_EQ(dns_read_answer(BYTES(good), 0x1234, "b.test", DNS_A, &a), -EBADMSG);
    CHECK_EQ(dns_read_answer(BYTES(good), 0x1234, "a.test", DNS_AAAA, &a), -EBADMSG);
    for (size_t n = 0; n < sizeof(good) - 1; n++)
        CHECK_EQ(answer(good, n, &a), -EBADMSG);
    /* pointers that go forward, or to themselves */
    CHECK_EQ(answer(BYTES(ANSWER("\1") ASKED "\xc0\x18" IN_A("\x3c", "\1")), &a), -EBADMSG);
    CHECK_EQ(answer(BYTES(ANSWER("\1") ASKED "\xc0\x1a" IN_A("\x3c", "\1")), &a), -EBADMSG);
}

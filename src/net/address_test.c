#include "net/address.h"

#include <errno.h>

#include "base/check.h"
#include "base/cleanup.h"

static struct address parse(const char *text)
{
    struct address a = { 0 };
    if (address_parse(text, strlen(text), &a) < 0)
        fail_msg("'%s' is an address", text);
    return a;
}

static struct range range(const char *text)
{
    struct range r = { 0 };
    if (range_parse(text, strlen(text), &r) < 0)
        fail_msg("'%s' is a range", text);
    return r;
}

TEST(addresses_are_told_apart)
{
    static const struct {
        const char *text;
        enum address_kind kind;
    } cases[] = {
        { "8.8.8.8", ADDRESS_PUBLIC },
        { "172.32.0.1", ADDRESS_PUBLIC },
        { "100.128.0.1", ADDRESS_PUBLIC },
        { "2001:4860::1", ADDRESS_PUBLIC },
        { "2a00::1", ADDRESS_PUBLIC },
        { "64:ff9b::808:808", ADDRESS_PUBLIC },
        { "127.0.0.1", ADDRESS_PRIVATE },
        { "10.1.2.3", ADDRESS_PRIVATE },
        { "172.31.255.255", ADDRESS_PRIVATE },
        { "192.168.1.1", ADDRESS_PRIVATE },
        { "100.100.100.200", ADDRESS_PRIVATE },
        { "::1", ADDRESS_PRIVATE },
        { "fd00:ec2::254", ADDRESS_PRIVATE },
        { "::ffff:10.0.0.1", ADDRESS_PRIVATE },
        { "64:ff9b::7f00:1", ADDRESS_PRIVATE },
        { "2002:7f00:1::", ADDRESS_PRIVATE },
        { "64:ff9b:1::808:808", ADDRESS_PRIVATE },
        { "2001:db8::1", ADDRESS_PRIVATE },
        { "203.0.113.9", ADDRESS_PRIVATE },
        { "169.254.169.254", ADDRESS_NEVER },
        { "168.63.129.16", ADDRESS_NEVER },
        { "168.63.129.17", ADDRESS_PUBLIC },
        { "::ffff:169.254.169.254", ADDRESS_NEVER },
        { "2002:a9fe:a9fe::", ADDRESS_NEVER },
        { "64:ff9b::a9fe:a9fe", ADDRESS_NEVER },
        { "2001::1", ADDRESS_NEVER },
        { "::8.8.8.8", ADDRESS_NEVER },
        { "fe80::1", ADDRESS_NEVER },
        { "fec0::1", ADDRESS_NEVER },
        { "ff02::1", ADDRESS_NEVER },
        { "::", ADDRESS_NEVER },
        { "0.0.0.0", ADDRESS_NEVER },
        { "224.0.0.1", ADDRESS_NEVER },
        { "255.255.255.255", ADDRESS_NEVER },
        { "192.88.99.1", ADDRESS_NEVER },
        { "4000::1", ADDRESS_NEVER },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct address a = parse(cases[i].text);
        if (address_kind_of(&a) != cases[i].kind)
            fail_msg("%s is not of kind %d", cases[i].text, cases[i].kind);
    }
    struct address none = { 0 };
    CHECK_EQ(address_kind_of(&none), ADDRESS_NEVER);
}

TEST(a_mapped_address_is_the_ipv4_one)
{
    struct address a = parse("::ffff:192.0.2.1"), b = parse("192.0.2.1");
    char text[ADDRESS_TEXT_SIZE];
    CHECK(address_equal(&a, &b));
    CHECK_STR(address_text(&a, text), "192.0.2.1");
}

TEST(an_address_survives_a_socket_address)
{
    static const char *const texts[] = { "192.0.2.1", "2001:db8::7" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct address a = parse(texts[i]), b;
        struct sockaddr_storage sa;
        CHECK(address_to_sockaddr(&a, 80, &sa) > 0);
        CHECK_OK(address_from_sockaddr((const struct sockaddr *)&sa, &b));
        CHECK(address_equal(&a, &b));
    }
    struct sockaddr local = { .sa_family = AF_UNIX };
    struct address a;
    CHECK_EQ(address_from_sockaddr(&local, &a), -EAFNOSUPPORT);
    CHECK_EQ(address_kind(&local), ADDRESS_NEVER);
}

TEST(addresses_in_odd_spellings_are_refused)
{
    static const char *const bad[] = { "",           "1",         "127.1",       "0177.0.0.1",
                                       "0x7f.0.0.1", "1.2.3.4.5", "1.2.3.4 ",    "fe80::1%lo",
                                       "[::1]",      "1.2.3.256", "::ffff:1.2.3" };
    struct address a;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (address_parse(bad[i], strlen(bad[i]), &a) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
    CHECK_EQ(address_parse("1.2.3.4\0x", 9, &a), -EINVAL);
}

TEST(a_range_has_what_lies_in_it)
{
    static const struct {
        const char *range, *address;
        bool has;
    } cases[] = {
        { "10.0.0.0/8", "10.255.0.1", true },
        { "10.0.0.0/8", "11.0.0.0", false },
        { "10.1.2.3/8", "10.9.9.9", true },
        { "172.16.0.0/12", "172.31.0.1", true },
        { "172.16.0.0/12", "172.32.0.1", false },
        { "192.0.2.1", "192.0.2.1", true },
        { "192.0.2.1", "192.0.2.2", false },
        { "0.0.0.0/0", "8.8.8.8", true },
        { "0.0.0.0/0", "2001:db8::1", false },
        { "::/0", "2001:db8::1", true },
        { "::/0", "8.8.8.8", false },
        { "2001:db8::/33", "2001:db8:7fff::1", true },
        { "2001:db8::/33", "2001:db8:8000::1", false },
        { "::ffff:10.0.0.0/104", "10.1.1.1", true },
        { "10.0.0.0/8", "::ffff:10.1.1.1", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct range r = range(cases[i].range);
        struct address a = parse(cases[i].address);
        if (range_has(&r, &a) != cases[i].has)
            fail_msg("%s in %s should be %d", cases[i].address, cases[i].range, cases[i].has);
    }
}

TEST(a_range_is_written_as_it_is_read)
{
    char text[RANGE_TEXT_SIZE];
    struct range r = range("10.1.2.3/8");
    CHECK_STR(range_text(&r, text), "10.0.0.0/8");
    r = range("2001:db8::1");
    CHECK_STR(range_text(&r, text), "2001:db8::1");
    static const char *const bad[] = { "10.0.0.0/", "10.0.0.0/33",   "10.0.0.0/08",
                                       "/8",        "10.0.0.0/-1",   "10.0.0.0/8/8",
                                       "::/129",    "::ffff:0:0/95", "10.0.0.0/+8" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (range_parse(bad[i], strlen(bad[i]), &r) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
}

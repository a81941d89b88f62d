#include "registry/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "base/check.h"

static enum address_kind kind(const char *text)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return address_kind((const struct sockaddr *)&v4);
    CHECK_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return address_kind((const struct sockaddr *)&v6);
}

TEST(addresses_are_told_apart)
{
    static const struct {
        const char *text;
        enum address_kind kind;
    } cases[] = {
        { "8.8.8.8", ADDRESS_PUBLIC },          { "172.32.0.1", ADDRESS_PUBLIC },
        { "100.128.0.1", ADDRESS_PUBLIC },      { "2001:4860::1", ADDRESS_PUBLIC },
        { "127.0.0.1", ADDRESS_PRIVATE },       { "10.1.2.3", ADDRESS_PRIVATE },
        { "172.31.255.255", ADDRESS_PRIVATE },  { "192.168.1.1", ADDRESS_PRIVATE },
        { "100.100.100.200", ADDRESS_PRIVATE }, { "::1", ADDRESS_PRIVATE },
        { "fd00:ec2::254", ADDRESS_PRIVATE },   { "::ffff:10.0.0.1", ADDRESS_PRIVATE },
        { "64:ff9b::7f00:1", ADDRESS_PRIVATE }, { "2002:7f00:1::", ADDRESS_PRIVATE },
        { "169.254.169.254", ADDRESS_NEVER },   { "::ffff:169.254.169.254", ADDRESS_NEVER },
        { "2002:a9fe:a9fe::", ADDRESS_NEVER },  { "fe80::1", ADDRESS_NEVER },
        { "ff02::1", ADDRESS_NEVER },           { "::", ADDRESS_NEVER },
        { "0.0.0.0", ADDRESS_NEVER },           { "224.0.0.1", ADDRESS_NEVER },
        { "255.255.255.255", ADDRESS_NEVER },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_EQ(kind(cases[i].text), cases[i].kind);
}

TEST(a_list_binds_all_but_the_operator)
{
    struct access open = { 0 }, list = { .allow = "a.test, b.test:5000" };
    struct access trusted = { .trusted = true, .allow = list.allow };
    struct err err = ERR_INIT;
    CHECK_OK(access_host(&open, "x.test", &err));
    CHECK_OK(access_host(&trusted, "x.test", &err));
    CHECK_OK(access_host(&list, "A.test", &err));
    CHECK_OK(access_host(&list, "b.test:5000", &err));
    CHECK_EQ(access_host(&list, "b.test", &err), -EACCES);
    CHECK_EQ(access_host(&list, "test", &err), -EACCES);
    CHECK_STR(err.what, "forbidden");
}

TEST(private_addresses_are_for_the_operator_and_listed_hosts)
{
    struct access open = { 0 }, list = { .allow = "a.test" }, trusted = { .trusted = true };
    struct sockaddr_in lo = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_in meta = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xa9fea9fe) };
    const struct sockaddr *to_lo = (const struct sockaddr *)&lo;
    const struct sockaddr *to_meta = (const struct sockaddr *)&meta;
    CHECK(!access_address(&open, "a.test", to_lo));
    CHECK(access_address(&list, "a.test", to_lo));
    CHECK(!access_address(&list, "elsewhere.test", to_lo));
    CHECK(access_address(&trusted, "a.test", to_lo));
    CHECK(!access_address(&trusted, "a.test", to_meta));
    CHECK(!access_address(&list, "a.test", to_meta));
}

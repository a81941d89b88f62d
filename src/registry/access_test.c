#include "registry/access.h"

#include <errno.h>
#include <netinet/in.h>

#include "base/check.h"

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
    CHECK_STR(failure_name(err.failure), "forbidden");
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

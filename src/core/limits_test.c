#include "core/limits.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

TEST(limits_are_read_from_an_option)
{
    static const char *const wrong[] = {
        "connections",    "connections=",  "connections=x",
        "connections=-1", "bandwidth=3",   "rate_mbps=1,total_mb",
        "connections=1;", "rate_mbps=1e3", "connections=9999999999"
    };
    struct network_limits l;
    CHECK_OK(limits_parse(NULL, &l, NULL));
    CHECK_EQ(l.connections, 0);
    CHECK_OK(limits_parse("connections=10, rate_mbps=100,total_mb=5", &l, NULL));
    CHECK_EQ(l.connections, 10);
    CHECK_EQ(l.connections_per_s, 0);
    CHECK_EQ(l.rate_mbps, 100);
    CHECK_EQ(l.total_mb, 5);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_EQ(limits_parse(wrong[i], &l, NULL), -EINVAL);
}

TEST(what_is_not_said_is_the_usual_and_nothing_is_beyond_the_most)
{
    const struct network_limits usual = { .connections = 50, .rate_mbps = 10 };
    const struct network_limits most = { .connections = 100, .total_mb = 1000 };
    struct network_limits said = { .connections = 70 };
    struct err err = ERR_INIT;
    struct network_limits l = limits_apply(&said, &usual, &most);
    CHECK_EQ(l.connections, 70);
    CHECK_EQ(l.rate_mbps, 10);
    CHECK_EQ(l.connections_per_s, 0);
    CHECK_EQ(l.total_mb, 1000);
    CHECK_OK(limits_check(&said, &most, &err));
    said.connections = 101;
    CHECK_EQ(limits_check(&said, &most, &err), -EINVAL);
    CHECK(strstr(err.msg, "network_limits.connections") != NULL);
    CHECK_OK(limits_check(&said, NULL, &err));
    said.total_mb = 1ull << 60;
    CHECK_EQ(limits_check(&said, NULL, &err), -EINVAL);
}

TEST(limits_come_back_from_their_form_at_rest)
{
    const struct network_limits l = { .connections = 7, .rate_mbps = 3, .total_mb = 1ull << 33 };
    struct network_limits back = { 0 };
    json_t *o = limits_to_json(&l);
    CHECK(o != NULL);
    CHECK_EQ(json_object_size(o), 3);
    limits_from_json(o, &back);
    json_decref(o);
    CHECK_EQ(back.connections, 7);
    CHECK_EQ(back.connections_per_s, 0);
    CHECK_EQ(back.total_mb, 1ull << 33);
    limits_from_json(NULL, &back); /* of a spec from before there were any */
    CHECK_EQ(back.connections, 7);
}

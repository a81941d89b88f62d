#include "net/host.h"

#include <errno.h>

#include "base/check.h"

static int canon(const char *text, char out[HOST_SIZE])
{
    return host_canon(text, strlen(text), out);
}

TEST(a_name_has_one_spelling)
{
    char out[HOST_SIZE];
    CHECK_OK(canon("Example.COM.", out));
    CHECK_STR(out, "example.com");
    CHECK_OK(canon("xn--bcher-kva.example", out));
    CHECK_OK(canon("_acme.a-b.test", out));
    CHECK_OK(canon("localhost", out));
    CHECK_OK(canon("3com.test", out));
}

TEST(what_is_no_name_is_refused)
{
    static const char *const bad[] = {
        "",
        ".",
        "a..b",
        ".a",
        "a.test..",
        "-a.test",
        "a-.test",
        "a b",
        "a/b",
        "user@a.test",
        "a.test:80",
        "a%00.test",
        "b\xc3\xbc.test",
        "*.test",
        "1.2.3.4",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "a.0x1",
        "::1",
        "[::1]",
        "a.test\n",
        "a.1",
    };
    char out[HOST_SIZE] = "as it was";
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (canon(bad[i], out) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
    CHECK_EQ(host_canon("a\0b.test", 8, out), -EINVAL);
    CHECK_STR(out, "as it was");
}

TEST(names_are_as_long_as_dns_has_them)
{
    char name[300], out[HOST_SIZE];
    memset(name, 'a', sizeof(name));
    for (size_t i = 63; i < sizeof(name); i += 64)
        name[i] = '.';
    CHECK_OK(host_canon(name, 253, out));
    CHECK_EQ(host_canon(name, 254, out), -EINVAL);
    name[63] = 'a'; /* a label of 127 */
    CHECK_EQ(host_canon(name, 200, out), -EINVAL);
}

TEST(a_pattern_matches_whole_labels)
{
    CHECK(host_matches("a.test", "a.test"));
    CHECK(!host_matches("a.test", "b.a.test"));
    CHECK(host_matches("*.a.test", "b.a.test"));
    CHECK(host_matches("*.a.test", "c.b.a.test"));
    CHECK(!host_matches("*.a.test", "a.test"));
    CHECK(!host_matches("*.a.test", "evila.test"));
    CHECK(!host_matches("*.a.test", "a.test.evil"));
}

TEST(a_star_stands_alone_and_in_front)
{
    char out[HOST_SIZE];
    CHECK_OK(host_pattern("*.A.test", 8, out));
    CHECK_STR(out, "*.a.test");
    CHECK_EQ(host_pattern("*.test", 6, out), -EINVAL);
    CHECK_EQ(host_pattern("a*.b.test", 9, out), -EINVAL);
    CHECK_EQ(host_pattern("*.*.test", 8, out), -EINVAL);
    CHECK_EQ(host_pattern("*", 1, out), -EINVAL);
    CHECK_EQ(host_pattern("*.", 2, out), -EINVAL);
}

#include "registry/reference.h"

#include <errno.h>

#include "base/check.h"

#define HEX16 "0123456789abcdef"
#define DIGEST "sha256:" HEX16 HEX16 HEX16 HEX16

static int parse(const char *text, const char *fallback, struct reference *ref)
{
    struct err err = ERR_INIT;
    int r = reference_parse(text, strlen(text), fallback, ref, &err);
    if (r < 0)
        CHECK_STR(failure_name(err.failure), "invalid_reference");
    return r;
}

TEST(a_reference_is_taken_apart)
{
    static const struct {
        const char *text, *host, *repo, *tag, *digest;
    } cases[] = {
        { "registry.test/a", "registry.test", "a", "latest", "" },
        { "registry.test:5000/a/b:v1.2", "registry.test:5000", "a/b", "v1.2", "" },
        { "localhost/a:_x", "localhost", "a", "_x", "" },
        { "127.0.0.1:5000/a__b/c-d.e---f", "127.0.0.1:5000", "a__b/c-d.e---f", "latest", "" },
        { "[::1]:5000/a", "[::1]:5000", "a", "latest", "" },
        { "HOST/a", "HOST", "a", "latest", "" },
        { "r.test/a@" DIGEST, "r.test", "a", "", DIGEST },
        { "r.test/a:t@" DIGEST, "r.test", "a", "t", DIGEST },
        { "debian:12", "fallback.test", "debian", "12", "" },
        { "library/debian", "fallback.test", "library/debian", "latest", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct reference ref;
        char text[REFERENCE_TEXT_MAX];
        CHECK_OK(parse(cases[i].text, "fallback.test", &ref));
        CHECK_STR(ref.host, cases[i].host);
        CHECK_STR(ref.repo, cases[i].repo);
        CHECK_STR(ref.tag, cases[i].tag);
        CHECK_STR(ref.digest, cases[i].digest);
        struct reference again;
        CHECK_OK(parse(reference_text(&ref, text), NULL, &again));
        CHECK_MEM(&again, &ref, sizeof(ref));
    }
}

TEST(what_is_no_reference_is_refused)
{
    static const char *const cases[] = {
        "",
        "/a",
        "r.test/",
        "r.test/A",
        "r.test/a:",
        "r.test/a:.x",
        "r.test/a b",
        "r.test/a//b",
        "r.test/a/",
        "r.test/-a",
        "r.test/a_",
        "r.test/a___b",
        "r.test/a..b",
        "r.test/../b",
        "r.test:0/a",
        "r.test:65536/a",
        "r.test:x/a",
        "-r.test/a",
        "r_.test/a",
        "r..test/a",
        "[::1/a",
        "[zz]:1/a",
        "[::1]5/a",
        "r.test/a@sha256:12",
        ("r.test/a@md5:" HEX16),
        ("r.test/a@" DIGEST "0"),
        "http://r.test/a",
        "user@r.test/a",
        "r.test/a?x",
        "r.test/a#x",
        "r.test/a%2f",
    };
    struct reference ref;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_EQ(parse(cases[i], "fallback.test", &ref), -EINVAL);
}

TEST(a_short_name_of_the_hub_is_a_library_s)
{
    struct reference ref;
    CHECK_OK(parse("docker.io/debian:12", NULL, &ref));
    CHECK_STR(ref.repo, "library/debian");
    CHECK_STR(ref.host, "docker.io");
    CHECK_STR(reference_api_host(&ref), "registry-1.docker.io");
    CHECK_OK(parse("debian", "docker.io", &ref));
    CHECK_STR(ref.repo, "library/debian");
    CHECK_OK(parse("docker.io/a/b", NULL, &ref));
    CHECK_STR(ref.repo, "a/b");
    CHECK_OK(parse("r.test/debian", NULL, &ref));
    CHECK_STR(ref.repo, "debian");
    CHECK_STR(reference_api_host(&ref), "r.test");
}

TEST(a_name_without_a_host_needs_a_default)
{
    struct reference ref;
    struct err err = ERR_INIT;
    CHECK_EQ(reference_parse("debian", 6, NULL, &ref, &err), -EINVAL);
    CHECK(strstr(err.msg, "default-registry"));
}

TEST(loopback_is_told_by_the_host_s_name)
{
    CHECK(host_is_loopback("localhost"));
    CHECK(host_is_loopback("localhost:5000"));
    CHECK(host_is_loopback("127.9.9.9:1"));
    CHECK(host_is_loopback("[::1]:5000"));
    CHECK(!host_is_loopback("127.0.0.1.evil.test"));
    CHECK(!host_is_loopback("localhost.evil.test"));
    CHECK(!host_is_loopback("[::2]"));
    CHECK(!host_is_loopback("10.0.0.1"));
}

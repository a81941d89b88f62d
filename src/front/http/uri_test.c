#include "front/http/uri.h"

#include <errno.h>

#include "base/check.h"

static int parse(const char *target, struct uri *u)
{
    return uri_parse(target, strlen(target), u, NULL);
}

TEST(a_target_comes_apart_before_it_is_decoded)
{
    _cleanup_(uri_done) struct uri u = { 0 };

    CHECK_OK(parse("/v1/images/repo%2Fname%3a1?a=1&b=x%26y+z&flag&c=", &u));
    CHECK_EQ(u.nsegments, 3);
    CHECK_STR(u.segments[0], "v1");
    CHECK_STR(u.segments[2], "repo/name:1");
    CHECK_STR(uri_param(&u, "a"), "1");
    CHECK_STR(uri_param(&u, "b"), "x&y z");
    CHECK_STR(uri_param(&u, "flag"), "");
    CHECK_STR(uri_param(&u, "c"), "");
    CHECK(uri_param(&u, "d") == NULL);
}

TEST(empty_parts_of_a_path_are_kept)
{
    _cleanup_(uri_done) struct uri u = { 0 };

    CHECK_OK(parse("/a//b/", &u));
    CHECK_EQ(u.nsegments, 4);
    CHECK_STR(u.segments[1], "");
    CHECK_STR(u.segments[3], "");
}

TEST(a_plus_is_a_plus_in_a_path)
{
    _cleanup_(uri_done) struct uri u = { 0 };

    CHECK_OK(parse("/a+b", &u));
    CHECK_STR(u.segments[0], "a+b");
}

TEST(a_doubly_escaped_part_is_decoded_once)
{
    _cleanup_(uri_done) struct uri u = { 0 };

    CHECK_OK(parse("/%252e", &u));
    CHECK_STR(u.segments[0], "%2e");
}

TEST(bad_targets_are_refused)
{
    static const char *const bad[] = {
        "",     "*",    "http://x/", "/a%",   "/a%2",    "/a%zz",         "/a%00b", "/%c0%af",
        "/%ff", "/a b", "/a#b",      "/?x=%", "/?x=%00", "/?%ed%a0%80=1", "/a\x01", "/a\x7f",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct uri u = { 0 };
        CHECK(parse(bad[i], &u) < 0);
    }
}

TEST(long_targets_are_refused)
{
    _cleanup_free_ char *many = malloc(URI_MAX + 2);
    struct uri u = { 0 };

    CHECK(many != NULL);
    memset(many, '/', URI_MAX + 1);
    CHECK_EQ(uri_parse(many, URI_MAX + 1, &u, NULL), -ENAMETOOLONG);
    CHECK_EQ(uri_parse(many, URI_SEGMENTS_MAX + 1, &u, NULL), -ENAMETOOLONG);
    memset(many, '&', URI_MAX);
    many[0] = '/';
    many[1] = '?';
    for (size_t i = 2; i < URI_MAX; i += 2)
        many[i] = 'x';
    CHECK_EQ(uri_parse(many, URI_MAX, &u, NULL), -E2BIG);
}

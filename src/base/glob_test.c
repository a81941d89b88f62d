#include "base/glob.h"

#include "base/check.h"

struct row {
    const char *pattern, *path;
    unsigned flags;
    bool match;
};

static const struct row rows[] = {
    { "", "", 0, true },
    { "a", "a", 0, true },
    { "a", "b", 0, false },
    { "a", "ab", 0, false },
    { "ab", "a", 0, false },
    { "*", "abc", 0, true },
    { "*", "", 0, true },
    { "*", "a/b", 0, false },
    { "*/b", "a/b", 0, true },
    { "*/*", "a/b/c", 0, false },
    { "*.go", "a.go", 0, true },
    { "*.go", "a.got", 0, false },
    { "*.go", "d/a.go", 0, false },
    { "a*b*c", "aXXbYYbZc", 0, true },
    { "a*b*c", "aXXbYYbZ", 0, false },
    { "a?c", "abc", 0, true },
    { "a?c", "a/c", 0, false },
    { "a?c",
      "a\xc3\xa4"
      "c",
      0, true },
    { "[a-c]x", "bx", 0, true },
    { "[a-c]x", "dx", 0, false },
    { "[^a-c]x", "dx", 0, true },
    { "[^a-c]x", "/x", 0, false },
    { "[\\]]", "]", 0, true },
    { "[]a]", "]", 0, true },
    { "[\\-a]", "-", 0, true },
    { "x[a", "xa", 0, false },
    { "\\*", "*", 0, true },
    { "\\*", "a", 0, false },
    { "**", "a/b/c", GLOB_DEEP, true },
    { "**", "a", GLOB_DEEP, true },
    { "**/b", "b", GLOB_DEEP, true },
    { "**/b", "a/b", GLOB_DEEP, true },
    { "**/b", "a/c/b", GLOB_DEEP, true },
    { "**/b", "ab", GLOB_DEEP, false },
    { "**/b", "a/ab", GLOB_DEEP, false },
    { "**/*.go", "a/b/c.go", GLOB_DEEP, true },
    { "**/*.go", "c.go", GLOB_DEEP, true },
    { "a/**", "a/b", GLOB_DEEP, true },
    { "a/**", "a/b/c", GLOB_DEEP, true },
    { "a/**", "b/a/c", GLOB_DEEP, false },
    { "a/**/b", "a/b", GLOB_DEEP, true },
    { "a/**/b", "a/x/y/b", GLOB_DEEP, true },
    { "a/**/b", "a/x/yb", GLOB_DEEP, false },
    { "a/**/b/**/c", "a/b/b/c/c", GLOB_DEEP, true },
    { "**/x*/y", "xa/b/xc/y", GLOB_DEEP, true },
    { "a**/b", "ab/b", GLOB_DEEP, true },
    { "**a", "x/ya", GLOB_DEEP, true },
    { "***/b", "x/y/b", GLOB_DEEP, true },
};

TEST(a_path_matches_as_docker_has_it)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (glob_match(rows[i].pattern, rows[i].path, rows[i].flags) != rows[i].match)
            fail_msg("'%s' on '%s' should be %d", rows[i].pattern, rows[i].path, rows[i].match);
}

TEST(a_pattern_that_does_not_end_is_invalid)
{
    CHECK(glob_valid("a/[b-c]*\\["));
    CHECK(!glob_valid("a["));
    CHECK(!glob_valid("[]"));
    CHECK(!glob_valid("[a"));
    CHECK(!glob_valid("a\\"));
}

TEST(stars_do_not_make_a_match_slow)
{
    char pattern[401], path[4097];
    for (size_t i = 0; i < 400; i++)
        pattern[i] = "*a"[i % 2];
    pattern[399] = 'b';
    pattern[400] = '\0';
    memset(path, 'a', 4096);
    path[4096] = '\0';
    CHECK(!glob_match(pattern, path, 0));
    CHECK(!glob_match(pattern, path, GLOB_DEEP));
}

TEST(a_plain_name_has_no_magic)
{
    CHECK(!glob_magic("src/main.c"));
    CHECK(glob_magic("src/*.c"));
    CHECK(glob_magic("a[b]"));
}

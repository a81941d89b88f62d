#include "init/file/globs.h"

#include <errno.h>

#include "base/check.h"
#include "base/cleanup.h"

TEST(a_pattern_matches_what_people_expect)
{
    static const struct {
        const char *pattern, *rel;
        bool yes;
    } cases[] = {
        { "*.py", "a.py", true },
        { "*.py", "dir/a.py", true }, /* about the name */
        { "*.py", "a.pyc", false },
        { "?.c", "a.c", true },
        { "?.c", "ab.c", false },
        { "[a-c]x", "bx", true },
        { "[!a-c]x", "bx", false },
        { "[]x]", "]", true },
        { "[", "[", true },
        { "a[", "a[", true },
        { "\\*", "*", true },
        { "\\*", "a", false },
        { "src/*.c", "src/a.c", true },
        { "src/*.c", "src/x/a.c", false },
        { "src/**/*.c", "src/a.c", true },
        { "src/**/*.c", "src/x/y/a.c", true },
        { "**/foo", "foo", true },
        { "**/foo", "a/b/foo", true },
        { "**/foo", "barfoo", false },
        { "**/foo", "a/barfoo", false },
        { "a/**", "a/b/c", true },
        { "a/**", "b/a/c", false },
        { "**/a*b/**/c", "x/aXb/y/z/c", true },
        { "**/a*b/**/c", "x/aX/b/y/z/c", false },
        { "*.{c,h}", "x.h", true },
        { "*.{c,h}", "x.o", false },
        { "{a,b{1,2}}x", "b2x", true },
        { "{a,b{1,2}}x", "bx", false },
        { "x{", "x{", true },
        { "./a", "a", true },
        { "", "a", false },
        { "*", "", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct globs g;
        CHECK_OK(globs_init(&g, &cases[i].pattern, 1));
        if (globs_match(&g, cases[i].rel, "/top", false) != cases[i].yes)
            fail_msg("%s against %s", cases[i].pattern, cases[i].rel);
        globs_done(&g);
    }
}

TEST(case_may_not_matter)
{
    CHECK(globs_match_one("*.PY", "a.py", true));
    CHECK(globs_match_one("[A-C]", "b", true));
    CHECK(!globs_match_one("*.PY", "a.py", false));
}

TEST(a_hostile_pattern_takes_no_time)
{
    char text[4096], stars[2000];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (size_t i = 0; i + 1 < sizeof(stars); i++)
        stars[i] = i % 2 ? 'a' : '*';
    stars[sizeof(stars) - 1] = '\0';
    stars[sizeof(stars) - 2] = 'b';
    CHECK(!globs_match_one(stars, text, false));
    const char *braces = "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}";
    struct globs g;
    CHECK_EQ(globs_init(&g, &braces, 1), -EINVAL);
}

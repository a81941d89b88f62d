#include "base/ignore.h"

#include <errno.h>

#include "base/check.h"

struct row {
    const char *rules, *path;
    bool ignored;
};

static const struct row rows[] = {
    { "", "a", false },
    { "a", "a", true },
    { "a", "b", false },
    { "a", "a/b/c", true }, /* below a directory that matches */
    { "a", "b/a", false },  /* a name alone is at the top */
    { "**/a", "b/a", true },
    { "**/a", "a", true },
    { "*/a", "b/a", true },
    { "*/a", "c/b/a", false },
    { "*/temp*", "somedir/temporary.txt", true },
    { "*/*/temp*", "somedir/subdir/temporary.txt", true },
    { "temp?", "tempa", true },
    { "temp?", "temp", false },
    { "*.md", "README.md", true },
    { "*.md", "docs/README.md", false },
    { "**/*.md", "docs/a/README.md", true },
    { "*.md\n!README.md", "README.md", false },
    { "*.md\n!README.md", "other.md", true },
    { "*.md\n!README*.md\nREADME-secret.md", "README-secret.md", true },
    { "*.md\nREADME-secret.md\n!README*.md", "README-secret.md", false },
    { "*\n!src", "src/main.c", false }, /* brought back with all below it */
    { "*\n!src", "doc/x", true },
    { "*\n!src/*.c", "src/main.c", false },
    { "*\n!src/*.c", "src/main.h", true },
    { "# a comment\na", "a", true },
    { "# a comment\na", "# a comment", false },
    { "#a", "#a", false },
    { " #a", "#a", true }, /* not in the first column: a name */
    { "/a", "a", true },
    { "/a/b/", "a/b", true },
    { "./a", "a", true },
    { "  a  ", "a", true },
    { "a\r\nb\r\n", "b", true },
    { "! a\n", "a", false },
    { "*\n! a\n", "a", false },
    { "\xef\xbb\xbf"
      "a",
      "a", true },
    { "a/../b", "b", true },
    { ".git", ".gitignore", false },
    { "\\#a", "#a", true },
    { "node_modules", "node_modules/x/y.js", true },
    { "**/node_modules/**", "pkg/node_modules/x/y.js", true },
};

TEST(rules_decide_as_docker_has_it)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_(ignore_done) struct ignore ig = { 0 };
        CHECK_OK(ignore_parse(rows[i].rules, strlen(rows[i].rules), &ig, NULL));
        if (ignore_match(&ig, rows[i].path) != rows[i].ignored)
            fail_msg("'%s' on '%s' should be %d", rows[i].rules, rows[i].path, rows[i].ignored);
    }
}

TEST(a_directory_is_pruned_only_when_nothing_is_brought_back)
{
    _cleanup_(ignore_done) struct ignore plain = { 0 }, back = { 0 };
    CHECK_OK(ignore_parse("a", 1, &plain, NULL));
    CHECK_OK(ignore_parse("a\n!a/b", 6, &back, NULL));
    CHECK(ignore_prunes(&plain, "a"));
    CHECK(!ignore_prunes(&plain, "b"));
    CHECK(!ignore_prunes(&back, "a"));
    CHECK(!ignore_match(&back, "a/b"));
}

TEST(a_bad_rule_names_its_line)
{
    struct ignore ig;
    struct err err = ERR_INIT;
    CHECK_EQ(ignore_parse("a\n[", 3, &ig, &err), -EINVAL);
    CHECK(strstr(err.msg, "line 2"));
    CHECK_EQ(ignore_parse("!", 1, &ig, &err), -EINVAL);
    CHECK(strstr(err.msg, "line 1"));
    CHECK_EQ(ignore_parse("a\0b", 3, &ig, &err), -EINVAL);
}

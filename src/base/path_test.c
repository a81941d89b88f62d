#include "base/path.h"

#include "base/check.h"

TEST(a_path_is_cleaned_by_its_text_alone)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        { "", "." },
        { ".", "." },
        { "a", "a" },
        { "a/", "a" },
        { "./a", "a" },
        { "a//b", "a/b" },
        { "a/./b", "a/b" },
        { "a/../b", "b" },
        { "a/..", "." },
        { "..", ".." },
        { "../..", "../.." },
        { "../a/..", ".." },
        { "../../a", "../../a" },
        { "a/../../b", "../b" },
        { "/", "/" },
        { "//", "/" },
        { "/..", "/" },
        { "/../a", "/a" },
        { "/a/b/../../..", "/" },
        { "/a/./b/", "/a/b" },
        { "a/b/..", "a" },
        { "/a/..", "/" },
        { "...", "..." },
        { "a/...", "a/..." },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "%s", rows[i].from);
        path_clean(text);
        if (strcmp(text, rows[i].to) != 0)
            fail_msg("'%s' became '%s', not '%s'", rows[i].from, text, rows[i].to);
    }
}

TEST(a_relative_path_lies_below_its_directory)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64);
    CHECK_OK(path_resolve("/app", "src", &b));
    CHECK_STR(b.data, "/app/src");
    CHECK_OK(path_resolve("/app", "/etc/", &b));
    CHECK_STR(b.data, "/etc");
    CHECK_OK(path_resolve("/", "../..", &b));
    CHECK_STR(b.data, "/");
    CHECK_STR(path_base("/a/b"), "b");
    CHECK_STR(path_base("b"), "b");
}

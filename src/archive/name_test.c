#include "archive/name.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"

TEST(names_are_made_plain_or_refused)
{
    static const struct {
        const char *in, *out;
        int r;
    } cases[] = {
        { "a", "a", 0 },
        { "./a/b", "a/b", 0 },
        { "a//b/./c/", "a/b/c", 0 },
        { "./", ".", 0 },
        { ".", ".", 0 },
        { "...", "...", 0 },
        { "a/..b", "a/..b", 0 },
        { "/a", NULL, -EPERM },
        { "..", NULL, -EPERM },
        { "a/../b", NULL, -EPERM },
        { "./../a", NULL, -EPERM },
        { "a/..", NULL, -EPERM },
        { "", NULL, -EINVAL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[NAME_SIZE] = "";
        CHECK_EQ(name_clean(cases[i].in, out), cases[i].r);
        if (cases[i].out)
            CHECK_STR(out, cases[i].out);
    }
}

TEST(a_name_that_no_kernel_takes_is_refused)
{
    char in[NAME_SIZE + 10], out[NAME_SIZE];
    memset(in, 'x', sizeof(in));
    in[sizeof(in) - 1] = '\0';
    CHECK_EQ(name_clean(in, out), -ENAMETOOLONG);
    in[NAME_SIZE - 1] = '\0';
    CHECK_OK(name_clean(in, out));
    CHECK_EQ(strlen(out), NAME_SIZE - 1);
}

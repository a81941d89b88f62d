#include "unpack/stream.h"

#include <errno.h>

#include "base/check.h"

TEST(a_path_is_made_plain_or_refused)
{
    static const struct {
        const char *given, *plain; /* NULL: refused */
    } cases[] = {
        { "a/b", "a/b" },
        { "./a//b/", "a/b" },
        { "/a/./b", "a/b" },
        { ".", "" },
        { "/", "" },
        { "", "" },
        { "..", NULL },
        { "a/..", NULL },
        { "../a", NULL },
        { "a/../b", NULL },
        { "...", "..." },
        { "a/..b", "a/..b" },
        { "0123456789", NULL },
    };
    char out[8];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int r = stream_path(cases[i].given, out, sizeof(out));
        CHECK_EQ(r, cases[i].plain ? 0 : -EINVAL);
        if (cases[i].plain)
            CHECK_STR(out, cases[i].plain);
    }
    CHECK_EQ(stream_path(NULL, out, sizeof(out)), -EINVAL);
}

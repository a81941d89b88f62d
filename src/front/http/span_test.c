#include "front/http/span.h"

#include <errno.h>
#include <stddef.h>

#include "base/check.h"

TEST(a_range_is_read_or_refused)
{
    static const struct {
        const char *text;
        int r;
        bool given;
        uint64_t first, last; /* of a file of 100 bytes */
    } cases[] = {
        { NULL, 0, false, 0, 0 },
        { "bytes=0-0", 0, true, 0, 0 },
        { "bytes=10-19", 0, true, 10, 19 },
        { "bytes=10-", 0, true, 10, UINT64_MAX },
        { "bytes=-30", 0, true, 70, UINT64_MAX },
        { "bytes=-300", 0, true, 0, UINT64_MAX },
        { "bytes=0-1,5-6", 0, false, 0, 0 },
        { "lines=1-2", 0, false, 0, 0 },
        { "bytes=", -EINVAL, false, 0, 0 },
        { "bytes=-", -EINVAL, false, 0, 0 },
        { "bytes=5", -EINVAL, false, 0, 0 },
        { "bytes=5-4", -EINVAL, false, 0, 0 },
        { "bytes=5-4x", -EINVAL, false, 0, 0 },
        { "bytes=99999999999999999999-", -EINVAL, false, 0, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct span g;
        CHECK_EQ(span_parse(cases[i].text, &g), cases[i].r);
        CHECK_EQ(g.given, cases[i].given);
        if (!g.given)
            continue;
        CHECK_OK(span_settle(&g, 100));
        CHECK_EQ(g.first, cases[i].first);
        CHECK_EQ(g.last, cases[i].last);
    }
}

TEST(a_suffix_of_nothing_takes_in_nothing)
{
    struct span g;
    CHECK_OK(span_parse("bytes=-0", &g));
    CHECK_EQ(span_settle(&g, 100), -ERANGE);
    CHECK_OK(span_parse("bytes=-5", &g));
    CHECK_EQ(span_settle(&g, 0), -ERANGE);
}

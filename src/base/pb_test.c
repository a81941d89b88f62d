#include "base/pb.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

TEST(pb_reads_what_it_wrote)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(256);
    struct pb_field f;
    CHECK_OK(pb_put_int(&b, 1, 300));
    CHECK_OK(pb_put_str(&b, 68, "a path"));
    CHECK_OK(pb_put_str(&b, 3, NULL));
    CHECK_OK(pb_put_int(&b, 7, UINT64_MAX));
    struct pb_reader r = { b.data, b.len };
    CHECK_EQ(pb_next(&r, &f), 1);
    CHECK_EQ(f.number, 1);
    CHECK_EQ(f.value, 300);
    CHECK_EQ(pb_next(&r, &f), 1);
    CHECK_EQ(f.number, 68);
    CHECK(f.n == 6 && memcmp(f.p, "a path", 6) == 0);
    CHECK_EQ(pb_next(&r, &f), 1);
    CHECK(f.value == UINT64_MAX);
    CHECK_EQ(pb_next(&r, &f), 0);
}

TEST(pb_writes_as_others_read_it)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64);
    CHECK_OK(pb_put_int(&b, 1, 150)); /* the format's own example */
    CHECK(b.len == 3 && memcmp(b.data, "\x08\x96\x01", 3) == 0);
}

TEST(pb_believes_no_length)
{
    static const struct {
        const char *p;
        size_t n;
    } cases[] = {
        { "\x0a\x05"
          "abc",
          5 }, /* five bytes of three */
        { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
        { "\x08", 1 },     /* no number */
        { "\x08\xff", 2 }, /* one without an end */
        { "\x00\x01", 2 }, /* field 0 */
        { "\x0b", 1 },     /* a kind that is gone */
        { "\x09"
          "1234567",
          8 }, /* seven bytes of eight */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pb_reader r = { cases[i].p, cases[i].n };
        struct pb_field f;
        CHECK_EQ(pb_next(&r, &f), -EPROTO);
    }
}

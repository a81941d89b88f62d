#include "front/http/gzip.h"

#include <zlib.h>

#include "base/check.h"

TEST(a_client_says_whether_it_reads_gzip)
{
    static const struct {
        const char *header;
        bool yes;
    } cases[] = {
        { NULL, false },
        { "", false },
        { "gzip", true },
        { "GZIP", true },
        { "deflate, gzip;q=1.0, *;q=0.5", true },
        { "br", false },
        { "*", true },
        { "*;q=0", false },
        { "gzip;q=0", false },
        { "gzip; q=0.000", false },
        { "gzip;q=0.1", true },
        { "gzip;q=0, *", false },
        { "gzipped", false },
        { ",,,gzip", true },
        { "identity", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_EQ(gzip_accepted(cases[i].header), cases[i].yes);
}

TEST(what_was_packed_can_be_unpacked)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
    char text[5000], back[6000];
    z_stream z = { 0 };
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i * i % 26);
    CHECK_OK(gzip_pack(text, sizeof(text), &b));
    CHECK(b.len < sizeof(text));
    CHECK_EQ(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = (Bytef *)b.data;
    z.avail_in = (uInt)b.len;
    z.next_out = (Bytef *)back;
    z.avail_out = sizeof(back);
    CHECK_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
    CHECK_EQ(z.total_out, sizeof(text));
    CHECK_MEM(back, text, sizeof(text));
    (void)inflateEnd(&z);
}

TEST(answers_of_any_length_are_packed_in_the_room_they_are_given)
{
    static const size_t lengths[] = { 1, 1024, 150000, 256 << 10, 3 << 20 };

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        _cleanup_free_ char *text = calloc(1, lengths[i]);
        _cleanup_(buf_done) struct buf b = BUF_INIT(GZIP_ROOM(lengths[i]));
        CHECK(text != NULL);
        CHECK_OK(gzip_pack(text, lengths[i], &b));
    }
}

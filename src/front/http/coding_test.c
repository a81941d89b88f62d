#include "front/http/coding.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"

#define TEXT_LEN 300000

struct source {
    const char *p;
    size_t left;
};

static ssize_t pull(void *arg, char *out, size_t max)
{
    struct source *s = arg;
    size_t n = s->left < max ? s->left : max;
    n = n > 1000 ? n - 7 : n; /* pieces of odd sizes */
    memcpy(out, s->p, n);
    s->p += n;
    s->left -= n;
    return (ssize_t)n;
}

static int keep(void *arg, const char *p, size_t n)
{
    return buf_append(arg, p, n);
}

static void text_of(char *text)
{
    for (size_t i = 0; i < TEXT_LEN; i++)
        text[i] = (char)('a' + i * i / 64 % 26);
}

static void encode(enum coding coding, const char *text, size_t n, struct buf *out)
{
    _cleanup_(encoder_freep) struct encoder *e = NULL;
    struct source s = { text, n };
    char piece[997];
    ssize_t got;
    CHECK_OK(encoder_new(coding, &e));
    while ((got = encoder_read(e, piece, sizeof(piece), pull, &s)) > 0)
        CHECK_OK(buf_append(out, piece, (size_t)got));
    CHECK_EQ(got, 0);
}

static void round_trip(enum coding coding, size_t len, size_t piece)
{
    _cleanup_(decoder_freep) struct decoder *d = NULL;
    _cleanup_(buf_done) struct buf coded = BUF_INIT(TEXT_LEN * 2), plain = BUF_INIT(TEXT_LEN);
    _cleanup_free_ char *text = malloc(TEXT_LEN);
    text_of(text);
    encode(coding, text, len, &coded);
    CHECK_OK(decoder_new(coding, &d));
    CHECK_EQ(decoder_end(d), -EBADMSG); /* nothing came yet */
    for (size_t at = 0; at < coded.len; at += piece) {
        size_t n = coded.len - at < piece ? coded.len - at : piece;
        CHECK_OK(decoder_feed(d, coded.data + at, n, keep, &plain));
    }
    CHECK_OK(decoder_end(d));
    CHECK_EQ(plain.len, len);
    if (len)
        CHECK_MEM(plain.data, text, len);
}

TEST(what_is_coded_decodes_to_the_same_in_pieces_of_any_size)
{
    static const enum coding codings[] = { CODING_GZIP, CODING_ZSTD };
    for (size_t i = 0; i < ARRAY_LEN(codings); i++) {
        round_trip(codings[i], TEXT_LEN, 65536);
        round_trip(codings[i], TEXT_LEN, 13);
        round_trip(codings[i], 1, 1);
        round_trip(codings[i], 0, 5);
    }
}

TEST(bad_and_cut_data_is_told_apart_from_good)
{
    static const enum coding codings[] = { CODING_GZIP, CODING_ZSTD };
    for (size_t i = 0; i < ARRAY_LEN(codings); i++) {
        _cleanup_(decoder_freep) struct decoder *cut = NULL;
        _cleanup_(decoder_freep) struct decoder *bad = NULL;
        _cleanup_(buf_done) struct buf coded = BUF_INIT(4096), plain = BUF_INIT(4096);
        encode(codings[i], "hello hello hello", 17, &coded);
        CHECK_OK(decoder_new(codings[i], &cut));
        CHECK_OK(decoder_feed(cut, coded.data, coded.len - 3, keep, &plain));
        CHECK_EQ(decoder_end(cut), -EBADMSG);
        CHECK_OK(decoder_new(codings[i], &bad));
        CHECK_EQ(decoder_feed(bad, "this is not coded at all", 24, keep, &plain), -EBADMSG);
    }
}

TEST(two_members_in_a_row_are_one_body)
{
    _cleanup_(decoder_freep) struct decoder *d = NULL;
    _cleanup_(buf_done) struct buf coded = BUF_INIT(4096), plain = BUF_INIT(4096);
    encode(CODING_GZIP, "one", 3, &coded);
    encode(CODING_GZIP, "two", 3, &coded);
    CHECK_OK(decoder_new(CODING_GZIP, &d));
    CHECK_OK(decoder_feed(d, coded.data, coded.len, keep, &plain));
    CHECK_OK(decoder_end(d));
    CHECK_STR(plain.data, "onetwo");
}

TEST(the_best_coding_that_is_accepted)
{
    enum coding c = CODING_ZSTD;
    CHECK_EQ(coding_accepted(NULL), CODING_NONE);
    CHECK_EQ(coding_accepted("identity"), CODING_NONE);
    CHECK_EQ(coding_accepted("gzip, deflate, br"), CODING_GZIP);
    CHECK_EQ(coding_accepted("deflate, gzip, br, zstd"), CODING_ZSTD);
    CHECK_EQ(coding_accepted("zstd;q=0, gzip;q=0.5"), CODING_GZIP);
    CHECK_EQ(coding_accepted("gzip;q=0.0"), CODING_NONE);
    CHECK_EQ(coding_accepted("xgzip,gzipx"), CODING_NONE);
    CHECK_OK(coding_parse(NULL, &c));
    CHECK_EQ(c, CODING_NONE);
    CHECK_OK(coding_parse("GZIP", &c));
    CHECK_EQ(c, CODING_GZIP);
    CHECK_EQ(coding_parse("br", &c), -EINVAL);
}

#include "ws/frames.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

/* What a reader says to these bytes: one letter a piece (dpoc), '!' at the end for -EPROTO. Data and
 * codes are gathered behind a colon. `step`: bytes fed at once. */
static const char *read_all(enum frames_side side, const void *p, size_t n, size_t step)
{
    static char text[512];
    _cleanup_(frames_freep) struct frames *f = NULL;
    char kinds[64] = "", data[256] = "";
    size_t k = 0, d = 0;
    int r = 0;
    CHECK_OK(frames_new(side, &f));
    for (size_t at = 0; at < n && r >= 0; at += step) {
        struct frames_piece piece;
        frames_feed(f, (const char *)p + at, n - at < step ? n - at : step);
        while ((r = frames_next(f, &piece)) > 0) {
            char kind = "dpoc"[piece.kind];
            if (k == 0 || kind != 'd' || kinds[k - 1] != 'd')
                kinds[k++] = kind;
            if (piece.kind == FRAMES_DATA) {
                memcpy(data + d, piece.p, piece.n);
                d += piece.n;
            } else if (piece.kind == FRAMES_CLOSE) {
                d += (size_t)snprintf(data + d, sizeof(data) - d, "%u", piece.code);
            }
        }
    }
    (void)snprintf(text, sizeof(text), "%s%s:%s", kinds, r < 0 ? "!" : "", data);
    return text;
}

struct row {
    const char *what;
    const char *bytes;
    size_t n;
    const char *want;
};
#define ROW(what_, bytes_, want_)                      \
    {                                                  \
        (what_), (bytes_), sizeof(bytes_) - 1, (want_) \
    }
#define MASK "\0\0\0\0"

static const struct row rows[] = {
    ROW("data", "\x82\x82" MASK "hi", "d:hi"),
    ROW("masked", "\x82\x82\x01\x02\x03\x04ik", "d:hi"),
    ROW("nothing", "\x82\x80" MASK "\x82\x81" MASK "x", "d:x"),
    ROW("in parts, a ping between", "\x02\x81" MASK "a\x89\x81" MASK "!\x80\x81" MASK "b",
        "dpd:ab"),
    ROW("close", "\x88\x82" MASK "\x03\xe8", "c:1000"),
    ROW("close without a word", "\x88\x80" MASK, "c:0"),
    ROW("pong", "\x8a\x80" MASK, "o:"),
    ROW("half", "\x82\x85" MASK "hel", "d:hel"),
    ROW("unmasked", "\x82\x02hi", "!:"),
    ROW("text", "\x81\x82" MASK "hi", "!:"),
    ROW("extension", "\xc2\x82" MASK "hi", "!:"),
    ROW("no such frame", "\x83\x82" MASK "hi", "!:"),
    ROW("no such control", "\x8b\x80" MASK, "!:"),
    ROW("goes on from nothing", "\x80\x81" MASK "a", "!:"),
    ROW("begins within", "\x02\x81" MASK "a\x82\x81" MASK "b", "d!:a"),
    ROW("control in parts", "\x09\x81" MASK "a", "!:"),
    ROW("long control", "\x89\xfe\x00\x7e" MASK "aaaa", "!:"),
    ROW("length of 2^63", "\x82\xff\x80\0\0\0\0\0\0\0" MASK "aaaa", "!:"),
    ROW("longer than it need be", "\x82\xfe\x00\x01" MASK "a", "!:"),
    ROW("close with half a code", "\x88\x81" MASK "a", "!:"),
    ROW("close with no code", "\x88\x82" MASK "\0\x01", "!:"),
    ROW("a very long one, streamed", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" MASK "abc",
        "d:abc"),
};

TEST(a_clients_frames_are_read_strictly)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t step = 1; step < 40; step += 12) {
            const char *got = read_all(FRAMES_SERVER, rows[i].bytes, rows[i].n, step);
            if (strcmp(got, rows[i].want) != 0)
                (void)fprintf(stderr, "%s, step %zu\n", rows[i].what, step);
            CHECK_STR(got, rows[i].want);
        }
}

TEST(a_server_must_not_mask)
{
    CHECK_STR(read_all(FRAMES_CLIENT, "\x82\x02hi", 4, 9), "d:hi");
    CHECK_STR(read_all(FRAMES_CLIENT, "\x82\x82" MASK "hi", 8, 9), "!:");
}

static void check_passes(enum frames_side side, size_t n)
{
    _cleanup_(frames_freep) struct frames *from = NULL, *to = NULL;
    _cleanup_(buf_done) struct buf in = BUF_INIT(n + 1), wire = BUF_INIT(n + 2 * FRAMES_HEAD_MAX),
                                   out = BUF_INIT(n + 1);
    struct frames_piece piece;
    int r;
    CHECK_OK(buf_reserve(&in, n + 1));
    for (size_t i = 0; i < n; i++)
        in.data[i] = (char)(i * 31 + (i >> 8));
    in.len = n;
    CHECK_OK(frames_new(side, &from));
    CHECK_OK(frames_new(side == FRAMES_CLIENT ? FRAMES_SERVER : FRAMES_CLIENT, &to));
    CHECK_OK(frames_put(from, FRAMES_DATA, in.data, n, &wire));
    CHECK_OK(frames_put_close(from, FRAMES_NORMAL, &wire));
    frames_feed(to, wire.data, wire.len);
    while ((r = frames_next(to, &piece)) > 0 && piece.kind == FRAMES_DATA)
        CHECK_OK(buf_append(&out, piece.p, piece.n));
    CHECK_EQ(r, 1);
    CHECK_EQ(piece.kind, FRAMES_CLOSE);
    CHECK_EQ(piece.code, FRAMES_NORMAL);
    CHECK_EQ(out.len, n);
    CHECK(n == 0 || memcmp(out.data, in.data, n) == 0);
}

TEST(what_is_written_is_read_back)
{
    static const size_t sizes[] = { 0, 1, 125, 126, 4095, 4097, 65535, 65536, 300000 };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        check_passes(FRAMES_CLIENT, sizes[i]);
        check_passes(FRAMES_SERVER, sizes[i]);
    }
}

TEST(a_frame_that_does_not_fit_is_a_failure)
{
    _cleanup_(frames_freep) struct frames *f = NULL;
    _cleanup_(buf_done) struct buf out = BUF_INIT(8);
    CHECK_OK(frames_new(FRAMES_CLIENT, &f));
    CHECK(frames_put(f, FRAMES_DATA, "0123456789", 10, &out) < 0);
}

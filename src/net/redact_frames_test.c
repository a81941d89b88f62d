#include "net/redact_frames.h"

#include <errno.h>

#include "base/check.h"

#define MESSAGES_MAX 65536

/* What a client makes of it: each message's opcode and text, and "|". */
static void read_messages(const struct buf *b, struct buf *out)
{
    const unsigned char *p = (const unsigned char *)b->data;
    for (size_t at = 0; at < b->len;) {
        unsigned first = p[at], len = p[at + 1];
        size_t n = len, head = 2;
        if (len == 126) {
            n = (size_t)p[at + 2] << 8 | p[at + 3];
            head = 4;
        }
        CHECK(at + head + n <= b->len && len < 127);
        if (first & 0x0f)
            CHECK_OK(buf_printf(out, "%x:", first & 0x0f));
        CHECK_OK(buf_append(out, p + at + head, n));
        if (first & 0x80)
            CHECK_OK(buf_append(out, "|", 1));
        at += head + n;
    }
}

static int pass(const char *p, size_t n, size_t piece, struct buf *out)
{
    struct redact_words *w = redact_words_new();
    struct redact_frames f = { 0 };
    struct redact b;
    int r = 0;
    CHECK_OK(redact_words_add(w, "secret-1", 8));
    CHECK_OK(redact_init(&b, w));
    for (size_t at = 0; at < n && r >= 0; at += piece)
        r = redact_frames_take(&f, &b, p + at, n - at < piece ? n - at : piece, out);
    redact_done(&b);
    redact_words_unref(w);
    return r;
}

#define CHECK_PASSES(in_, want_)                                      \
    for (size_t piece = 1; piece < sizeof(in_); piece++) {            \
        _cleanup_(buf_done) struct buf out = BUF_INIT(MESSAGES_MAX),  \
                                       said = BUF_INIT(MESSAGES_MAX); \
        CHECK_OK(pass(in_, sizeof(in_) - 1, piece, &out));            \
        read_messages(&out, &said);                                   \
        CHECK_STR(said.data, want_);                                  \
    }

TEST(messages_pass_however_they_are_cut_and_are_whole_at_their_end)
{
    CHECK_PASSES("\x81\x05hello\x82\x03"
                 "abs",
                 "1:hello|2:abs|");
    CHECK_PASSES("\x81\x00\x81\x01s", "1:|1:s|"); /* it may begin a secret, and ends all the same */
    CHECK_PASSES("\x01\x02he\x00\x02ll\x80\x01o", "1:hello|");
}

TEST(a_secret_is_found_over_the_borders_of_frames)
{
    CHECK_PASSES("\x81\x0bx secret-1!", "1:x ********!|");
    CHECK_PASSES("\x01\x04"
                 "a se\x00\x03"
                 "cre\x80\x04t-1!",
                 "1:a ********!|");
    CHECK_PASSES("\x89\x08secret-1\x88\x02\x03\xe8", "9:********|8:\x03\xe8|");
}

TEST(a_ping_may_come_between_the_frames_of_a_message)
{
    struct buf out = BUF_INIT(MESSAGES_MAX), said = BUF_INIT(MESSAGES_MAX);
    static const char in[] = "\x01\x03xse\x89\x01p\x80\x06"
                             "cret-1";
    CHECK_OK(pass(in, sizeof(in) - 1, sizeof(in), &out));
    read_messages(&out, &said);
    CHECK_STR(said.data, "1:x9:p|********|");
    buf_done(&out);
    buf_done(&said);
}

TEST(what_a_server_may_not_send_is_refused)
{
    static const struct {
        const char *p;
        size_t n;
    } bad[] = {
        { "\xc1\x01x", 3 },          /* compressed */
        { "\x81\x81mmmmx", 7 },      /* masked */
        { "\x80\x01x", 3 },          /* goes on with nothing */
        { "\x01\x01x\x81\x01y", 6 }, /* a second one within a first */
        { "\x09\x01x", 3 },          /* a ping in parts */
        { "\x89\x7e\x00\x80", 4 },   /* a large one */
        { "\x83\x01x", 3 },          /* nobody knows what */
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(MESSAGES_MAX);
        CHECK_EQ(pass(bad[i].p, bad[i].n, 100, &out), -EBADMSG);
    }
}

TEST(a_large_message_keeps_its_length)
{
    enum { SIZE = 70000 };
    static char in[SIZE + 10] = { (char)0x82, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70 };
    struct buf out = BUF_INIT(1 << 20);
    memset(in + 10, 'x', SIZE);
    CHECK_OK(pass(in, sizeof(in), sizeof(in), &out));
    CHECK_EQ(out.len, sizeof(in));
    CHECK_MEM(out.data, in, sizeof(in));
    buf_done(&out);
}

#include "front/rpc/envelope.h"

#include <errno.h>

#include "base/check.h"

struct seen {
    unsigned n, flags;
    size_t bytes;
    char last[16];
};

static int see(void *arg, unsigned flags, const char *p, size_t n)
{
    struct seen *s = arg;
    s->n++;
    s->flags = flags;
    s->bytes += n;
    memcpy(s->last, p, n < sizeof(s->last) ? n : sizeof(s->last));
    return n == 3 && memcmp(p, "end", 3) == 0 ? -ECANCELED : 0;
}

static const char body[] = "\0\0\0\0\5hello"
                           "\0\0\0\0\0"
                           "\2\0\0\0\2{}";

TEST(messages_come_out_whole_however_they_are_cut)
{
    for (size_t piece = 1; piece < sizeof(body); piece++) {
        struct envelopes e = ENVELOPES_INIT;
        struct seen s = { 0 };
        for (size_t at = 0; at < sizeof(body) - 1; at += piece) {
            size_t n = sizeof(body) - 1 - at < piece ? sizeof(body) - 1 - at : piece;
            CHECK_OK(envelopes_feed(&e, body + at, n, see, &s));
        }
        CHECK_OK(envelopes_end(&e));
        CHECK_EQ(s.n, 3);
        CHECK_EQ(s.bytes, 7);
        CHECK_EQ(s.flags, ENVELOPE_END);
        envelopes_done(&e);
    }
}

TEST(a_length_that_lies_is_refused_before_anything_is_kept)
{
    struct envelopes e = ENVELOPES_INIT;
    struct seen s = { 0 };
    CHECK_EQ(envelopes_feed(&e, "\0\377\377\377\377x", 6, see, &s), -EMSGSIZE);
    CHECK_EQ(e.message.len, 0);
    CHECK_EQ(s.n, 0);
    envelopes_done(&e);
}

TEST(a_cut_message_is_told_of)
{
    static const size_t cuts[] = { 1, 4, 5, 9 };
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct envelopes e = ENVELOPES_INIT;
        struct seen s = { 0 };
        CHECK_OK(envelopes_feed(&e, body, cuts[i], see, &s));
        CHECK_EQ(envelopes_end(&e), -EBADMSG);
        CHECK_EQ(s.n, 0);
        envelopes_done(&e);
    }
}

TEST(who_takes_them_can_stop_it)
{
    struct envelopes e = ENVELOPES_INIT;
    struct seen s = { 0 };
    CHECK_EQ(envelopes_feed(&e, "\0\0\0\0\3end\0\0\0\0\1x", 14, see, &s), -ECANCELED);
    CHECK_EQ(s.n, 1);
    envelopes_done(&e);
}

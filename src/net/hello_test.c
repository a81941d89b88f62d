#include "net/hello.h"

#include <errno.h>

#include "base/buf.h"
#include "base/check.h"

/* Bytes of a message, whose NUL at the end is not one of them. */
#define BYTES(text_) (text_), sizeof(text_) - 1

struct parts {
    const char *extensions; /* as they are on the wire */
    size_t n;
    size_t record; /* split into records of this size; 0: one */
};

#define NAME_EXT(list_len_, ext_len_, name_len_, name_) \
    "\0\0\0" ext_len_ "\0" list_len_ "\0\0" name_len_ name_
#define A_TEST NAME_EXT("\x9", "\xb", "\6", "a.test")
#define OTHER_EXT "\0\x17\0\0"

static void put_number(struct buf *b, size_t v, size_t bytes)
{
    while (bytes-- > 0) {
        char c = (char)(v >> 8 * bytes);
        CHECK_OK(buf_append(b, &c, 1));
    }
}

static struct buf message(const struct parts *parts)
{
    struct buf body = BUF_INIT(65536), out = BUF_INIT(65536);
    put_number(&body, 0x0303, 2);
    for (int i = 0; i < 32; i++)
        put_number(&body, 7, 1);
    put_number(&body, 0, 1);      /* no session */
    put_number(&body, 2, 2);      /* one cipher suite */
    put_number(&body, 0x1301, 2); /* */
    put_number(&body, 1, 1);      /* one compression */
    put_number(&body, 0, 1);      /* none */
    if (parts->extensions) {
        put_number(&body, parts->n, 2);
        CHECK_OK(buf_append(&body, parts->extensions, parts->n));
    }
    put_number(&out, 1, 1);
    put_number(&out, body.len, 3);
    CHECK_OK(buf_append(&out, body.data, body.len));
    buf_done(&body);
    return out;
}

static struct buf hello(const struct parts *parts)
{
    struct buf in = message(parts), out = BUF_INIT(1 << 20);
    size_t step = parts->record ? parts->record : in.len;
    for (size_t at = 0; at < in.len; at += step) {
        size_t n = in.len - at < step ? in.len - at : step;
        put_number(&out, 22, 1);
        put_number(&out, 0x0301, 2);
        put_number(&out, n, 2);
        CHECK_OK(buf_append(&out, in.data + at, n));
    }
    buf_done(&in);
    return out;
}

static int read_it(struct parts parts, char name[HOST_SIZE])
{
    _cleanup_(buf_done) struct buf b = hello(&parts);
    return hello_read(b.data, b.len, name);
}

TEST(the_name_is_found)
{
    char name[HOST_SIZE];
    CHECK_EQ(read_it((struct parts){ BYTES(OTHER_EXT A_TEST OTHER_EXT), 0 }, name), 0);
    CHECK_STR(name, "a.test");
    CHECK_EQ(read_it((struct parts){ BYTES(NAME_EXT("\x9", "\xb", "\6", "A.Test")), 0 }, name), 0);
    CHECK_STR(name, "a.test");
}

TEST(a_hello_that_may_hold_another_name_says_so)
{
    static const struct parts cases[] = {
        { BYTES(A_TEST "\xfe\x0d\0\2xx"), 0 },
        { BYTES("\xfe\x0d\0\0" A_TEST), 0 },
        { BYTES(A_TEST "\xfe\x08\0\0"), 3 }, /* a draft of ECH */
        { BYTES("\xff\xce\0\0" A_TEST), 0 }, /* ESNI */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[HOST_SIZE];
        CHECK_EQ(read_it(cases[i], name), HELLO_ENCRYPTED);
        CHECK_STR(name, "a.test");
    }
    char name[HOST_SIZE];
    CHECK_EQ(read_it((struct parts){ BYTES("\xfe\x0d\0\0"), 0 }, name), -ENOENT);
}

TEST(records_and_segments_may_cut_it_anywhere)
{
    for (size_t record = 1; record < 80; record++) {
        struct parts parts = { BYTES(OTHER_EXT A_TEST), record };
        _cleanup_(buf_done) struct buf b = hello(&parts);
        char name[HOST_SIZE] = "";
        for (size_t n = 0; n < b.len; n++)
            CHECK_EQ(hello_read(b.data, n, name), -EAGAIN);
        CHECK_STR(name, "");
        CHECK_EQ(hello_read(b.data, b.len, name), 0);
        CHECK_STR(name, "a.test");
        /* early data behind it is no matter */
        CHECK_OK(buf_append(&b, "\x17\3\3\0\1x", 6));
        CHECK_EQ(hello_read(b.data, b.len, name), 0);
    }
}

TEST(a_hello_without_a_name_says_so)
{
    char name[HOST_SIZE];
    CHECK_EQ(read_it((struct parts){ NULL, 0, 0 }, name), -ENOENT);
    CHECK_EQ(read_it((struct parts){ BYTES(""), 0 }, name), -ENOENT);
    CHECK_EQ(read_it((struct parts){ BYTES(OTHER_EXT), 0 }, name), -ENOENT);
}

TEST(a_name_that_can_be_read_in_two_ways_is_malformed)
{
    static const struct parts bad[] = {
        { BYTES(A_TEST A_TEST), 0 },                                        /* twice */
        { BYTES(A_TEST NAME_EXT("\x9", "\xb", "\6", "b.test")), 0 },        /* and another */
        { BYTES(NAME_EXT("\x12", "\x14", "\6", "a.test\0\0\6b.test")), 0 }, /* two in a list */
        { BYTES(NAME_EXT("\x9", "\xb", "\5", "a.test")), 0 }, /* lengths that disagree */
        { BYTES(NAME_EXT("\x8", "\xb", "\6", "a.test")), 0 },
        { BYTES(NAME_EXT("\x9", "\xa", "\6", "a.test")), 0 },
        { BYTES(NAME_EXT("\x9", "\xc", "\6", "a.test")), 0 },
        { BYTES(NAME_EXT("\x3", "\x5", "\0", "")), 0 }, /* empty */
        { BYTES("\0\0\0\0"), 0 },                       /* a server's */
        { BYTES(NAME_EXT("\x9", "\xb", "\6", "a\0test")), 0 },
        { BYTES(NAME_EXT("\x9", "\xb", "\6", "a.tes.")), 0 },
        { BYTES(NAME_EXT("\xa", "\xc", "\7", "1.2.3.4")), 0 },
        { BYTES(NAME_EXT("\x9", "\xb", "\6", "*.test")), 0 },
        { BYTES("\0\0\0\xb\0\x9\1\0\6a.test"), 0 }, /* no host name */
        { BYTES(OTHER_EXT "\0"), 0 },               /* something behind */
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char name[HOST_SIZE] = "as it was";
        if (read_it(bad[i], name) != -EBADMSG)
            fail_msg("case %zu was taken", i);
        CHECK_STR(name, "as it was");
    }
}

TEST(what_is_no_hello_is_told_at_once)
{
    char name[HOST_SIZE];
    CHECK_EQ(hello_read(BYTES("\x17"), name), -EBADMSG);
    CHECK_EQ(hello_read(BYTES("\x16\2"), name), -EBADMSG);
    CHECK_EQ(hello_read(BYTES("\x16\3\1\0\0"), name), -EBADMSG);           /* an empty record */
    CHECK_EQ(hello_read(BYTES("\x16\3\1\x40\1"), name), -EBADMSG);         /* a huge one */
    CHECK_EQ(hello_read(BYTES("\x16\3\1\0\4\2\0\0\0"), name), -EBADMSG);   /* a server's */
    CHECK_EQ(hello_read(BYTES("\x16\3\1\0\4\1\1\0\0"), name), -EBADMSG);   /* 64 KiB of it */
    CHECK_EQ(hello_read(BYTES("\x16\3\1\0\1\1\x15\3\1"), name), -EBADMSG); /* an alert in it */
    /* a second message in the same record */
    struct parts parts = { BYTES(A_TEST), 0 };
    _cleanup_(buf_done) struct buf b = hello(&parts);
    b.data[4]++;
    CHECK_OK(buf_append(&b, "\1", 1));
    CHECK_EQ(hello_read(b.data, b.len, name), -EBADMSG);
}

#include "net/body.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

/* In one piece, and a byte at a time: both must end at the same place. */
static int take(enum body_kind kind, uint64_t length, const char *s, size_t *ret_used)
{
    struct body whole, bytes;
    size_t used = 0, total = 0;
    body_start(&whole, kind, length);
    body_start(&bytes, kind, length);
    int r = body_take(&whole, s, strlen(s), ret_used), each = 0;
    for (size_t i = 0; i < strlen(s) && each == 0; i++) {
        each = body_take(&bytes, s + i, 1, &used);
        total += used;
    }
    CHECK_EQ(r, each);
    if (r >= 0)
        CHECK_EQ(*ret_used, total);
    return r;
}

TEST(body_ends_where_its_framing_says)
{
    size_t used = 0;
    CHECK_EQ(take(BODY_LENGTH, 3, "abcdef", &used), 1);
    CHECK_EQ(used, 3);
    CHECK_EQ(take(BODY_LENGTH, 9, "abcdef", &used), 0);
    CHECK_EQ(used, 6);
    CHECK_EQ(take(BODY_UNTIL_END, 0, "abcdef", &used), 0);
    CHECK_EQ(used, 6);
    CHECK_EQ(take(BODY_CHUNKED, 0, "3\r\nabc\r\n00A;x=y\r\n0123456789\r\n0\r\n\r\nGET", &used), 1);
    CHECK_EQ(used, 34);
    CHECK_EQ(take(BODY_CHUNKED, 0, "0\r\nA: b\r\nC: d\r\n\r\nGET", &used), 1);
    CHECK_EQ(used, 17);
}

TEST(body_refuses_broken_chunks)
{
    static const char *const bad[] = {
        "\r\n",          "x\r\n",          "3\nabc\r\n",   "3\r\nabcd\r\n", "3\r\nabc\n",
        "3 \r\nabc\r\n", "-3\r\nabc\r\n",  "+3\r\nabc",    "0x3\r\nabc",    "3;\n\r\n",
        "0\r\n\n",       "0\r\n a: b\r\n", "0\r\na\n\r\n", "0\r\n:x\r\n",   "11111111111111111\r\n",
        "3\rabc",        "3\r\rabc",
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (take(BODY_CHUNKED, 0, bad[i], &used) != -EBADMSG)
            fail_msg("accepted: %s", bad[i]);
}

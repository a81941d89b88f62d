#include "base/buf.h"

#include <errno.h>

#include "base/check.h"

TEST(buf_refuses_to_grow_past_its_limit)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4);

    CHECK_OK(buf_append(&b, "abcd", 4));
    CHECK_EQ(buf_append(&b, "e", 1), -EMSGSIZE);
    CHECK_EQ(b.len, 4); /* a refused append changes nothing */
}

TEST(buf_is_text_after_every_append)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1000);

    for (int i = 0; i < 300; i++)
        CHECK_OK(buf_puts(&b, "x"));
    CHECK_EQ(strlen(b.data), 300);
    CHECK_OK(buf_printf(&b, "%d", 7));
    CHECK_EQ(b.data[300], '7');
    buf_drop_front(&b, 300);
    CHECK_STR(b.data, "7");
}

#include "cli/attack/wire.h"

#include "base/check.h"
#include "cli/attack/tar.h"

TEST(a_hidden_answer_is_counted_and_a_cut_one_is_not)
{
    static const struct {
        const char *text;
        int status;
        unsigned n;
    } cases[] = {
        { "", 0, 0 },
        { "HTTP/1.1 200", 200, 1 },
        { "HTTP/1.1 400 x\r\n\r\n", 400, 1 },
        { "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nHTTP/1.", 200, 1 },
        { "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nx", 200, 1 },
        { "HTTP/1.1 400 x\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n",
          400, 2 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        CHECK_OK(buf_puts(&b, cases[i].text));
        CHECK_EQ(wire_status(&b), cases[i].status);
        CHECK_EQ(wire_answers(&b), cases[i].n);
    }
}

TEST(a_member_of_a_tar_is_whole_blocks)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
    tar_put(&b, "../x", '0', NULL, "hello");
    tar_put(&b, "link", '2', "/tmp", NULL);
    tar_end(&b);
    CHECK_EQ(b.len, 512 + 512 + 512 + 1024);
    CHECK_MEM(b.data, "../x", 5);
    CHECK_MEM(b.data + 512, "hello", 6);
}

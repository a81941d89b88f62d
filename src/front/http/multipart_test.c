#include "front/http/multipart.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

#define TYPE "multipart/form-data; charset=x; boundary=\"cut here\""
#define B "--cut here"

static int begin(void *arg, const struct multipart_part *part, struct err *err)
{
    const char *mode = multipart_header(part, "x-mode");
    return buf_printf(arg, "[%s|%s|%s]", part->name ? part->name : "-",
                      part->filename ? part->filename : "-", mode ? mode : "-");
}

static int data(void *arg, const char *p, size_t n, struct err *err)
{
    return buf_append(arg, p, n);
}

static int end(void *arg, struct err *err)
{
    return buf_puts(arg, "!");
}

static const struct multipart_sink sink = { begin, data, end };

/* What the parts were, fed in pieces of `piece` bytes; or the failure. */
static int read_all(const char *body, size_t n, size_t piece, struct buf *out)
{
    _cleanup_(multipart_freep) struct multipart *m = NULL;
    CHECK_OK(multipart_new(TYPE, &sink, out, &m, NULL));
    int r = 0;
    for (size_t at = 0; at < n && r >= 0; at += piece)
        r = multipart_feed(m, body + at, n - at < piece ? n - at : piece, NULL);
    return r < 0 ? r : multipart_end(m, NULL);
}

TEST(parts_come_out_the_same_whatever_the_pieces)
{
    static const char body[] =
        "preamble\r\n" B "\r\n"
        "Content-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\"; c.txt\"\r\n"
        "X-Mode: 0755\r\n\r\n"
        "one\r\n--cut her\r\r\n-two" /* nearly a boundary is data */
        "\r\n" B " \t\r\n"
        "content-disposition: form-data; name=plain\r\n\r\n"
        "\r\n" B "\r\n\r\n"
        "no head\r\n" B "--\r\nepilogue " B;
    for (size_t piece = 1; piece < sizeof(body); piece++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        CHECK_OK(read_all(body, sizeof(body) - 1, piece, &out));
        CHECK_STR(out.data, "[file|a \"b\"; c.txt|0755]one\r\n--cut her\r\r\n-two!"
                            "[plain|-|-]!"
                            "[-|-|-]no head!");
    }
}

TEST(bodies_that_are_cut_or_broken_are_refused)
{
    static const char *const bodies[] = {
        "",
        "nothing",
        B "\r\n",
        B "\r\nContent-Disposition: form-data\r\n\r\ndata",
        B "\r\nContent-Disposition: form-data\r\n\r\ndata\r\n" B,
        B "\r\nContent-Disposition: form-data\r\n\r\ndata\r\n" B "x\r\n",
        B "\r\nno colon\r\n\r\ndata\r\n" B "--",
        B "\r\nContent-Disposition: form-data; filename=\"open\r\n\r\nx\r\n" B "--",
        B "-x",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        CHECK_EQ(read_all(bodies[i], strlen(bodies[i]), 7, &out), -EBADMSG);
    }
}

TEST(a_head_is_bounded_and_a_part_is_not)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20), body = BUF_INIT(1 << 20);
    CHECK_OK(buf_puts(&body, B "\r\nX: "));
    for (size_t i = 0; i < MULTIPART_HEAD_MAX; i++)
        CHECK_OK(buf_append(&body, "y", 1));
    CHECK_EQ(read_all(body.data, body.len, 1000, &out), -EBADMSG);

    buf_clear(&body);
    CHECK_OK(buf_puts(&body, B "\r\n\r\n"));
    for (size_t i = 0; i < 300000; i++)
        CHECK_OK(buf_append(&body, "y", 1));
    CHECK_OK(buf_puts(&body, "\r\n" B "--"));
    buf_clear(&out);
    CHECK_OK(read_all(body.data, body.len, 4096, &out));
    CHECK_EQ(out.len, 300000 + strlen("[-|-|-]!"));
}

TEST(a_boundary_is_needed)
{
    static const char *const types[] = { "text/plain; boundary=x", "multipart/form-data",
                                         "multipart/form-data; boundary=",
                                         "multipart/form-data; boundary=\"x", NULL };
    struct multipart *m = NULL;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        CHECK_EQ(multipart_new(types[i], &sink, NULL, &m, NULL), -EINVAL);
}

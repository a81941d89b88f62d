#include "net/requests.h"

#include <errno.h>

#include "base/check.h"

#define ALLOWED "a.test"

static bool allow(void *arg, const char host[HOST_SIZE])
{
    (void)snprintf(arg, HOST_SIZE, "%s", host);
    return strcmp(host, ALLOWED) == 0;
}

/* Feeds it in pieces of this size; what came out is in `out`. */
static int feed(const char *text, size_t piece, struct buf *out)
{
    _cleanup_(requests_done) struct requests q = REQUESTS_INIT;
    char host[HOST_SIZE] = "";
    int r = 0;
    for (size_t at = 0, n = strlen(text); r == 0 && at < n; at += piece)
        r = requests_take(&q, text + at, n - at < piece ? n - at : piece, allow, host, out);
    return r;
}

TEST(requests_pass_unchanged_however_they_are_cut)
{
    static const char text[] =
        "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
        "POST /x HTTP/1.1\r\nHost: A.Test:80\r\nContent-Length: 5\r\n\r\nhello"
        "PUT /y HTTP/1.1\r\nHost: a.test.\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\n\r\n"
        "POST /z HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"
        "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n";
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        CHECK_EQ(feed(text, piece, &out), 0);
        CHECK_STR(out.data, text);
    }
}

TEST(another_host_on_the_same_connection_is_stopped)
{
    static const char first[] = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc";
    static const char text[] = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc"
                               "GET /secret HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        CHECK_EQ(feed(text, piece, &out), -EACCES);
        CHECK_STR(out.data, first);
    }
}

TEST(what_could_be_read_in_two_ways_is_stopped)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: evil@a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test:80:90\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT /x HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET http://evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET http://a.test@evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +3\r\n\r\n",
        "GET / HTTP/1.1\nHost: a.test\n\n",
        "PRI * HTTP/2.0\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        int r = feed(bad[i], strlen(bad[i]), &out);
        /* A head that has not ended, by our reading, passes nothing either. */
        if (r >= 0 && out.len)
            fail_msg("'%s' passed", bad[i]);
    }
}

TEST(after_a_stop_nothing_passes)
{
    _cleanup_(requests_done) struct requests q = REQUESTS_INIT;
    _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
    static const char evil[] = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    static const char good[] = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    char host[HOST_SIZE];
    CHECK_EQ(requests_take(&q, evil, sizeof(evil) - 1, allow, host, &out), -EACCES);
    CHECK_STR(host, "evil.test");
    CHECK(requests_take(&q, good, sizeof(good) - 1, allow, host, &out) < 0);
    CHECK_EQ(out.len, 0);
}

TEST(a_head_without_end_is_stopped)
{
    _cleanup_(requests_done) struct requests q = REQUESTS_INIT;
    _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
    static const char first[] = "GET / HTTP/1.1\r\nHost: a.test\r\nX: ";
    char x[1024], host[HOST_SIZE];
    int r = requests_take(&q, first, sizeof(first) - 1, allow, host, &out);
    memset(x, 'x', sizeof(x));
    for (int i = 0; r == 0 && i < 100; i++)
        r = requests_take(&q, x, sizeof(x), allow, host, &out);
    CHECK(r < 0);
    CHECK_EQ(out.len, 0);
}

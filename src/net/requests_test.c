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

TEST(nothing_passes_beside_chunks)
{
    static const char *const bodies[] = {
        "5;a=\"x\r\nhello\r\n0\r\n\r\n",
        "5;a\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nHost: evil.test\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536), text = BUF_INIT(4096);
        CHECK_OK(buf_printf(
            &text, "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n%s",
            bodies[i]));
        for (size_t piece = 1; piece <= text.len; piece++) {
            buf_clear(&out);
            CHECK_EQ(feed(text.data, piece, &out), -EBADMSG);
            CHECK(!out.data || !strstr(out.data, "evil"));
        }
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

static bool anybody(void *arg, const char host[HOST_SIZE])
{
    (void)snprintf(arg, HOST_SIZE, "%s", host[0] ? host : "nobody");
    return true;
}

TEST(an_address_is_no_name)
{
    static const struct {
        const char *head, *host;
    } all[] = {
        { "GET / HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n", "nobody" },
        { "GET / HTTP/1.1\r\nHost: 1.2.3.4:8080\r\n\r\n", "nobody" },
        { "GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n", "nobody" },
        { "GET / HTTP/1.0\r\n\r\n", "nobody" },
        { "GET / HTTP/1.1\r\nHost: 1.2.3.4.test\r\n\r\n", "1.2.3.4.test" },
        { "GET / HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n", NULL },
        { "GET / HTTP/1.1\r\nHost: [1.2.3.4]\r\n\r\n", NULL },
        { "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", NULL },
        { "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", NULL },
        { "GET / HTTP/1.1\r\nHost: :80\r\n\r\n", NULL },
        { "GET / HTTP/1.1\r\nHost: [::1]x:80\r\n\r\n", NULL },
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        _cleanup_(requests_done) struct requests q = REQUESTS_INIT;
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        char host[HOST_SIZE] = "";
        int r = requests_take(&q, all[i].head, strlen(all[i].head), anybody, host, &out);
        CHECK_EQ(r, all[i].host ? 0 : -EBADMSG);
        CHECK_STR(host, all[i].host ? all[i].host : "");
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

#define WEBSOCKET                                                               \
    "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\n" \
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                       \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define AGREED "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

static int answered(struct requests *q, const char *text, struct buf *out)
{
    char host[HOST_SIZE];
    for (size_t n = 0; n < strlen(text); n++) {
        int r = requests_answered(q, text, n, allow, host, out);
        if (r != 0)
            return r;
    }
    return requests_answered(q, text, strlen(text), allow, host, out);
}

TEST(what_follows_a_websocket_passes_once_the_server_agreed)
{
    _cleanup_(requests_done) struct requests q = REQUESTS_INIT;
    _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
    static const char early[] = WEBSOCKET "\x81\x85"
                                          "frames";
    char host[HOST_SIZE];
    CHECK_EQ(requests_take(&q, early, sizeof(early) - 1, allow, host, &out), 0);
    CHECK(q.asking);
    CHECK_EQ(out.len, sizeof(WEBSOCKET) - 1);
    CHECK_EQ(answered(&q, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" AGREED "\x81", &out), 2);
    CHECK_EQ(out.len, sizeof(early) - 1);
}

TEST(where_the_server_does_not_agree_requests_go_on)
{
    _cleanup_(requests_done) struct requests q = REQUESTS_INIT;
    _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
    static const char next[] = WEBSOCKET "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    char host[HOST_SIZE];
    CHECK_EQ(requests_take(&q, next, sizeof(next) - 1, allow, host, &out), 0);
    CHECK_EQ(answered(&q, "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n", &out),
             -EACCES);
    CHECK_EQ(out.len, sizeof(WEBSOCKET) - 1);
}

TEST(an_upgrade_to_anything_else_is_none)
{
    static const char *const answers[] = {
        "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\n\r\n",
        "nonsense\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        _cleanup_(requests_done) struct requests q = REQUESTS_INIT;
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        char host[HOST_SIZE];
        CHECK_EQ(requests_take(&q, WEBSOCKET, sizeof(WEBSOCKET) - 1, allow, host, &out), 0);
        CHECK_EQ(answered(&q, answers[i], &out), -EBADMSG);
    }
    static const char *const requests[] = {
        "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n" WEBSOCKET, /* not the first */
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        _cleanup_(requests_done) struct requests q = REQUESTS_INIT;
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        char host[HOST_SIZE];
        CHECK_EQ(requests_take(&q, requests[i], strlen(requests[i]), allow, host, &out), 0);
        CHECK(!q.asking);
        CHECK(requests_take(&q, "\x81\x85\0\0\0\0a\r\n\r\n", 11, allow, host, &out) < 0);
    }
}

#include "net/hop.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

static const struct address place = { 32, { 198, 51, 100, 7 } };

static struct proxy read_up(const char *text)
{
    struct proxy up;
    CHECK_OK(proxy_parse(text, strlen(text), &up, NULL));
    return up;
}

/* The answer in pieces of every size: what comes out does not depend on how it was cut. */
static int hear(struct hop *h, const char *p, size_t n, size_t piece, size_t *ret_used)
{
    int r = 0;
    for (*ret_used = 0; r == 0 && *ret_used < n;) {
        size_t used, left = n - *ret_used;
        r = hop_take(h, p + *ret_used, left < piece ? left : piece, &used);
        *ret_used += used;
    }
    return r;
}

static int answer_http(const char *text, size_t *ret_left)
{
    struct proxy up = read_up("http://proxy:3128");
    int first = 0;
    for (size_t piece = strlen(text); piece > 0; piece--) {
        struct hop h;
        size_t used;
        CHECK_OK(hop_init(&h, &up, &place, 443, ""));
        int r = hear(&h, text, strlen(text), piece, &used);
        if (piece == strlen(text))
            first = r;
        CHECK_EQ(r, first);
        *ret_left = strlen(text) - used;
        hop_done(&h);
    }
    return first;
}

TEST(connect_names_the_address_and_the_user)
{
    struct proxy up = read_up("http://ab:cde@proxy:3128");
    struct hop h;
    CHECK_OK(hop_init(&h, &up, &place, 443, ""));
    CHECK_STR(h.out.data, "CONNECT 198.51.100.7:443 HTTP/1.1\r\nHost: 198.51.100.7:443\r\n"
                          "Proxy-Authorization: Basic YWI6Y2Rl\r\n\r\n");
    hop_done(&h);
    CHECK_OK(hop_init(&h, &up, &place, 22, "git.test"));
    CHECK(strstr(h.out.data, "CONNECT git.test:22 HTTP/1.1\r\n") != NULL);
    hop_done(&h);
}

TEST(what_follows_the_answer_to_connect_is_left_alone)
{
    size_t left;
    CHECK_EQ(answer_http("HTTP/1.1 200 Connection established\r\n\r\nSSH-2.0-x", &left), 1);
    CHECK_EQ(left, strlen("SSH-2.0-x"));
    CHECK_EQ(answer_http("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", &left), 1);
    CHECK_EQ(left, 0);
}

TEST(a_proxy_that_says_no_is_understood)
{
    static const struct {
        const char *text;
        int r;
    } cases[] = {
        { "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", -EKEYREJECTED },
        { "HTTP/1.1 403 Forbidden\r\n\r\n", -EACCES },
        { "HTTP/1.1 502 Bad Gateway\r\n\r\n", -EHOSTUNREACH },
        { "HTTP/1.1 504 Gateway Timeout\r\n\r\n", -ETIMEDOUT },
        { "HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\n", -EPROTO },
        { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", -EPROTO },
        { "HTTP/2 200\r\n\r\n", -EPROTO },
        { "SSH-2.0-OpenSSH\r\n\r\n", -EPROTO },
        { "\r\n\r\n", -EPROTO },
    };
    size_t left;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_EQ(answer_http(cases[i].text, &left), cases[i].r);
}

TEST(an_answer_without_end_is_given_up)
{
    struct proxy up = read_up("http://proxy:3128");
    struct hop h;
    size_t used;
    char line[64];
    memset(line, 'a', sizeof(line));
    int r = 0;
    size_t all = 0;
    CHECK_OK(hop_init(&h, &up, &place, 443, ""));
    for (; r == 0; all += used)
        r = hop_take(&h, line, sizeof(line), &used);
    CHECK_EQ(r, -EPROTO);
    CHECK(all <= HOP_HEAD_MAX);
    hop_done(&h);
}

static int answer_socks(const char *url, const void *bytes, size_t n, size_t *ret_left,
                        struct buf *said)
{
    struct proxy up = read_up(url);
    int first = 0;
    for (size_t piece = n; piece > 0; piece--) {
        struct hop h;
        size_t used;
        CHECK_OK(hop_init(&h, &up, &place, 443, ""));
        int r = hear(&h, bytes, n, piece, &used);
        if (piece == n)
            first = r;
        CHECK_EQ(r, first);
        *ret_left = n - used;
        buf_clear(said);
        CHECK_OK(buf_append(said, h.out.data, h.out.len));
        hop_done(&h);
    }
    return first;
}

TEST(socks_connects_with_and_without_a_user)
{
    _cleanup_(buf_done) struct buf said = BUF_INIT(1024);
    size_t left;
    static const char open[] = "\5\0\5\0\0\1\1\2\3\4\0\5hello";
    CHECK_EQ(answer_socks("socks5://p:1", open, sizeof(open) - 1, &left, &said), 1);
    CHECK_EQ(left, 5);
    static const char words[] = "\5\1\0\5\1\0\1\306\063\144\7\1\273";
    CHECK_EQ(said.len, sizeof(words) - 1);
    CHECK_EQ(memcmp(said.data, words, said.len), 0);

    static const char login[] = "\5\2\1\0\5\0\0\3\3abc\0\5";
    CHECK_EQ(answer_socks("socks5://us:pwd@p:1", login, sizeof(login) - 1, &left, &said), 1);
    CHECK_EQ(left, 0);
    static const char talk[] = "\5\2\2\0\1\2us\3pwd\5\1\0\1\306\063\144\7\1\273";
    CHECK_EQ(said.len, sizeof(talk) - 1);
    CHECK_EQ(memcmp(said.data, talk, said.len), 0);
}

TEST(socks_refusals_are_told_apart)
{
    _cleanup_(buf_done) struct buf said = BUF_INIT(1024);
    size_t left;
    static const struct {
        const char *url, *bytes;
        size_t n;
        int r;
    } cases[] = {
        { "socks5://p:1", "\5\377", 2, -EKEYREJECTED },
        { "socks5://p:1", "\4\0", 2, -EPROTO },
        { "socks5://p:1", "\5\2", 2, -EPROTO }, /* it was not offered */
        { "socks5://u:v@p:1", "\5\2\1\1", 4, -EKEYREJECTED },
        { "socks5://u:v@p:1", "\5\2\5\0", 4, -EPROTO },
        { "socks5://p:1", "\5\0\5\5\0\1\0\0\0\0\0\0", 12, -ECONNREFUSED },
        { "socks5://p:1", "\5\0\5\2\0\1\0\0\0\0\0\0", 12, -EACCES },
        { "socks5://p:1", "\5\0\5\11\0\1\0\0\0\0\0\0", 12, -EPROTO },
        { "socks5://p:1", "\5\0\5\0\0\2\0\0\0\0\0\0", 12, -EPROTO },
        { "socks5://p:1", "\5\0\4\0\0\1\0\0\0\0\0\0", 12, -EPROTO },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_EQ(answer_socks(cases[i].url, cases[i].bytes, cases[i].n, &left, &said), cases[i].r);
}

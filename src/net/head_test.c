#include "net/head.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

static int read_request(const char *s, struct head *h)
{
    size_t n = head_end(s, strlen(s), 0);
    return n == 0 ? -EAGAIN : head_request(s, n, h);
}

static int read_answer(const char *s, struct head *h)
{
    size_t n = head_end(s, strlen(s), 0);
    return n == 0 ? -EAGAIN : head_answer(s, n, false, h);
}

#define HOST "Host: a\r\n"

TEST(head_reads_a_request)
{
    static struct head h;
    CHECK_OK(read_request("POST /a?b=c HTTP/1.1\r\nhost:  x.test:80 \r\nContent-Length: 12\r\n"
                          "Connection: Keep-Alive, Upgrade\r\nUpgrade: websocket\r\n\r\nrest",
                          &h));
    CHECK(text_is(h.method, "post"));
    CHECK(h.target.n == 6 && memcmp(h.target.p, "/a?b=c", 6) == 0);
    CHECK(text_is(h.host, "x.test:80"));
    CHECK_EQ(h.body, BODY_LENGTH);
    CHECK_EQ(h.length, 12);
    CHECK(h.keep_alive);
    CHECK(h.upgrade);
    CHECK_EQ(h.nfields, 4);
    CHECK(head_is_hop(&h, h.fields[2].name));
    CHECK(!head_is_hop(&h, h.fields[1].name));
}

TEST(head_lets_no_request_drop_its_own_length)
{
    static struct head h;
    CHECK_OK(read_request("POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nX-A: b\r\n"
                          "Connection: content-length, host, x-a\r\n\r\n",
                          &h));
    CHECK(!head_is_hop(&h, h.fields[0].name));
    CHECK(!head_is_hop(&h, h.fields[1].name));
    CHECK(head_is_hop(&h, h.fields[2].name));
}

TEST(head_refuses_what_two_readers_could_understand_differently)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\nHost: a\n\n",                  /* bare line feeds */
        "GET / HTTP/1.1\r\nHost: a\n\r\n",              /* one of them */
        "GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", /* folded */
        "GET / HTTP/1.1\r\n" HOST " X: a\r\n\r\n",      /* a blank before a name */
        "GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n",      /* a blank behind a name */
        "GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n",        /* no name */
        "GET / HTTP/1.1\r\n" HOST "X\r\n\r\n",          /* no colon */
        "GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n",    /* a bare carriage return */
        "GET / HTTP/1.1\r\n\r\n",                       /* no Host */
        "GET / HTTP/1.1\r\n" HOST HOST "\r\n",          /* two */
        "GET  / HTTP/1.1\r\n" HOST "\r\n",              /* two blanks */
        "GET /\t HTTP/1.1\r\n" HOST "\r\n",             /* a tab */
        "GET / HTTP/1.1 \r\n" HOST "\r\n",              /* a blank at the end */
        "GET http://a/ HTTP/1.1\r\n" HOST "\r\n",       /* a second host */
        "GET * HTTP/1.1\r\n" HOST "\r\n",               /* no path */
        "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n",         /* not a proxy */
        "GET / HTTP/2.0\r\n" HOST "\r\n",               /* another protocol */
        "GET / HTTP/1.2\r\n" HOST "\r\n",               /* one that is not there */
        "GET / http/1.1\r\n" HOST "\r\n",               /* its name has capitals */
        "G(T / HTTP/1.1\r\n" HOST "\r\n",               /* not a word */
        "\r\nGET / HTTP/1.1\r\n" HOST "\r\n",           /* an empty line first */
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: \r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 9999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, identity\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \vchunked\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n",
        "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n",
    };
    static struct head h;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (read_request(bad[i], &h) != -EBADMSG)
            fail_msg("accepted: %s", bad[i]);
    const char nul[] = "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n";
    CHECK_EQ(head_request(nul, sizeof(nul) - 1, &h), -EBADMSG);
}

TEST(head_knows_how_an_answer_ends)
{
    static struct head h;
    CHECK_OK(read_answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", &h));
    CHECK_EQ(h.body, BODY_LENGTH);
    CHECK(h.keep_alive);
    CHECK_OK(read_answer("HTTP/1.0 200\n\n", &h)); /* as a script in a shell writes it */
    CHECK_EQ(h.body, BODY_UNTIL_END);
    CHECK(!h.keep_alive);
    CHECK_OK(read_answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", &h));
    CHECK_EQ(h.body, BODY_EMPTY);
    CHECK_OK(read_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", &h));
    CHECK_EQ(h.body, BODY_CHUNKED);
    CHECK_EQ(read_answer("HTTP/1.1 20 OK\r\n\r\n", &h), -EBADMSG);
    CHECK_EQ(read_answer("HTTP/1.1 2000 OK\r\n\r\n", &h), -EBADMSG);
    CHECK_EQ(read_answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", &h),
             -EBADMSG);
    CHECK_EQ(read_answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"
                         "\r\n",
                         &h),
             -EBADMSG);
}

TEST(head_end_finds_the_empty_line_however_the_bytes_come)
{
    const char *s = "GET / HTTP/1.1\r\nHost: a\r\n\r\nmore";
    size_t whole = strlen(s) - 4;
    for (size_t n = 0, seen = 0; n < whole; seen = n++)
        CHECK_EQ(head_end(s, n, seen), 0);
    CHECK_EQ(head_end(s, whole, whole - 1), whole);
    CHECK_EQ(head_end(s, strlen(s), whole - 1), whole);
    CHECK_EQ(head_end(s, strlen(s), 0), whole);
}

TEST(head_bounds_what_a_connection_names)
{
    static char s[HEAD_MAX];
    static struct head h;
    size_t n = (size_t)snprintf(s, sizeof(s), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close");
    for (int i = 0; i < 31; i++)
        n += (size_t)snprintf(s + n, sizeof(s) - n, ", x");
    (void)snprintf(s + n, sizeof(s) - n, "\r\n\r\n");
    CHECK_OK(read_request(s, &h));
    (void)snprintf(s + n, sizeof(s) - n, ",\r\nConnection: y\r\n\r\n");
    CHECK_EQ(read_request(s, &h), -EBADMSG);
    CHECK_EQ(
        read_answer("HTTP/1.1 200 OK\r\nConnection: ,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\r\n\r\n",
                    &h),
        -EBADMSG);
}

TEST(head_bounds_the_fields)
{
    static char s[HEAD_MAX];
    static struct head h;
    size_t n = (size_t)snprintf(s, sizeof(s), "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < HEAD_FIELDS_MAX; i++)
        n += (size_t)snprintf(s + n, sizeof(s) - n, "a: b\r\n");
    (void)snprintf(s + n, sizeof(s) - n, "\r\n");
    CHECK_EQ(read_request(s, &h), -EMSGSIZE);
}

#include "net/opening.h"

#include "base/check.h"

#define BYTES(text_) (text_), sizeof(text_) - 1

TEST(what_is_spoken_is_told_by_the_first_bytes)
{
    static const struct {
        const char *p;
        size_t n;
        enum opening at_8080, at_443;
    } cases[] = {
        { BYTES(""), OPENING_MORE, OPENING_MORE },
        { BYTES("\x16"), OPENING_MORE, OPENING_MORE },
        { BYTES("\x16\3\1\0\4\1"), OPENING_MORE, OPENING_MORE },
        { BYTES("\x16\3\1\0\4\1\0\0\0"), OPENING_BAD, OPENING_BAD }, /* a hello of nothing */
        { BYTES("\x16\3\1\0\0\x16"), OPENING_BAD, OPENING_BAD },
        { BYTES("\x16\0\3\0\4\1\0\0\0"), OPENING_BAD, OPENING_BAD },
        { BYTES("\x16\3\1\0\4\2\0\0\0"), OPENING_OTHER, OPENING_BAD },
        { BYTES("\x16\0\0\1\x85\xa6\xff\1"), OPENING_OTHER, OPENING_BAD }, /* MySQL's answer */
        { BYTES("\x16\x10"), OPENING_OTHER, OPENING_BAD },
        { BYTES("\x15\3\1\0\2\1\x5a"), OPENING_BAD, OPENING_BAD }, /* a warning before a hello */
        { BYTES("\x15\0\0\0\2\1"), OPENING_BAD, OPENING_BAD },
        { BYTES("\x15\3\1\0\2"), OPENING_MORE, OPENING_MORE },
        { BYTES("\x15\3\1\0\2\2"), OPENING_OTHER, OPENING_BAD },
        { BYTES("\x15\1\0\0\1\0\0\0"), OPENING_OTHER, OPENING_BAD }, /* a length, and a number */
        { BYTES("\x15\x10"), OPENING_OTHER, OPENING_BAD },
        { BYTES("\x14\3\1\0\0"), OPENING_BAD, OPENING_BAD }, /* a change of nothing */
        { BYTES("\x14\3\1\0"), OPENING_MORE, OPENING_MORE },
        { BYTES("\x14\3\1\0\1"), OPENING_OTHER, OPENING_BAD },
        { BYTES("\x14\1\0\0\0"), OPENING_OTHER, OPENING_BAD },
        { BYTES("\x80"), OPENING_MORE, OPENING_MORE },
        { BYTES("\x80\x2e\1\3\1"), OPENING_BAD, OPENING_BAD }, /* an old hello */
        { BYTES("\x80\x2e\2"), OPENING_OTHER, OPENING_BAD },
        { BYTES("G"), OPENING_MORE, OPENING_MORE },
        { BYTES("GET / HTTP/1.1"), OPENING_MORE, OPENING_MORE },
        { BYTES("GET / HTTP/1.1\r\n"), OPENING_HTTP, OPENING_HTTP },
        { BYTES("GET / HTTP/1.0\nHost"), OPENING_HTTP, OPENING_HTTP },
        { BYTES("CONNECT a.test:443 HTTP/1.1\r\n"), OPENING_HTTP, OPENING_HTTP },
        { BYTES("GET / http/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("GET / HTTP/1.1 \r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("GET / HTTP/11\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("PRI * HTTP/2.0\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("GET /\r\n"), OPENING_BAD, OPENING_BAD }, /* as before there were versions */
        { BYTES("GET http://other.test/\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("GET\t/\tHTTP/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("GET\xa0/\xa0HTTP/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("GET\v"), OPENING_MORE, OPENING_MORE },
        { BYTES("\fGET / HTTP/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("+\t\0\0\1"), OPENING_OTHER, OPENING_BAD }, /* a length again */
        { BYTES("GET / RTSP/1.0\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("DESCRIBE rtsp://a.test/ RTSP/1.0\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("AN-UNUSUALLY-LONG-METHOD-OF-MANY-WORDS / HTTP/1.1\r\n"), OPENING_HTTP,
          OPENING_HTTP },
        { BYTES("GET key\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("0 \2\1\1\x60\x1b"), OPENING_OTHER, OPENING_BAD }, /* LDAP's length is a blank */
        { BYTES("0 "), OPENING_MORE, OPENING_MORE },
        { BYTES("GET /\1"), OPENING_MORE, OPENING_MORE },
        { BYTES("0016git-upload-pack /\0"), OPENING_OTHER, OPENING_BAD },
        { BYTES("0016git-upload-pack /"), OPENING_MORE, OPENING_MORE },
        { BYTES("\r\nGET / HTTP/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES(" GET / HTTP/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("\n \tGET / HTTP/2\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("\r\n"), OPENING_MORE, OPENING_MORE },
        { BYTES("\r\nGET"), OPENING_MORE, OPENING_MORE },
        { BYTES("\x20\1\0\0\7\0\0\0"), OPENING_OTHER, OPENING_BAD }, /* MongoDB's length */
        { BYTES("\x0a\0\0\1\x85\xa6"), OPENING_OTHER, OPENING_BAD },
        { BYTES("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("EHLO me\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("PING\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("*1\r\n$4\r\nPING\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("\0\0\0\x8\4\xd2\x16\x2f"), OPENING_OTHER, OPENING_BAD }, /* a database's */
        { BYTES("\0"), OPENING_MORE, OPENING_MORE },
        { BYTES("\0\0\0\x2e\0\x12\0\4\0\0\0\1\0\6x"), OPENING_OTHER, OPENING_BAD }, /* Kafka's */
        { BYTES("\0me\0you\0vt100/9600\0"), OPENING_OTHER, OPENING_BAD },           /* rlogin's */
        { BYTES("\0GET / HTTP/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("\0\r\n\0 GET / HTTP/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("PROX"), OPENING_MORE, OPENING_MORE },
        { BYTES("PROXY TCP4 1.2.3.4"), OPENING_BAD, OPENING_BAD },
        { BYTES("proxy unknown\r\nGET / HTTP/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("PROXYING is no preface\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("\r\n\r\n\0\r\nQUIT"), OPENING_MORE, OPENING_MORE },
        { BYTES("\r\n\r\n\0\r\nQUIT\n\x21\x11"), OPENING_BAD, OPENING_BAD },
        { BYTES("\r\n\r\n\0\r\nQUIX\n"), OPENING_OTHER, OPENING_BAD },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[HOST_SIZE];
        if (opening_read(cases[i].p, cases[i].n, 8080, name) != cases[i].at_8080 ||
            opening_read(cases[i].p, cases[i].n, 443, name) != cases[i].at_443)
            fail_msg("case %zu: '%s'", i, cases[i].p);
    }
}

TEST(an_opening_that_does_not_end_is_bad)
{
    static char line[OPENING_MAX];
    char name[HOST_SIZE];
    memset(line, 'x', sizeof(line));
    const char *begins = "GET /";
    for (size_t i = 0; begins[i]; i++)
        line[i] = begins[i];
    CHECK_EQ(opening_read(line, sizeof(line) - 1, 8080, name), OPENING_MORE);
    CHECK_EQ(opening_read(line, sizeof(line), 8080, name), OPENING_BAD);
}

TEST(what_ends_too_early_is_told_by_what_there_is)
{
    CHECK_EQ(opening_ended(NULL, 0, false), OPENING_OTHER);
    CHECK_EQ(opening_ended("hello", 5, false), OPENING_OTHER);
    CHECK_EQ(opening_ended("GET / HTTP/1.1", 14, false), OPENING_BAD);
    CHECK_EQ(opening_ended("\x16\x03\x01", 3, false), OPENING_BAD);
    CHECK_EQ(opening_ended("\r\nGET http://a.test/", 20, false), OPENING_BAD);
    CHECK_EQ(opening_ended("GET /", 5, false), OPENING_BAD);
    CHECK_EQ(opening_ended("GET /", 5, true),
             OPENING_OTHER); /* not HTTP, of which no server greets */
    CHECK_EQ(opening_ended("GET / HTTP/1.1", 14, true), OPENING_BAD);
    CHECK_EQ(opening_ended("PROXY TCP4", 10, false), OPENING_BAD);
    CHECK_EQ(opening_ended("\0\0GET /", 7, false), OPENING_BAD);
}

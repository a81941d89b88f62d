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
        { BYTES("\x16\3\1\0\4\2\0\0\0"), OPENING_BAD, OPENING_BAD },
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
        { BYTES("GET /\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("\r\nGET / HTTP/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES(" GET / HTTP/1.1\r\n"), OPENING_BAD, OPENING_BAD },
        { BYTES("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("EHLO me\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("PING\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("*1\r\n$4\r\nPING\r\n"), OPENING_OTHER, OPENING_BAD },
        { BYTES("\0\0\0\x8\4\xd2\x16\x2f"), OPENING_OTHER, OPENING_BAD }, /* a database's */
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

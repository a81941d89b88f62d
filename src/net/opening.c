#include "net/opening.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "net/hello.h"

#define TLS_HANDSHAKE 22
#define METHOD_MAX 32
#define VERSION_SIZE 8 /* HTTP/1.1 */

static enum opening read_tls(const void *p, size_t n, char ret_name[HOST_SIZE])
{
    switch (hello_read(p, n, ret_name)) {
    case 0: return OPENING_TLS;
    case -EAGAIN: return OPENING_MORE;
    default: return OPENING_BAD;
    }
}

/* A client of before TLS, in the oldest of record formats: no name can be in there. */
static bool old_hello(const uint8_t *p, size_t n)
{
    return n >= 3 && (p[0] & 0x80) && p[2] == 1;
}

static bool token_char(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool says_http(const char *p, size_t n)
{
    for (size_t i = 0; i + 5 <= n; i++)
        if (strncasecmp(p + i, "http/", 5) == 0)
            return true;
    return false;
}

/* A request line: a token, a blank, and a version at its end. */
static enum opening read_line(const uint8_t *p, size_t n)
{
    const uint8_t *end = memchr(p, '\n', n);
    size_t method = 0, line = end ? (size_t)(end - p) : n;
    while (method < line && method <= METHOD_MAX && token_char(p[method]))
        method++;
    if (method == 0 || method > METHOD_MAX)
        return OPENING_OTHER;
    if (method < line && p[method] != ' ')
        return OPENING_OTHER;
    if (!end)
        return OPENING_MORE;
    if (line && p[line - 1] == '\r')
        line--;
    const char *rest = (const char *)p + method;
    size_t n_rest = line - method;
    if (n_rest > VERSION_SIZE && memcmp(rest + n_rest - VERSION_SIZE - 1, " HTTP/1.", 8) == 0)
        return OPENING_HTTP;
    /* HTTP/2 without TLS names its hosts later, and compressed; the rest are spellings that some
     * servers forgive. */
    return says_http(rest, n_rest) ? OPENING_BAD : OPENING_OTHER;
}

static enum opening read_any(const uint8_t *p, size_t n, char ret_name[HOST_SIZE])
{
    if (n == 0)
        return OPENING_MORE;
    if (p[0] == TLS_HANDSHAKE)
        return read_tls(p, n, ret_name);
    if ((p[0] & 0x80) && n < 3)
        return OPENING_MORE;
    if (old_hello(p, n))
        return OPENING_BAD;
    if (p[0] == '\r' || p[0] == '\n' || p[0] == ' ' || p[0] == '\t')
        return OPENING_BAD; /* servers skip these and read a request behind them */
    return read_line(p, n);
}

enum opening opening_read(const void *p, size_t n, uint16_t port, char ret_name[HOST_SIZE])
{
    enum opening o = read_any(p, n, ret_name);
    if (o == OPENING_MORE && n >= OPENING_MAX)
        return OPENING_BAD;
    if (o == OPENING_OTHER && (port == 80 || port == 443))
        return OPENING_BAD;
    return o;
}

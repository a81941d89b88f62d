#include "net/opening.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "net/hello.h"

#define TLS_CHANGE 20
#define TLS_ALERT 21
#define TLS_HANDSHAKE 22
#define TLS_HEADER 5
#define TLS_CLIENT_HELLO 1
#define TLS_WARNING 1
#define TLS_MAJOR 3
#define TLS_VERSION_END 0x10 /* of the first byte: servers forgive any below it */
#define VERSION_SIZE 8       /* HTTP/1.1 */
#define WORD_MIN 3           /* letters of a method */

/* Lengths begin with that byte too (databases put theirs in front): only what some server would read
 * on as a hello is one. An empty record says nothing yet, and is taken for one. */
static enum opening read_tls(const uint8_t *p, size_t n, char ret_name[HOST_SIZE])
{
    if (n > 1 && p[1] >= TLS_VERSION_END)
        return OPENING_OTHER;
    if (n <= TLS_HEADER)
        return OPENING_MORE;
    if ((p[3] || p[4]) && p[TLS_HEADER] != TLS_CLIENT_HELLO)
        return OPENING_OTHER;
    switch (hello_read(p, n, ret_name)) {
    case 0: return OPENING_TLS;
    case HELLO_ENCRYPTED: return OPENING_TLS_ENCRYPTED;
    case -EAGAIN: return OPENING_MORE;
    default: return OPENING_BAD;
    }
}

/* Some servers read over a warning, others over an empty change of ciphers, to the hello behind it. */
static enum opening read_before_hello(const uint8_t *p, size_t n)
{
    bool alert = p[0] == TLS_ALERT;
    if (n > 1 && (alert ? p[1] >= TLS_VERSION_END : p[1] != TLS_MAJOR))
        return OPENING_OTHER;
    if ((n > 3 && p[3]) || (n > 4 && p[4] != (alert ? 2 : 0)))
        return OPENING_OTHER;
    if (n < TLS_HEADER + (alert ? 1u : 0u))
        return OPENING_MORE;
    return alert && p[TLS_HEADER] != TLS_WARNING ? OPENING_OTHER : OPENING_BAD;
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

/* What one reader or the other takes for a blank beside the real one. */
static bool odd_blank(uint8_t c)
{
    return c == '\t' || c == '\v' || c == '\f' || (c >= 0x1c && c <= 0x1f);
}

static bool is_word(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p[i] | 0x20) < 'a' || (p[i] | 0x20) > 'z')
            return false;
    return n >= WORD_MIN;
}

/* No line of text goes on like this. */
static bool has_control(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] < ' ' && p[i] != '\r' && !odd_blank(p[i]))
            return true;
    return false;
}

/* May the first n bytes be a method, and more of a request follow? Behind a word an odd blank may be meant as
 * one, and nothing is too odd for some server; behind some byte it is a length, as a blank may be. What is no
 * text is then no request: so git's own protocol begins, in a line without an end. */
static bool may_be_method(const uint8_t *p, size_t n, size_t line)
{
    if (n == line)
        return n > 0;
    if (is_word(p, n))
        return p[n] == ' ' || odd_blank(p[n]) || p[n] == 0x85 || p[n] == 0xa0;
    return n > 0 && p[n] == ' ' && !has_control(p + n, line - n);
}

/* A preface of the PROXY protocol, as a line or as a block: servers behind a load balancer read
 * it before a request. OTHER: the bytes are neither. */
static enum opening read_proxy(const uint8_t *p, size_t n)
{
    static const char line[] = "PROXY ", block[] = "\r\n\r\n\0\r\nQUIT\n";
    size_t of_line = sizeof(line) - 1, of_block = sizeof(block) - 1;
    bool like_line = strncasecmp((const char *)p, line, n < of_line ? n : of_line) == 0;
    bool like_block = memcmp(p, block, n < of_block ? n : of_block) == 0;
    if ((like_line && n >= of_line) || (like_block && n >= of_block))
        return OPENING_BAD;
    return like_line || like_block ? OPENING_MORE : OPENING_OTHER;
}

/* A page is asked for, whatever version is claimed or none: before there were versions a URL could name the
 * host, and what claims to be another protocol some servers of HTTP answer as their own. */
static bool asks_for_page(const char *method, size_t n, const char *rest, size_t n_rest)
{
    while (n_rest && (*rest == ' ' || odd_blank((uint8_t)*rest))) {
        rest++;
        n_rest--;
    }
    bool asks =
        (n == 3 && memcmp(method, "GET", 3) == 0) || (n == 4 && memcmp(method, "POST", 4) == 0);
    return asks && n_rest && (*rest == '/' || memmem(rest, n_rest, "://", 3));
}

/* A request line: a token, a blank, and a version at its end. */
static enum opening read_line(const uint8_t *p, size_t n)
{
    const uint8_t *end = memchr(p, '\n', n);
    size_t method = 0, line = end ? (size_t)(end - p) : n;
    while (method < line && token_char(p[method]))
        method++;
    if (!may_be_method(p, method, line))
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
    return says_http(rest, n_rest) || asks_for_page((const char *)p, method, rest, n_rest)
               ? OPENING_BAD
               : OPENING_OTHER;
}

/* Count bytes that some servers skip before a request. Many other protocols begin with a length,
 * and so with zeros: the bytes behind them tell. */
static size_t blanks(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n &&
           (p[i] == '\r' || p[i] == '\n' || p[i] == ' ' || p[i] == '\0' || odd_blank(p[i])))
        i++;
    return i;
}

static enum opening read_any(const uint8_t *p, size_t n, char ret_name[HOST_SIZE])
{
    size_t skipped = blanks(p, n);
    enum opening proxied = n ? read_proxy(p, n) : OPENING_MORE;
    if (proxied != OPENING_OTHER || skipped == n)
        return proxied == OPENING_BAD ? OPENING_BAD : OPENING_MORE;
    if (skipped) { /* servers skip these and read a request behind them */
        enum opening behind = read_line(p + skipped, n - skipped);
        return behind == OPENING_HTTP ? OPENING_BAD : behind;
    }
    if (p[0] == TLS_HANDSHAKE)
        return read_tls(p, n, ret_name);
    if (p[0] == TLS_ALERT || p[0] == TLS_CHANGE)
        return read_before_hello(p, n);
    if ((p[0] & 0x80) && n < 3)
        return OPENING_MORE;
    if (old_hello(p, n))
        return OPENING_BAD;
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

enum opening opening_ended(const void *p, size_t n, bool greeted)
{
    const uint8_t *said = p;
    if (n == 0)
        return OPENING_OTHER;
    if (said[0] == TLS_HANDSHAKE || says_http(p, n) || read_proxy(said, n) == OPENING_BAD)
        return OPENING_BAD;
    size_t from = blanks(said, n), method = from;
    while (method < n && token_char(said[method]))
        method++;
    const char *text = p;
    bool page = asks_for_page(text + from, method - from, text + method, n - method);
    return page && !greeted ? OPENING_BAD : OPENING_OTHER;
}

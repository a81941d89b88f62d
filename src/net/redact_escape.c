/* Escapes of URLs, JSON, C and HTML. */
#include <string.h>
#include <strings.h>

#include "base/hex.h"
#include "net/redact_private.h"

/* n hex digits; ESCAPE_MORE while digits are missing. */
static int read_hex(const char *p, unsigned have, unsigned want)
{
    int v = 0;
    for (unsigned i = 0; i < have && i < want; i++) {
        int d = hex_digit(p[i]);
        if (d < 0)
            return ESCAPE_NONE;
        v = v * 16 + d;
    }
    return have < want ? ESCAPE_MORE : v;
}

/* Three digits, as C and shells write a byte. */
static int read_octal(const char *p, unsigned have)
{
    int v = 0;
    for (unsigned i = 0; i < have && i < 3; i++) {
        if (p[i] < '0' || p[i] > '7')
            return ESCAPE_NONE;
        v = v * 8 + (p[i] - '0');
    }
    return have < 3 ? ESCAPE_MORE : v;
}

static int read_backslash(const char *p, unsigned n)
{
    static const char said[] = "\"\\/'bfnrt", meant[] = "\"\\/'\b\f\n\r\t";
    if (n < 2)
        return ESCAPE_MORE;
    if (p[1] == 'u')
        return read_hex(p + 2, n - 2, 4);
    if (p[1] == 'x')
        return read_hex(p + 2, n - 2, 2);
    if (p[1] >= '0' && p[1] <= '3')
        return read_octal(p + 1, n - 1);
    const char *at = p[1] ? strchr(said, p[1]) : NULL;
    return at ? meant[at - said] : ESCAPE_NONE;
}

/* "#65;" or "#x41;" */
static int read_number(const char *p, unsigned n)
{
    bool hex = n > 1 && (p[1] | 0x20) == 'x';
    int v = 0;
    for (unsigned i = hex ? 2 : 1; i < n; i++) {
        int d = p[i] == ';' ? -1 : hex_digit(p[i]);
        if (p[i] == ';')
            return i > (hex ? 2u : 1u) && v <= 0xffff ? v : ESCAPE_NONE;
        if (d < 0 || (!hex && d > 9))
            return ESCAPE_NONE;
        v = v * (hex ? 16 : 10) + d;
    }
    return n < REDACT_TOKEN_MAX - 1 ? ESCAPE_MORE : ESCAPE_NONE;
}

static int read_entity(const char *p, unsigned n)
{
    static const struct {
        const char *name;
        char is;
    } names[] = {
        { "amp;", '&' }, { "lt;", '<' }, { "gt;", '>' }, { "quot;", '"' }, { "apos;", '\'' }
    };
    if (n < 2)
        return ESCAPE_MORE;
    if (p[1] == '#')
        return read_number(p + 1, n - 1);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t len = strlen(names[i].name);
        if (n - 1 <= len && strncasecmp(p + 1, names[i].name, n - 1) == 0)
            return n - 1 == len ? names[i].is : ESCAPE_MORE;
    }
    return ESCAPE_NONE;
}

int escape_read(const char *p, unsigned n)
{
    switch (p[0]) {
    case '%': return read_hex(p + 1, n - 1, 2);
    case '\\': return read_backslash(p, n);
    case '&': return read_entity(p, n);
    default: return ESCAPE_NONE;
    }
}

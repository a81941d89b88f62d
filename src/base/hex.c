#include "base/hex.h"

#include <errno.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

int hex_digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void hex_encode(const void *p, size_t n, char *out)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[b[i] >> 4];
        out[2 * i + 1] = digits[b[i] & 15];
    }
    out[2 * n] = '\0';
}

int hex_decode(const char *text, void *out, size_t n)
{
    unsigned char *b = out;
    if (strlen(text) != 2 * n || strspn(text, digits) != 2 * n)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        b[i] = (unsigned char)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
    return 0;
}

int hex_percent(const char *p, size_t n)
{
    int high = n > 2 && p[0] == '%' ? hex_digit((unsigned char)p[1]) : -1;
    int low = high >= 0 ? hex_digit((unsigned char)p[2]) : -1;
    return low < 0 ? -1 : high << 4 | low;
}

#include "base/base64.h"

#include <errno.h>

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_encode(const void *bytes, size_t n, struct buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = bytes;

    int r = buf_reserve(out, (n + 2) / 3 * 4 + 1);
    if (r < 0)
        return r;
    char *to = out->data + out->len;
    for (; n > 0; n -= n < 3 ? n : 3, p += 3) {
        unsigned v = (unsigned)p[0] << 16 | (n > 1 ? (unsigned)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
        *to++ = digits[v >> 18];
        *to++ = digits[v >> 12 & 63];
        *to++ = n > 1 ? digits[v >> 6 & 63] : '=';
        *to++ = n > 2 ? digits[v & 63] : '=';
    }
    out->len = (size_t)(to - out->data);
    *to = '\0';
    return 0;
}

int base64_decode(const char *p, size_t n, struct buf *out)
{
    size_t whole = n;
    while (n > 0 && whole - n < 2 && p[n - 1] == '=')
        n--;
    if (n % 4 == 1 || (whole > n && whole % 4 != 0))
        return -EPROTO;
    int r = buf_reserve(out, n / 4 * 3 + 3);
    if (r < 0)
        return r;
    unsigned char *to = (unsigned char *)out->data + out->len;
    unsigned acc = 0, bits = 0;
    for (size_t i = 0; i < n; i++) {
        int v = value_of(p[i]);
        if (v < 0) {
            out->data[out->len] = '\0';
            return -EPROTO;
        }
        acc = acc << 6 | (unsigned)v;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *to++ = (unsigned char)(acc >> bits);
        }
    }
    out->len = (size_t)((char *)to - out->data);
    out->data[out->len] = '\0';
    return 0;
}

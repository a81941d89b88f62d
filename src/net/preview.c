#include "net/preview.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "net/head.h"

#define PORT_DIGITS 5

bool preview_port(const char *p, size_t n, unsigned *ret_port)
{
    unsigned port = 0;
    if (n == 0 || n > PORT_DIGITS || p[0] == '0')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        port = port * 10 + (unsigned)(p[i] - '0');
    }
    *ret_port = port;
    return port <= 65535;
}

size_t preview_name_len(const char *host, size_t n)
{
    const char *colon = memchr(host, ':', n);
    if (colon)
        n = (size_t)(colon - host);
    return n > 0 && host[n - 1] == '.' ? n - 1 : n;
}

bool preview_host_plain(const char *host, size_t n)
{
    const char *end = host + n, *from = n && host[0] == '[' ? memchr(host, ']', n) : host;
    const char *colon = n && from ? memchr(from, ':', (size_t)(end - from)) : NULL;
    unsigned port;
    if (!from)
        return false;
    if (n && host[0] == '[' && from + 1 != (colon ? colon : end))
        return false;
    return !colon || preview_port(colon + 1, (size_t)(end - colon - 1), &port);
}

bool preview_is_api(const char *host, size_t n, const char *domain)
{
    n = preview_name_len(host, n);
    return n == 4 + strlen(domain) && strncasecmp(host, "api.", 4) == 0 &&
           strncasecmp(host + 4, domain, n - 4) == 0;
}

bool preview_is_below(const char *host, size_t n, const char *domain)
{
    size_t d = strlen(domain);
    n = preview_name_len(host, n);
    return n > d + 1 && host[n - d - 1] == '.' && strncasecmp(host + n - d, domain, d) == 0;
}

bool preview_host(const char *host, size_t n, const char *domain, char ret_id[ID_SIZE],
                  unsigned *ret_port)
{
    if (!preview_host_plain(host, n))
        return false;
    n = preview_name_len(host, n);
    const char *dash = memchr(host, '-', n < PORT_DIGITS + 1 ? n : PORT_DIGITS + 1);
    size_t d = strlen(domain);
    size_t before = dash ? (size_t)(dash - host) + 1 : 0;
    if (!dash || n != before + ID_LEN + 1 + d || host[before + ID_LEN] != '.' ||
        strncasecmp(host + n - d, domain, d) != 0 || !preview_port(host, before - 1, ret_port))
        return false;
    for (size_t i = 0; i < ID_LEN; i++) {
        char c = host[before + i];
        ret_id[i] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
    }
    ret_id[ID_LEN] = '\0';
    return id_valid(ret_id);
}

bool preview_own_field(const char *name, size_t n)
{
    static const char *const names[] = { "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-For",
                                         "Forwarded", "X-Verified-User-Data" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (text_reads_as((struct text){ name, n }, names[i]))
            return true;
    return false;
}

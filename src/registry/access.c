#include "registry/access.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct range {
    uint32_t net;
    unsigned bits;
    enum address_kind kind;
};

static const struct range ranges[] = {
    { 0x00000000, 8, ADDRESS_NEVER },    /* 0.0.0.0/8: "this host" */
    { 0x0a000000, 8, ADDRESS_PRIVATE },  /* 10.0.0.0/8 */
    { 0x64400000, 10, ADDRESS_PRIVATE }, /* 100.64.0.0/10, carriers' own */
    { 0x7f000000, 8, ADDRESS_PRIVATE },  /* 127.0.0.0/8 */
    { 0xa9fe0000, 16, ADDRESS_NEVER },   /* 169.254.0.0/16 */
    { 0xac100000, 12, ADDRESS_PRIVATE }, /* 172.16.0.0/12 */
    { 0xc0000000, 24, ADDRESS_PRIVATE }, /* 192.0.0.0/24 */
    { 0xc0a80000, 16, ADDRESS_PRIVATE }, /* 192.168.0.0/16 */
    { 0xc6120000, 15, ADDRESS_PRIVATE }, /* 198.18.0.0/15 */
    { 0xe0000000, 3, ADDRESS_NEVER },    /* multicast, reserved, broadcast */
};

static enum address_kind kind_v4(uint32_t addr)
{
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
        if ((addr & ~(UINT32_MAX >> ranges[i].bits)) == ranges[i].net)
            return ranges[i].kind;
    return ADDRESS_PUBLIC;
}

static uint32_t v4_inside(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static enum address_kind kind_v6(const struct in6_addr *a)
{
    static const uint8_t translated[12] = { 0x00, 0x64, 0xff, 0x9b };
    const uint8_t *p = a->s6_addr;
    if (IN6_IS_ADDR_LOOPBACK(a))
        return ADDRESS_PRIVATE;
    /* An IPv4 address in another coat is still that address. */
    if (IN6_IS_ADDR_V4MAPPED(a) || memcmp(p, translated, sizeof(translated)) == 0)
        return kind_v4(v4_inside(p + 12));
    if (p[0] == 0x20 && p[1] == 0x02) /* 6to4 */
        return kind_v4(v4_inside(p + 2));
    if ((p[0] & 0xe0) == 0x20) /* 2000::/3: all that is given out */
        return ADDRESS_PUBLIC;
    return (p[0] & 0xfe) == 0xfc ? ADDRESS_PRIVATE : ADDRESS_NEVER;
}

enum address_kind address_kind(const struct sockaddr *addr)
{
    if (addr->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, addr, sizeof(v4));
        return kind_v4(ntohl(v4.sin_addr.s_addr));
    }
    if (addr->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, addr, sizeof(v6));
        return kind_v6(&v6.sin6_addr);
    }
    return ADDRESS_NEVER;
}

static bool listed(const struct access *access, const char *host)
{
    static const char gaps[] = ", \t";
    size_t len = strlen(host);
    for (const char *p = access->allow ? access->allow : ""; *p;) {
        p += strspn(p, gaps);
        size_t n = strcspn(p, gaps);
        if (n == len && strncasecmp(p, host, n) == 0)
            return true;
        p += n;
    }
    return false;
}

int access_host(const struct access *access, const char *host, struct err *err)
{
    if (access->trusted || !access->allow || !*access->allow || listed(access, host))
        return 0;
    return err_name(err, EACCES, "forbidden",
                    "the registry '%s' is not one that this daemon may be sent to; the operator "
                    "lists them in the option registry-allow",
                    host);
}

bool access_address(const struct access *access, const char *host, const struct sockaddr *addr)
{
    switch (address_kind(addr)) {
    case ADDRESS_PUBLIC: return true;
    case ADDRESS_PRIVATE: return access->trusted || listed(access, host);
    case ADDRESS_NEVER: return false;
    }
    return false;
}

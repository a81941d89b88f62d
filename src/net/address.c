#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define V4 32
#define V6 128
#define MAPPED_PREFIX 96

struct special {
    uint8_t prefix;
    uint8_t bytes[16];
    enum address_kind kind;
};

static const struct special specials_v4[] = {
    { 8, { 0 }, ADDRESS_NEVER },                 /* "this host" */
    { 8, { 10 }, ADDRESS_PRIVATE },              /* */
    { 10, { 100, 64 }, ADDRESS_PRIVATE },        /* carriers' own; one cloud's metadata */
    { 8, { 127 }, ADDRESS_PRIVATE },             /* */
    { 16, { 169, 254 }, ADDRESS_NEVER },         /* link-local: other clouds' metadata */
    { 32, { 168, 63, 129, 16 }, ADDRESS_NEVER }, /* one cloud's agent and metadata */
    { 12, { 172, 16 }, ADDRESS_PRIVATE },        /* */
    { 24, { 192, 0, 0 }, ADDRESS_PRIVATE },      /* protocol assignments */
    { 24, { 192, 0, 2 }, ADDRESS_PRIVATE },      /* documentation, like the next but two */
    { 24, { 192, 88, 99 }, ADDRESS_NEVER },      /* 6to4 relays: a door to anywhere */
    { 16, { 192, 168 }, ADDRESS_PRIVATE },       /* */
    { 15, { 198, 18 }, ADDRESS_PRIVATE },        /* benchmarks */
    { 24, { 198, 51, 100 }, ADDRESS_PRIVATE },   /* */
    { 24, { 203, 0, 113 }, ADDRESS_PRIVATE },    /* */
    { 3, { 224 }, ADDRESS_NEVER },               /* multicast, reserved, broadcast */
};

/* The first that fits counts. */
static const struct special specials_v6[] = {
    { 128, { [15] = 1 }, ADDRESS_PRIVATE },                    /* loopback */
    { 48, { 0x00, 0x64, 0xff, 0x9b, 0, 1 }, ADDRESS_PRIVATE }, /* a site's own translator */
    { 32, { 0x20, 0x01, 0x0d, 0xb8 }, ADDRESS_PRIVATE },       /* documentation */
    { 23, { 0x20, 0x01 }, ADDRESS_NEVER },                     /* Teredo, ORCHID and the like */
    { 20, { 0x3f, 0xff }, ADDRESS_PRIVATE },                   /* documentation */
    { 3, { 0x20 }, ADDRESS_PUBLIC },                           /* all that is given out */
    { 7, { 0xfc }, ADDRESS_PRIVATE },                          /* unique local */
    { 0, { 0 }, ADDRESS_NEVER },
};

struct guarded {
    uint8_t bits, prefix, bytes[16];
};

static const struct guarded guarded[] = {
    { V4, 8, { 0 } },                   /* to connect to 0.0.0.0 is to come home */
    { V4, 8, { 127 } },                 /* */
    { V4, 32, { 169, 254, 169, 254 } }, /* most clouds' metadata */
    { V4, 32, { 169, 254, 170, 2 } },   /* the next two: of their containers */
    { V4, 32, { 169, 254, 170, 23 } },  /* */
    { V4, 32, { 100, 100, 100, 200 } }, /* one more's */
    { V4, 32, { 168, 63, 129, 16 } },   /* */
    { V4, 32, { 192, 0, 0, 192 } },     /* */
    { V6, 127, { 0 } },                 /* unspecified, loopback */
    { V6, 128, { 0xfd, 0, 0x0e, 0xc2, [14] = 2, 0x54 } }, /* the first's again, in IPv6 */
    { V6, 128, { 0xfd, 0, 0x0e, 0xc2, [15] = 0x23 } },    /* */
    { V6, 128, { 0xfd, 0x20, 0, 0xce, [14] = 2, 0x54 } }, /* */
};

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
static const uint8_t translated[12] = { 0x00, 0x64, 0xff, 0x9b };

struct address address_v4(const uint8_t bytes[4])
{
    struct address a = { .bits = V4 };
    memcpy(a.bytes, bytes, 4);
    return a;
}

struct address address_v6(const uint8_t bytes[16])
{
    if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
        return address_v4(bytes + 12);
    struct address a = { .bits = V6 };
    memcpy(a.bytes, bytes, 16);
    return a;
}

int address_from_sockaddr(const struct sockaddr *sa, struct address *ret)
{
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, sa, sizeof(v4));
        *ret = address_v4((const uint8_t *)&v4.sin_addr);
        return 0;
    }
    if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, sa, sizeof(v6));
        *ret = address_v6(v6.sin6_addr.s6_addr);
        return 0;
    }
    return -EAFNOSUPPORT;
}

socklen_t address_to_sockaddr(const struct address *a, uint16_t port,
                              struct sockaddr_storage *ret_sa)
{
    memset(ret_sa, 0, sizeof(*ret_sa));
    if (a->bits == V4) {
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
        memcpy(&v4.sin_addr, a->bytes, 4);
        memcpy(ret_sa, &v4, sizeof(v4));
        return sizeof(v4);
    }
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    memcpy(&v6.sin6_addr, a->bytes, 16);
    memcpy(ret_sa, &v6, sizeof(v6));
    return sizeof(v6);
}

int address_parse(const char *p, size_t n, struct address *ret)
{
    char text[ADDRESS_TEXT_SIZE];
    uint8_t bytes[16];
    if (n == 0 || n >= sizeof(text) || memchr(p, '\0', n))
        return -EINVAL;
    memcpy(text, p, n);
    text[n] = '\0';
    if (inet_pton(AF_INET, text, bytes) == 1)
        *ret = address_v4(bytes);
    else if (inet_pton(AF_INET6, text, bytes) == 1)
        *ret = address_v6(bytes);
    else
        return -EINVAL;
    return 0;
}

const char *address_text(const struct address *a, char out[ADDRESS_TEXT_SIZE])
{
    if (!a->bits ||
        !inet_ntop(a->bits == V4 ? AF_INET : AF_INET6, a->bytes, out, ADDRESS_TEXT_SIZE))
        (void)snprintf(out, ADDRESS_TEXT_SIZE, "-");
    return out;
}

bool address_equal(const struct address *a, const struct address *b)
{
    return a->bits == b->bits && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool address_inner(const struct address *a, struct address *ret)
{
    static const uint8_t none[12] = { 0 };
    if (a->bits != V6)
        return false;
    if (a->bytes[0] == 0x20 && a->bytes[1] == 0x02) { /* 6to4 */
        *ret = address_v4(a->bytes + 2);
        return true;
    }
    bool compatible = memcmp(a->bytes, none, sizeof(none)) == 0 && (a->bytes[12] || a->bytes[13]);
    if (!compatible && memcmp(a->bytes, translated, sizeof(translated)) != 0)
        return false;
    *ret = address_v4(a->bytes + 12);
    return true;
}

static bool prefix_equal(const uint8_t *a, const uint8_t *b, unsigned prefix)
{
    unsigned whole = prefix / 8, rest = prefix % 8;
    return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

static enum address_kind look_up(const struct special *table, size_t n, const uint8_t *bytes,
                                 enum address_kind otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (prefix_equal(table[i].bytes, bytes, table[i].prefix))
            return table[i].kind;
    return otherwise;
}

enum address_kind address_kind_of(const struct address *a)
{
    struct address inner;
    bool wrapped = address_inner(a, &inner);
    const uint8_t *bytes = wrapped ? inner.bytes : a->bytes;
    if (wrapped && a->bytes[0] == 0 && a->bytes[1] == 0) /* compatible: routed nowhere */
        return ADDRESS_NEVER;
    if (wrapped || a->bits == V4)
        return look_up(specials_v4, ARRAY_LEN(specials_v4), bytes, ADDRESS_PUBLIC);
    if (a->bits == V6)
        return look_up(specials_v6, ARRAY_LEN(specials_v6), bytes, ADDRESS_NEVER);
    return ADDRESS_NEVER;
}

enum address_kind address_kind(const struct sockaddr *sa)
{
    struct address a;
    return address_from_sockaddr(sa, &a) < 0 ? ADDRESS_NEVER : address_kind_of(&a);
}

bool address_is_guarded(const struct address *a)
{
    for (size_t i = 0; i < ARRAY_LEN(guarded); i++)
        if (guarded[i].bits == a->bits &&
            prefix_equal(guarded[i].bytes, a->bytes, guarded[i].prefix))
            return true;
    return false;
}

/* 0 to `most`, without leading zeros or signs; -EINVAL. */
static int read_prefix(const char *p, size_t n, unsigned most)
{
    unsigned v = 0;
    if (n == 0 || n > 3 || (n > 1 && p[0] == '0'))
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -EINVAL;
        v = v * 10 + (unsigned)(p[i] - '0');
    }
    return v <= most ? (int)v : -EINVAL;
}

int range_parse(const char *p, size_t n, struct range *ret)
{
    const char *slash = n ? memchr(p, '/', n) : NULL;
    size_t len = slash ? (size_t)(slash - p) : n;
    struct range r = { .prefix = 0 };
    if (address_parse(p, len, &r.net) < 0)
        return -EINVAL;
    bool wrapped = r.net.bits == V4 && memchr(p, ':', len);
    int prefix = r.net.bits;
    if (slash) {
        prefix = read_prefix(slash + 1, n - len - 1, wrapped ? V6 : r.net.bits);
        if (wrapped) /* a range of mapped addresses is a range of IPv4 ones, or more than that */
            prefix = prefix < MAPPED_PREFIX ? -EINVAL : prefix - MAPPED_PREFIX;
    }
    if (prefix < 0)
        return -EINVAL;
    r.prefix = (uint8_t)prefix;
    for (unsigned bit = r.prefix; bit < r.net.bits; bit++)
        r.net.bytes[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
    *ret = r;
    return 0;
}

const char *range_text(const struct range *r, char out[RANGE_TEXT_SIZE])
{
    char text[ADDRESS_TEXT_SIZE];
    (void)address_text(&r->net, text);
    if (r->prefix == r->net.bits)
        (void)snprintf(out, RANGE_TEXT_SIZE, "%s", text);
    else
        (void)snprintf(out, RANGE_TEXT_SIZE, "%s/%u", text, r->prefix);
    return out;
}

bool range_has(const struct range *r, const struct address *a)
{
    return a->bits == r->net.bits && prefix_equal(r->net.bytes, a->bytes, r->prefix);
}

#include "net/packet.h"

#include <errno.h>
#include <string.h>

#define V4_HEAD 20
#define V6_HEAD 40
#define UDP_HEAD 8
#define ICMP_HEAD 8
#define HOPS 64
#define PROTO_ICMP 1
#define PROTO_UDP 17
#define PROTO_ICMP6 58
#define ECHO_V4 8
#define ECHO_REPLY_V4 0
#define ECHO_V6 128
#define ECHO_REPLY_V6 129

static void put16(uint8_t *p, size_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static uint32_t add(uint32_t sum, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i + 1 < n; i += 2)
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    if (n & 1)
        sum += (uint32_t)p[n - 1] << 8;
    return (sum & 0xffff) + (sum >> 16); /* so that 64 KiB of pieces never overflow */
}

static uint16_t fold(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static size_t put_ip(uint8_t *p, const struct address *from, const struct address *to,
                     uint8_t protocol, size_t n)
{
    if (from->bits == 32) {
        memset(p, 0, V4_HEAD);
        p[0] = 0x45;
        put16(p + 2, V4_HEAD + n);
        p[8] = HOPS;
        p[9] = protocol;
        memcpy(p + 12, from->bytes, 4);
        memcpy(p + 16, to->bytes, 4);
        put16(p + 10, fold(add(0, p, V4_HEAD)));
        return V4_HEAD;
    }
    memset(p, 0, V6_HEAD);
    p[0] = 0x60;
    put16(p + 4, n);
    p[6] = protocol;
    p[7] = HOPS;
    memcpy(p + 8, from->bytes, 16);
    memcpy(p + 24, to->bytes, 16);
    return V6_HEAD;
}

/* IPv6 sums over its addresses too. */
static uint32_t pseudo(const struct address *from, const struct address *to, uint8_t protocol,
                       size_t n)
{
    uint8_t rest[8] = { 0 };
    put16(rest + 2, n);
    rest[7] = protocol;
    return add(add(add(0, from->bytes, 16), to->bytes, 16), rest, sizeof(rest));
}

static void put_udp(uint8_t *p, const struct packet_end *from, const struct packet_end *to,
                    size_t n)
{
    memset(p, 0, UDP_HEAD);
    put16(p, from->port);
    put16(p + 2, to->port);
    put16(p + 4, UDP_HEAD + n);
}

size_t packet_head(const struct packet_end *from, const struct packet_end *to, const void *data,
                   size_t n, uint8_t out[PACKET_HEAD_MAX])
{
    size_t ip = put_ip(out, &from->address, &to->address, PROTO_UDP, UDP_HEAD + n);
    uint8_t *udp = out + ip;
    put_udp(udp, from, to, n);
    if (from->address.bits != 32) { /* elsewhere a sum may be left out */
        uint32_t sum = pseudo(&from->address, &to->address, PROTO_UDP, UDP_HEAD + n);
        uint16_t folded = fold(add(add(sum, udp, UDP_HEAD), data, n));
        put16(udp + 6, folded ? folded : 0xffff);
    }
    return ip + UDP_HEAD;
}

/* ---- refusals ---- */

/* A word of ICMP from `to` about what `from` sent it: its IP head and the 8 bytes behind. */
static size_t put_refusal(const struct packet_end *from, const struct packet_end *to,
                          uint8_t protocol, const uint8_t behind[8], uint8_t code,
                          uint8_t out[PACKET_REFUSAL_MAX])
{
    bool v4 = from->address.bits == 32;
    size_t n = ICMP_HEAD + (v4 ? V4_HEAD : V6_HEAD) + 8;
    size_t ip = put_ip(out, &to->address, &from->address, v4 ? PROTO_ICMP : PROTO_ICMP6, n);
    uint8_t *icmp = out + ip;
    memset(icmp, 0, ICMP_HEAD);
    icmp[0] = v4 ? 3 : 1; /* destination unreachable */
    icmp[1] = code;
    size_t at = put_ip(icmp + ICMP_HEAD, &from->address, &to->address, protocol, 8);
    memcpy(icmp + ICMP_HEAD + at, behind, 8);
    uint32_t sum = v4 ? 0 : pseudo(&to->address, &from->address, PROTO_ICMP6, n);
    put16(icmp + 2, fold(add(sum, icmp, n)));
    return ip + n;
}

size_t packet_refusal(const struct packet_end *from, const struct packet_end *to,
                      uint8_t out[PACKET_REFUSAL_MAX])
{
    uint8_t udp[UDP_HEAD];
    put_udp(udp, from, to, 0);
    return put_refusal(from, to, PROTO_UDP, udp, from->address.bits == 32 ? 3 : 4, out); /* port */
}

/* ---- echoes ---- */

static int read_echo(const uint8_t *p, size_t n, uint8_t type, struct packet_echo *ret)
{
    if (n < ICMP_HEAD || p[0] != type || p[1] != 0)
        return -EBADMSG;
    ret->from.port = (uint16_t)(p[4] << 8 | p[5]);
    ret->to.port = 0;
    ret->sequence = (uint16_t)(p[6] << 8 | p[7]);
    ret->data = p + ICMP_HEAD;
    ret->n = n - ICMP_HEAD;
    return 0;
}

int packet_read_echo(const uint8_t *p, size_t n, struct packet_echo *ret_echo)
{
    size_t head = n ? (size_t)(p[0] & 15) * 4 : 0;
    if (n < V4_HEAD || p[0] >> 4 != 4 || head < V4_HEAD || head > n || p[9] != PROTO_ICMP)
        return -EBADMSG;
    ret_echo->from.address = address_v4(p + 12);
    ret_echo->to.address = address_v4(p + 16);
    return read_echo(p + head, n - head, ECHO_V4, ret_echo);
}

int packet_read_echo6(const uint8_t *p, size_t n, struct packet_echo *ret_echo)
{
    return read_echo(p, n, ECHO_V6, ret_echo);
}

static void put_echo(uint8_t *p, uint8_t type, const struct packet_echo *e)
{
    memset(p, 0, ICMP_HEAD);
    p[0] = type;
    put16(p + 4, e->from.port);
    put16(p + 6, e->sequence);
}

size_t packet_echo_head(const struct packet_echo *e, uint8_t out[PACKET_HEAD_MAX])
{
    bool v4 = e->from.address.bits == 32;
    size_t n = ICMP_HEAD + e->n;
    size_t ip = put_ip(out, &e->to.address, &e->from.address, v4 ? PROTO_ICMP : PROTO_ICMP6, n);
    uint8_t *icmp = out + ip;
    put_echo(icmp, v4 ? ECHO_REPLY_V4 : ECHO_REPLY_V6, e);
    uint32_t sum = v4 ? 0 : pseudo(&e->to.address, &e->from.address, PROTO_ICMP6, n);
    put16(icmp + 2, fold(add(add(sum, icmp, ICMP_HEAD), e->data, e->n)));
    return ip + ICMP_HEAD;
}

size_t packet_echo_refusal(const struct packet_echo *e, uint8_t out[PACKET_REFUSAL_MAX])
{
    bool v4 = e->from.address.bits == 32;
    uint8_t icmp[ICMP_HEAD];
    put_echo(icmp, v4 ? ECHO_V4 : ECHO_V6, e);
    return put_refusal(&e->from, &e->to, v4 ? PROTO_ICMP : PROTO_ICMP6, icmp, v4 ? 13 : 1, out);
}

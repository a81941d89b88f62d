#include "net/packet.h"

#include <errno.h>

#include <string.h>

#include "base/check.h"

static struct packet_end end_of(const char *text, uint16_t port)
{
    struct packet_end e = { .port = port };
    CHECK_OK(address_parse(text, strlen(text), &e.address));
    return e;
}

static uint16_t sum_of(const uint8_t *p, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i += 2)
        sum += (uint32_t)p[i] << 8 | (i + 1 < n ? p[i + 1] : 0);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

TEST(a_datagram_of_ipv4_has_a_head_that_sums_up)
{
    struct packet_end a = end_of("192.0.2.1", 53), b = end_of("198.51.100.2", 4000);
    uint8_t head[PACKET_HEAD_MAX];
    CHECK_EQ(packet_head(&a, &b, "abc", 3, head), 28);
    CHECK_EQ(sum_of(head, 20), 0xffff);
    CHECK_EQ(head[3], 31);
    CHECK_EQ(head[9], 17);
    CHECK_EQ(head[21], 53);
    CHECK_EQ(head[25], 11);
}

TEST(a_datagram_of_ipv6_sums_up_with_its_addresses)
{
    struct packet_end a = end_of("2001:db8::1", 53), b = end_of("2001:db8::2", 4000);
    uint8_t head[PACKET_HEAD_MAX], all[40 + 8 + 3];
    CHECK_EQ(packet_head(&a, &b, "abc", 3, head), 48);
    memcpy(all, head + 8, 32);
    memcpy(all + 32, (uint8_t[]){ 0, 0, 0, 11, 0, 0, 0, 17 }, 8);
    memcpy(all + 40, head + 40, 8);
    memcpy(all + 48, (uint8_t[]){ 'a', 'b', 'c' }, 3);
    CHECK_EQ(sum_of(all, sizeof(all)), 0xffff);
}

TEST(a_refusal_holds_what_it_refuses)
{
    struct packet_end a = end_of("192.0.2.1", 4000), b = end_of("198.51.100.2", 99);
    uint8_t out[PACKET_REFUSAL_MAX];
    CHECK_EQ(packet_refusal(&a, &b, out), 20 + 8 + 28);
    CHECK_EQ(sum_of(out, 20), 0xffff);
    CHECK_EQ(sum_of(out + 20, 36), 0xffff);
    CHECK_MEM(out + 12, b.address.bytes, 4);
    CHECK_MEM(out + 28 + 12, a.address.bytes, 4);
    struct packet_end c = end_of("2001:db8::1", 4000), d = end_of("2001:db8::2", 99);
    CHECK_EQ(packet_refusal(&c, &d, out), 40 + 8 + 48);
}

TEST(an_echo_is_read_and_answered)
{
    static const uint8_t request[] = { 0x46, 0, 0, 34, 0,    0,    0,   0, 64,  1,  0, 0,
                                       192,  0, 2, 1,  198,  51,   100, 7, 1,   1,  1, 0,
                                       8,    0, 0, 0,  0x12, 0x34, 0,   5, 'h', 'i' };
    struct packet_echo e;
    uint8_t head[PACKET_HEAD_MAX], refusal[PACKET_REFUSAL_MAX];
    CHECK_OK(packet_read_echo(request, sizeof(request), &e));
    CHECK_EQ(e.from.port, 0x1234);
    CHECK_EQ(e.sequence, 5);
    CHECK_EQ(e.n, 2);
    CHECK_MEM(e.data, "hi", 2);
    CHECK_EQ(packet_echo_head(&e, head), 28);
    CHECK_MEM(head + 12, ((const uint8_t[]){ 198, 51, 100, 7, 192, 0, 2, 1, 0, 0 }), 10);
    CHECK_MEM(head + 24, ((const uint8_t[]){ 0x12, 0x34, 0, 5 }), 4);
    CHECK_EQ(packet_echo_refusal(&e, refusal), 56);
    CHECK_MEM(refusal + 20, ((const uint8_t[]){ 3, 13 }), 2);
    CHECK_MEM(refusal + 48, ((const uint8_t[]){ 8, 0, 0, 0, 0x12, 0x34, 0, 5 }), 8);
}

TEST(what_is_no_echo_is_not_taken_for_one)
{
    uint8_t p[64] = { 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1 };
    struct packet_echo e;
    p[20] = 8;
    for (size_t n = 0; n < 28; n++)
        CHECK_EQ(packet_read_echo(p, n, &e), -EBADMSG);
    CHECK_OK(packet_read_echo(p, 28, &e));
    CHECK_EQ(e.n, 0);
    p[0] = 0x4f; /* a head that is longer than all */
    CHECK_EQ(packet_read_echo(p, 28, &e), -EBADMSG);
    p[0] = 0x42;
    CHECK_EQ(packet_read_echo(p, 28, &e), -EBADMSG);
    p[0] = 0x45;
    p[20] = 0; /* an answer */
    CHECK_EQ(packet_read_echo(p, 28, &e), -EBADMSG);
    p[20] = 8;
    p[9] = 17;
    CHECK_EQ(packet_read_echo(p, 28, &e), -EBADMSG);
    CHECK_EQ(packet_read_echo6((const uint8_t[]){ 129, 0, 0, 0, 0, 0, 0, 0 }, 8, &e), -EBADMSG);
    CHECK_EQ(packet_read_echo6((const uint8_t[]){ 128, 0, 0, 0, 0, 0, 0 }, 7, &e), -EBADMSG);
}

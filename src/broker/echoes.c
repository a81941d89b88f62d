/* Echo requests out of a sandbox, and the answers: ping.
 *
 * Every address is local inside, so the kernel there would answer for the whole world; it was told not to, and
 * we do: for loopback as it would, for other places by asking them, where rules let ICMP through and the
 * system lets our user ping (net.ipv4.ping_group_range). Who may not is told at once. */
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>

#include "broker/datagrams_private.h"

#define ECHO_HEAD 8
#define ECHO_MAX 4096 /* more than anybody pings with */
#define ROUND_MAX 64  /* before others get their turn */

static void refuse(struct network *n, const struct packet_echo *e)
{
    uint8_t packet[PACKET_REFUSAL_MAX];
    struct iovec part = { packet, packet_echo_refusal(e, packet) };
    datagrams_send_in(n, &e->from.address, &part, 1);
}

static void answer(struct network *n, const struct packet_echo *e)
{
    uint8_t head[PACKET_HEAD_MAX];
    struct iovec parts[] = { { head, packet_echo_head(e, head) },
                             { (void *)(uintptr_t)e->data, e->n } };
    datagrams_send_in(n, &e->from.address, parts, 2);
}

void echoes_pass_in(const struct datagram_flow *f, const uint8_t *data, size_t n)
{
    if (n < ECHO_HEAD)
        return;
    struct packet_echo e = { f->from, f->to, (uint16_t)(data[6] << 8 | data[7]), data + ECHO_HEAD,
                             n - ECHO_HEAD };
    answer(f->net, &e);
}

/* The kernel gives it another number, and the sum that belongs to it. */
static void pass(struct network *n, const struct packet_echo *e)
{
    struct datagram_flow *f = datagrams_flow(n, POLICY_ICMP, &e->from, &e->to);
    if (!f)
        refuse(n, e);
    if (!f || egress_may(n, ALLOT_SENT) == 0)
        return;
    uint8_t head[ECHO_HEAD] = { e->to.address.bits == 32 ? ICMP_ECHO : ICMP6_ECHO_REQUEST };
    head[6] = (uint8_t)(e->sequence >> 8);
    head[7] = (uint8_t)e->sequence;
    struct iovec parts[] = { { head, sizeof(head) }, { (void *)(uintptr_t)e->data, e->n } };
    datagrams_sent(f, writev(f->fd, parts, 2));
}

static int destination(struct msghdr *m, struct address *ret)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof(info));
            *ret = address_v6(info.ipi6_addr.s6_addr);
            return 0;
        }
    return -ENOENT;
}

static bool is_loopback(const struct address *a)
{
    static const uint8_t last[16] = { [15] = 1 };
    return a->bits == 32 ? a->bytes[0] == 127 : memcmp(a->bytes, last, sizeof(last)) == 0;
}

/* False when there is nothing more. */
static bool take(struct network *n, int fd, bool v4)
{
    static uint8_t data[ECHO_MAX]; /* the loop has one thread */
    struct datagram_in in;
    struct packet_echo e;
    ssize_t size = datagrams_read(fd, data, sizeof(data), &in);
    if (size < 0)
        return size == -EINTR;
    int r = in.m.msg_flags & MSG_TRUNC ? -EMSGSIZE
            : v4                       ? packet_read_echo(data, (size_t)size, &e)
                                       : packet_read_echo6(data, (size_t)size, &e);
    if (r == 0 && !v4) {
        e.from.address = address_v6(in.from.sin6_addr.s6_addr);
        r = destination(&in.m, &e.to.address);
    }
    if (r == 0 && is_loopback(&e.to.address))
        answer(n, &e); /* its own: nothing leaves */
    else if (r == 0)
        pass(n, &e);
    return true;
}

void echoes_on_v4(struct watch *w, uint32_t events)
{
    struct network *n = container_of(w, struct network, raw);
    for (int i = 0; datagrams_may(n) && i < ROUND_MAX && take(n, n->raw_fd, true); i++)
        ;
}

void echoes_on_v6(struct watch *w, uint32_t events)
{
    struct network *n = container_of(w, struct network, raw6);
    for (int i = 0; datagrams_may(n) && i < ROUND_MAX && take(n, n->raw6_fd, false); i++)
        ;
}

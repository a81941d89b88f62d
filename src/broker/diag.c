#include "broker/diag.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_MAX 4096

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 req;
};

static void put_end(const struct diag_end *end, uint32_t out[4], __be16 *port)
{
    memcpy(out, end->address.bytes, sizeof(end->address.bytes));
    *port = htons(end->port);
}

uint32_t diag_inode(int fd, bool udp, const struct diag_end *client, const struct diag_end *server)
{
    struct question q = { .head = { .nlmsg_len = sizeof(q),
                                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                    .nlmsg_flags = NLM_F_REQUEST } };
    q.req.sdiag_family = client->address.bits == 32 ? AF_INET : AF_INET6;
    q.req.sdiag_protocol = udp ? IPPROTO_UDP : IPPROTO_TCP;
    q.req.idiag_states = ~0u;
    q.req.id.idiag_cookie[0] = q.req.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    /* TCP's are named by their own end first; UDP's as a datagram to them would be. */
    const struct diag_end *first = udp ? server : client, *second = udp ? client : server;
    put_end(first, q.req.id.idiag_src, &q.req.id.idiag_sport);
    put_end(second, q.req.id.idiag_dst, &q.req.id.idiag_dport);

    union {
        struct nlmsghdr head;
        char bytes[ANSWER_MAX];
    } a;
    while (recv(fd, &a, sizeof(a), MSG_DONTWAIT) > 0)
        ; /* what an earlier question left */
    if (send(fd, &q, sizeof(q), MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(q))
        return 0;
    ssize_t n = recv(fd, &a, sizeof(a), MSG_DONTWAIT);
    struct inet_diag_msg msg;
    if (n < (ssize_t)NLMSG_LENGTH(sizeof(msg)) || a.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return 0;
    memcpy(&msg, NLMSG_DATA(&a.head), sizeof(msg));
    return msg.idiag_inode;
}

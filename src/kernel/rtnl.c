#include "kernel/rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define LOOPBACK_INDEX 1 /* the first interface of every network namespace */
#define ATTRS_MAX 3
#define BATCH_SIZE 512

struct batch {
    _Alignas(NLMSG_ALIGNTO) char bytes[BATCH_SIZE];
    size_t len;
    unsigned n; /* messages, which is also the last one's number */
};

struct attr {
    uint16_t type;
    const void *p;
    uint16_t n;
};

/* Append one message; everything is our own and fits. */
static void put(struct batch *b, uint16_t type, const void *body, size_t n_body,
                const struct attr attrs[ATTRS_MAX])
{
    char *start = b->bytes + b->len;
    size_t at = NLMSG_HDRLEN;
    memcpy(start + at, body, n_body);
    at += NLMSG_ALIGN(n_body);
    for (size_t i = 0; i < ATTRS_MAX && attrs[i].p; i++) {
        const struct rtattr head = { .rta_len = (uint16_t)RTA_LENGTH(attrs[i].n),
                                     .rta_type = attrs[i].type };
        memcpy(start + at, &head, sizeof(head));
        memcpy(start + at + RTA_LENGTH(0), attrs[i].p, attrs[i].n);
        at += RTA_SPACE(attrs[i].n);
    }
    const struct nlmsghdr head = { .nlmsg_len = (uint32_t)at,
                                   .nlmsg_type = type,
                                   .nlmsg_flags =
                                       NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
                                   .nlmsg_seq = ++b->n };
    memcpy(start, &head, sizeof(head));
    b->len += NLMSG_ALIGN(at);
}

static void put_address(struct batch *b, uint8_t family, const void *address, uint16_t n)
{
    const struct ifaddrmsg body = { .ifa_family = family,
                                    .ifa_prefixlen = (uint8_t)(n * 8),
                                    .ifa_flags = IFA_F_PERMANENT | IFA_F_NODAD,
                                    .ifa_scope = RT_SCOPE_UNIVERSE,
                                    .ifa_index = LOOPBACK_INDEX };
    put(b, RTM_NEWADDR, &body, sizeof(body),
        (const struct attr[ATTRS_MAX]){ { IFA_LOCAL, address, n }, { IFA_ADDRESS, address, n } });
}

static void put_route(struct batch *b, uint8_t family, const void *from, uint16_t n)
{
    static const uint32_t loopback = LOOPBACK_INDEX;
    const struct rtmsg body = { .rtm_family = family,
                                .rtm_table = RT_TABLE_LOCAL,
                                .rtm_protocol = RTPROT_STATIC,
                                .rtm_scope = RT_SCOPE_HOST,
                                .rtm_type = RTN_LOCAL };
    /* Without a source of its own a packet would come from where it goes to, and a connection to a
     * port that happens to be its own would meet itself. */
    put(b, RTM_NEWROUTE, &body, sizeof(body),
        (const struct attr[ATTRS_MAX]){ { RTA_OIF, &loopback, sizeof(loopback) },
                                        { RTA_PREFSRC, from, n } });
}

/* One answer to each message, in their order: the first failure that is one. */
static int read_answers(int fd, unsigned n)
{
    int bad = 0;
    for (unsigned i = 0; i < n;) {
        _Alignas(NLMSG_ALIGNTO) char bytes[4096];
        ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)))
            return got < 0 ? -errno : -EPROTO;
        struct nlmsgerr answer;
        memcpy(&answer, bytes + NLMSG_HDRLEN, sizeof(answer));
        if (answer.error != -EEXIST && bad == 0)
            bad = answer.error;
        i++;
    }
    return bad;
}

static int send_batch(const struct batch *b)
{
    _cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0 || send(fd, b->bytes, b->len, 0) != (ssize_t)b->len)
        return -errno;
    return read_answers(fd, b->n);
}

static bool has_v6(void)
{
    _cleanup_fd_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0;
}

int rtnl_all_local(struct err *err)
{
    struct batch b = { .len = 0 };
    uint8_t v4[4], v6[16];
    if (inet_pton(AF_INET, RTNL_HERE_V4, v4) != 1 || inet_pton(AF_INET6, RTNL_HERE_V6, v6) != 1)
        return err_set(err, EINVAL, "our own address cannot be read");
    put_address(&b, AF_INET, v4, sizeof(v4));
    put_route(&b, AF_INET, v4, sizeof(v4));
    if (has_v6()) {
        put_address(&b, AF_INET6, v6, sizeof(v6));
        put_route(&b, AF_INET6, v6, sizeof(v6));
    }
    int r = send_batch(&b);
    return r < 0 ? err_set(err, -r, "cannot make every address local") : 0;
}

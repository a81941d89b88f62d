#include "kernel/tcpcut.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define REPLY_BYTES 65536
#define ENDS_MAX 65536
/* Connections, however far they have come: not those that only listen, or wait for late packets. */
#define STATES                                                                \
    ((1u << TCP_ESTABLISHED) | (1u << TCP_SYN_SENT) | (1u << TCP_FIN_WAIT1) | \
     (1u << TCP_FIN_WAIT2) | (1u << TCP_CLOSE_WAIT) | (1u << TCP_LAST_ACK) | (1u << TCP_CLOSING))

struct end {
    uint8_t family;
    struct inet_diag_sockid id;
};

struct ends {
    struct end *p;
    size_t n, size;
};

static int add(struct ends *e, uint8_t family, const struct inet_diag_sockid *id)
{
    if (e->n == e->size) {
        size_t size = e->size ? e->size * 2 : 64;
        struct end *p = size > ENDS_MAX ? NULL : realloc(e->p, size * sizeof(*p));
        if (!p)
            return -ENOMEM;
        e->p = p;
        e->size = size;
    }
    e->p[e->n++] = (struct end){ family, *id };
    return 0;
}

static int ask(int fd, uint16_t type, uint16_t flags, const struct inet_diag_req_v2 *req)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 req;
    } m = { .head = { .nlmsg_len = sizeof(m), .nlmsg_type = type, .nlmsg_flags = flags },
            .req = *req };
    return send(fd, &m, sizeof(m), 0) < 0 ? -errno : 0;
}

/* One datagram of a listing. 1: there is more. */
static int read_some(int fd, char *space, struct ends *e)
{
    ssize_t n = recv(fd, space, REPLY_BYTES, 0);
    if (n < 0)
        return -errno;
    size_t left = (size_t)n;
    for (const struct nlmsghdr *h = (const void *)space; NLMSG_OK(h, left);
         h = NLMSG_NEXT(h, left)) {
        if (h->nlmsg_type == NLMSG_DONE)
            return 0;
        if (h->nlmsg_type == NLMSG_ERROR)
            return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
        const struct inet_diag_msg *m = NLMSG_DATA(h);
        int r = h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) ? -EPROTO : add(e, m->idiag_family, &m->id);
        if (r < 0)
            return r;
    }
    return 1;
}

static int list(int fd, uint8_t family, char *space, struct ends *e)
{
    const struct inet_diag_req_v2 req = { .sdiag_family = family,
                                          .sdiag_protocol = IPPROTO_TCP,
                                          .idiag_states = STATES };
    int r = ask(fd, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, &req);
    while (r >= 0 && (r = read_some(fd, space, e)) > 0)
        ;
    return r;
}

/* An IPv4 address within an IPv6 one is that address. */
static void plain(const struct end *e, const uint32_t in[4], uint32_t out[4])
{
    bool v4 = e->family == AF_INET;
    bool mapped = !v4 && in[0] == 0 && in[1] == 0 && in[2] == htonl(0xffff);
    memset(out, 0, 4 * sizeof(*out));
    if (v4 || mapped)
        out[0] = in[v4 ? 0 : 3];
    else
        memcpy(out, in, 4 * sizeof(*out));
}

static bool are_one(const struct end *a, const struct end *b)
{
    uint32_t x[4], y[4];
    if (a->id.idiag_sport != b->id.idiag_dport || a->id.idiag_dport != b->id.idiag_sport)
        return false;
    plain(a, a->id.idiag_src, x);
    plain(b, b->id.idiag_dst, y);
    if (memcmp(x, y, sizeof(x)) != 0)
        return false;
    plain(a, a->id.idiag_dst, x);
    plain(b, b->id.idiag_src, y);
    return memcmp(x, y, sizeof(x)) == 0;
}

static bool is_loose(const struct ends *e, size_t i)
{
    for (size_t k = 0; k < e->n; k++)
        if (k != i && are_one(&e->p[i], &e->p[k]))
            return false;
    return true;
}

static int cut(int fd, const struct end *e, char *space)
{
    const struct inet_diag_req_v2 req = { .sdiag_family = e->family,
                                          .sdiag_protocol = IPPROTO_TCP,
                                          .idiag_states = STATES,
                                          .id = e->id };
    int r = ask(fd, SOCK_DESTROY, NLM_F_REQUEST | NLM_F_ACK, &req);
    struct ends none = { 0 };
    if (r >= 0)
        r = read_some(fd, space, &none);
    free(none.p);
    return r == -ENOENT ? 0 : r; /* gone by itself */
}

int tcpcut_loose_ends(struct err *err)
{
    _cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    _cleanup_free_ char *space = malloc(REPLY_BYTES);
    struct ends e = { 0 };
    int n = 0;
    int r = fd < 0 ? -errno : !space ? -ENOMEM : list(fd, AF_INET, space, &e);
    if (r >= 0)
        r = list(fd, AF_INET6, space, &e);
    for (size_t i = 0; r >= 0 && i < e.n; i++)
        if (is_loose(&e, i)) {
            r = cut(fd, &e.p[i], space);
            n++;
        }
    free(e.p);
    return r < 0 ? err_set(err, -r, "cannot end connections to the outside") : n;
}

/* Datagrams out of a sandbox, other than DNS, and what comes back to them; and echo requests (echoes.c), which
 * are much the same: their number is the port, and the socket outside is one of the kernel's for pings.
 *
 * All from one port inside to one place outside are a flow, which is judged once and has a socket of its own,
 * so that only that place can answer. Answers are written as packets from there. What may not pass is
 * refused as a closed port would refuse it: the sender learns of it at once. A flow ends when nothing came
 * either way for a while, or when a newer one needs its place. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/detour.h"
#include "broker/datagrams_private.h"
#include "base/share.h"

#define FLOWS_MAX 256        /* of one sandbox at once; a socket each */
#define FLOWS_ALL 8192       /* of all together, where there are descriptors for so many */
#define FLOW_IDLE_MS 60000   /* as long as most routers remember one */
#define ROUND_MAX 64         /* datagrams before others get their turn */
#define DENIED_EVERY_MS 1000 /* a record of the same place */

struct datagrams {
    struct datagram_flow *flows; /* the latest to be used first */
    size_t n;
    struct packet_end denied; /* the latest that was told of */
    int64_t denied_ms;
};

bool datagrams_may(struct network *n)
{
    if (!n->datagrams)
        n->datagrams = calloc(1, sizeof(*n->datagrams));
    return n->datagrams != NULL;
}

static bool same_end(const struct packet_end *a, const struct packet_end *b)
{
    return a->port == b->port && address_equal(&a->address, &b->address);
}

/* ---- into the sandbox ---- */

void datagrams_send_in(struct network *n, const struct address *to, struct iovec *parts,
                       size_t count)
{
    struct sockaddr_storage sa;
    struct msghdr m = { .msg_name = &sa,
                        .msg_namelen = address_to_sockaddr(to, 0, &sa),
                        .msg_iov = parts,
                        .msg_iovlen = count };
    (void)sendmsg(to->bits == 32 ? n->raw_fd : n->raw6_fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void refuse(struct network *n, const struct packet_end *from, const struct packet_end *to)
{
    uint8_t packet[PACKET_REFUSAL_MAX];
    struct iovec part = { packet, packet_refusal(from, to, packet) };
    datagrams_send_in(n, &from->address, &part, 1);
}

/* ---- a flow ---- */

static void flow_free(struct later *l)
{
    free(container_of(l, struct datagram_flow, later));
}

static void unlink_flow(struct datagram_flow *f)
{
    *f->at = f->next;
    if (f->next)
        f->next->at = f->at;
}

static void link_first(struct datagrams *d, struct datagram_flow *f)
{
    f->next = d->flows;
    f->at = &d->flows;
    if (f->next)
        f->next->at = &f->next;
    d->flows = f;
}

static void flow_end(struct datagram_flow *f)
{
    struct loop *loop = f->net->egress->loop;
    egress_record(f->net, &f->rec);
    loop_no_deadline(loop, &f->deadline);
    loop_remove(loop, &f->watch);
    (void)close(f->fd);
    unlink_flow(f);
    f->net->datagrams->n--;
    f->net->egress->n_flows--;
    loop_defer(loop, &f->later, flow_free);
}

static void on_idle(struct deadline *d)
{
    flow_end(container_of(d, struct datagram_flow, deadline));
}

static void touch(struct datagram_flow *f)
{
    unlink_flow(f);
    link_first(f->net->datagrams, f);
    loop_deadline(f->net->egress->loop, &f->deadline, clock_mono_ms() + FLOW_IDLE_MS, on_idle);
}

/* What a server said goes in, as from it. */
static void pass_in(const struct datagram_flow *f, uint8_t *data, size_t n)
{
    uint8_t head[PACKET_HEAD_MAX];
    if (f->protocol == POLICY_ICMP) {
        echoes_pass_in(f, data, n);
        return;
    }
    struct iovec parts[] = { { head, packet_head(&f->to, &f->from, data, n, head) }, { data, n } };
    datagrams_send_in(f->net, &f->from.address, parts, 2);
}

static void on_answer(struct watch *w, uint32_t events)
{
    static uint8_t data[PACKET_DATA_MAX]; /* the loop has one thread */
    struct datagram_flow *f = container_of(w, struct datagram_flow, watch);
    for (int i = 0; i < ROUND_MAX; i++) {
        ssize_t n = recv(f->fd, data, sizeof(data), MSG_DONTWAIT);
        if (n < 0 && errno == ECONNREFUSED && f->protocol == POLICY_UDP)
            refuse(f->net, &f->from, &f->to);
        if (n < 0)
            break;
        if (egress_may(f->net, ALLOT_RECEIVED) == 0)
            continue; /* beyond what it may use: lost, as datagrams are */
        pass_in(f, data, (size_t)n);
        f->received += (uint64_t)n;
    }
    egress_carried(f->net, &f->rec, f->sent, f->received);
    touch(f);
}

static struct datagram_flow *flow_find(const struct datagrams *d, enum policy_protocol protocol,
                                       const struct packet_end *from, const struct packet_end *to)
{
    for (struct datagram_flow *f = d->flows; f; f = f->next)
        if (f->protocol == protocol && same_end(&f->from, from) && same_end(&f->to, to))
            return f;
    return NULL;
}

static struct policy_answer judge(struct network *n, enum policy_protocol protocol,
                                  const struct packet_end *to, char ret_name[HOST_SIZE])
{
    const char *names[PINS_NAMES_MAX];
    struct policy_limits limits = egress_limits(n->egress);
    struct policy_flow f = { .protocol = protocol,
                             .to = to->address,
                             .port = to->port,
                             .named = POLICY_NAME_NONE,
                             .pinned = names };
    f.n_pinned = pins_names(n->pins, &to->address, clock_mono_ms(), names);
    (void)snprintf(ret_name, HOST_SIZE, "%s", f.n_pinned ? names[0] : "");
    return policy_judge(&n->policy, &limits, &f);
}

static int dial(enum policy_protocol protocol, const struct packet_end *to)
{
    struct sockaddr_storage sa;
    socklen_t len = address_to_sockaddr(&to->address, to->port, &sa);
    int ping = sa.ss_family == AF_INET ? (int)IPPROTO_ICMP : (int)IPPROTO_ICMPV6;
    int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    protocol == POLICY_ICMP ? ping : 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&sa, len) < 0) {
        int r = -errno;
        (void)close(fd);
        return r;
    }
    return fd < 0 ? -errno : fd;
}

/* The oldest of its own go, until it holds no more than its share. */
static void make_room(struct network *n)
{
    struct datagrams *d = n->datagrams;
    size_t room = n->egress->room < FLOWS_ALL ? n->egress->room : FLOWS_ALL;
    size_t most = share(room, n->egress->n_flows, FLOWS_MAX);
    while (d->n && d->n >= most) {
        struct datagram_flow *f = d->flows;
        while (f->next)
            f = f->next;
        flow_end(f);
    }
}

/* Once a second is enough for the log: a sender may try as often as it likes. */
static void tell_denied(struct network *n, struct egress_record *rec, const struct packet_end *to)
{
    struct datagrams *d = n->datagrams;
    int64_t now = clock_mono_ms();
    if (same_end(&d->denied, to) && now - d->denied_ms < DENIED_EVERY_MS)
        return;
    d->denied = *to;
    d->denied_ms = now;
    egress_record(n, rec);
}

/* NULL: it may not pass, and its sender is to be told. */
static struct datagram_flow *flow_new(struct network *n, enum policy_protocol protocol,
                                      const struct packet_end *from, const struct packet_end *to)
{
    struct egress_record rec = {
        .wall_ms = clock_now_ms(), .protocol = protocol, .to = to->address, .port = to->port
    };
    struct policy_answer answer = judge(n, protocol, to, rec.name), limit;
    if (answer.verdict == POLICY_ALLOW && !egress_admit(n, &limit))
        answer = limit;
    egress_answered(&rec, &answer);
    int fd = -1;
    if (answer.verdict == POLICY_ALLOW) /* proxies carry no datagrams, and none goes around them */
        fd = detour_needed(n, &to->address) ? -EPROTONOSUPPORT : dial(protocol, to);
    struct datagram_flow *f = fd >= 0 ? calloc(1, sizeof(*f)) : NULL;
    if (!f) {
        if (fd >= 0)
            (void)close(fd);
        rec.failure = answer.verdict == POLICY_ALLOW ? (fd >= 0 ? ENOMEM : -fd) : 0;
        tell_denied(n, &rec, to);
        return NULL;
    }
    *f = (struct datagram_flow){
        .net = n, .watch = { -1, on_answer }, .protocol = protocol, .fd = fd, .rec = rec
    };
    f->from = *from;
    f->to = *to;
    make_room(n);
    link_first(n->datagrams, f);
    n->datagrams->n++;
    n->egress->n_flows++;
    egress_begun(n, &f->rec);
    if (loop_add(n->egress->loop, &f->watch, fd, EPOLLIN) < 0) {
        flow_end(f);
        return NULL;
    }
    return f;
}

struct datagram_flow *datagrams_flow(struct network *n, enum policy_protocol protocol,
                                     const struct packet_end *from, const struct packet_end *to)
{
    struct datagram_flow *f = flow_find(n->datagrams, protocol, from, to);
    return f ? f : flow_new(n, protocol, from, to);
}

void datagrams_sent(struct datagram_flow *f, ssize_t n)
{
    if (n > 0)
        f->sent += (uint64_t)n;
    egress_carried(f->net, &f->rec, f->sent, f->received);
    touch(f);
}

/* ---- out of the sandbox ---- */

static int end_of(const void *sockaddr, struct packet_end *ret)
{
    struct sockaddr_storage sa;
    struct sockaddr_in in; /* the port is in the same place in both */
    memcpy(&in, sockaddr, sizeof(in));
    memcpy(&sa, sockaddr, in.sin_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(in));
    ret->port = ntohs(in.sin_port);
    return address_from_sockaddr((const struct sockaddr *)&sa, &ret->address);
}

static int destination(struct msghdr *m, struct packet_end *ret)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if ((c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR) ||
            (c->cmsg_level == SOL_IP && c->cmsg_type == IP_ORIGDSTADDR))
            return end_of(CMSG_DATA(c), ret);
    return -ENOENT;
}

static void pass(struct network *n, const struct packet_end *from, const struct packet_end *to,
                 const void *data, size_t size)
{
    struct datagram_flow *f = datagrams_flow(n, POLICY_UDP, from, to);
    if (!f)
        refuse(n, from, to);
    if (!f || egress_may(n, ALLOT_SENT) == 0)
        return;
    ssize_t sent = send(f->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == ECONNREFUSED) { /* told of an earlier one; this one is tried still */
        refuse(n, from, to);
        sent = send(f->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    datagrams_sent(f, sent);
}

ssize_t datagrams_read(int fd, void *data, size_t size, struct datagram_in *ret)
{
    struct iovec part = { data, size };
    ret->from = (struct sockaddr_in6){ 0 };
    ret->m = (struct msghdr){ .msg_name = &ret->from,
                              .msg_namelen = sizeof(ret->from),
                              .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = ret->control,
                              .msg_controllen = sizeof(ret->control) };
    ssize_t n = recvmsg(fd, &ret->m, MSG_DONTWAIT);
    ret->m.msg_iov = NULL;
    return n < 0 ? -errno : n;
}

/* False when there is nothing more. */
static bool take_one(struct network *n)
{
    static uint8_t data[PACKET_DATA_MAX + 1]; /* the loop has one thread */
    struct datagram_in in;
    struct packet_end from, to;
    ssize_t size = datagrams_read(n->rest_fd, data, sizeof(data), &in);
    if (size < 0)
        return size == -EINTR || size == -ECONNREFUSED;
    if (!(in.m.msg_flags & MSG_TRUNC) && end_of(&in.from, &from) == 0 &&
        destination(&in.m, &to) == 0 && from.address.bits == to.address.bits && to.port)
        pass(n, &from, &to, data, (size_t)size);
    return true;
}

void datagrams_on_rest(struct watch *w, uint32_t events)
{
    struct network *n = container_of(w, struct network, rest);
    for (int i = 0; datagrams_may(n) && i < ROUND_MAX && take_one(n); i++)
        ;
}

/* ---- life ---- */

void datagrams_judge_again(struct network *n)
{
    char name[HOST_SIZE];
    for (struct datagram_flow *f = n->datagrams ? n->datagrams->flows : NULL, *next; f; f = next) {
        next = f->next;
        if (judge(n, f->protocol, &f->to, name).verdict != POLICY_ALLOW)
            flow_end(f);
    }
}

void datagrams_close(struct network *n)
{
    while (n->datagrams && n->datagrams->flows)
        flow_end(n->datagrams->flows);
    free(n->datagrams);
    n->datagrams = NULL;
}

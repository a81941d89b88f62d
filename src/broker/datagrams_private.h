/* What datagrams.c and echoes.c share: flows. */
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "broker/egress_private.h"
#include "net/packet.h"

struct datagram_flow {
    struct network *net;
    struct datagram_flow *next, **at;
    struct watch watch;
    struct deadline deadline;
    struct later later;
    enum policy_protocol protocol; /* UDP, or ICMP: then a port is the number of who sends echoes */
    struct packet_end from, to;
    int fd;
    uint64_t sent, received;
    struct egress_record rec;
};

/* One as it came, with what the kernel says of it. */
struct datagram_in {
    struct sockaddr_in6 from;
    char control[256];
    struct msghdr m; /* points into the rest */
};

/* ---- datagrams.c ---- */
ssize_t datagrams_read(int fd, void *data, size_t size, struct datagram_in *ret); /* or -errno */
bool datagrams_may(struct network *n); /* false: no memory */
/* A packet for somebody inside. */
void datagrams_send_in(struct network *n, const struct address *to, struct iovec *parts,
                       size_t count);
/* The one between these two, perhaps a new one; NULL: it may not be, and its sender is to be told. */
struct datagram_flow *datagrams_flow(struct network *n, enum policy_protocol protocol,
                                     const struct packet_end *from, const struct packet_end *to);
void datagrams_sent(struct datagram_flow *f, ssize_t n); /* what its socket took, or below zero */

/* ---- echoes.c ---- */
void echoes_pass_in(const struct datagram_flow *f, const uint8_t *data, size_t n);

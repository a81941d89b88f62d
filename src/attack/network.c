/* The ways out of a sandbox that has no network, which is the default. */
#include "attack/attempt.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS 1500

static socklen_t address_of(const char *text, unsigned port, struct sockaddr_storage *at)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)at;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)at;
    memset(at, 0, sizeof(*at));
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((in_port_t)port);
        return sizeof(*v4);
    }
    (void)inet_pton(AF_INET6, text, &v6->sin6_addr);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((in_port_t)port);
    return sizeof(*v6);
}

/* path: the address; args: the port and the socket's type */
static void run_connect(const struct attempt *self, struct outcome *o)
{
    struct sockaddr_storage at;
    socklen_t n = address_of(self->path, (unsigned)self->args[0], &at);
    int type = (int)self->args[1],
        fd = socket(at.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd p = { .fd = fd, .events = type == SOCK_STREAM ? POLLOUT : POLLIN };
    int r = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&at, n), e = errno;
    if (r == 0 && type == SOCK_DGRAM) {
        r = send(fd, "x", 1, 0) == 1 && poll(&p, 1, ANSWER_MS) == 1 && !(p.revents & POLLERR) ? 0
                                                                                              : -1;
        e = r < 0 ? EHOSTUNREACH : 0;
    } else if (r < 0 && e == EINPROGRESS) {
        socklen_t len = sizeof(e);
        e = ETIMEDOUT;
        if (poll(&p, 1, ANSWER_MS) == 1)
            (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
        r = e ? -1 : 0;
    }
    errno = e;
    failed(o, r, self->path);
    if (fd >= 0)
        (void)close(fd);
}

/* On the host's loopback the daemon's API itself would answer. */
static void run_loopback(const struct attempt *self, struct outcome *o)
{
    static const unsigned ports[] = { 22,   53,   80,   111,  443,  631, 2375,
                                      3128, 5432, 6379, 7070, 8080, 9090 };
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        struct attempt one = *self;
        one.args[0] = (long)ports[i];
        one.args[1] = SOCK_STREAM;
        run_connect(&one, o);
    }
}

static void run_routes(const struct attempt *self, struct outcome *o)
{
    char text[256];
    long n = slurp("/proc/net/route", text, sizeof(text));
    if (n > 0 && strchr(text, '\n') && strchr(text, '\n')[1])
        broke(o, "there is a route out: %.60s", strchr(text, '\n') + 1);
    held(o, "no route leads out");
}

static void run_interfaces(const struct attempt *self, struct outcome *o)
{
    char line[512], name[64];
    FILE *f = fopen("/proc/net/dev", "re");
    while (f && fgets(line, sizeof(line), f))
        if (strchr(line, ':') && sscanf(line, " %63[^:]", name) == 1 && strcmp(name, "lo") != 0)
            broke(o, "an interface beside loopback: %s", name);
    if (f)
        (void)fclose(f);
    held(o, "loopback alone");
}

#define OUT(name_, title_, address_, port_, type_)                                             \
    {                                                                                          \
        .name = "out-" name_, .title = title_, .run = run_connect, .path = address_, .args = { \
            port_,                                                                             \
            type_                                                                              \
        }                                                                                      \
    }

/* clang-format off */
static const struct attempt network[] = {
    OUT("address", "a public address", "1.1.1.1", 443, SOCK_STREAM), OUT("dns", "a resolver", "8.8.8.8", 53, SOCK_DGRAM),
    OUT("dns-tcp", "a resolver by TCP", "8.8.8.8", 53, SOCK_STREAM), OUT("dot", "DNS over TLS", "9.9.9.9", 853, SOCK_STREAM),
    OUT("quic", "QUIC", "1.1.1.1", 443, SOCK_DGRAM), OUT("metadata", "a cloud's metadata", "169.254.169.254", 80, SOCK_STREAM),
    OUT("metadata-v6", "a cloud's metadata, IPv6", "fd00:ec2::254", 80, SOCK_STREAM),
    OUT("metadata-alibaba", "another cloud's metadata", "100.100.100.200", 80, SOCK_STREAM),
    OUT("private-10", "10.0.0.1", "10.0.0.1", 80, SOCK_STREAM), OUT("private-172", "a container bridge", "172.17.0.1", 80, SOCK_STREAM),
    OUT("private-192", "192.168.0.1", "192.168.0.1", 80, SOCK_STREAM), OUT("ipv6", "a public address, IPv6", "2606:4700:4700::1111", 443, SOCK_STREAM),
    OUT("mapped", "IPv4 in IPv6", "::ffff:1.1.1.1", 443, SOCK_STREAM), OUT("nat64", "IPv4 by NAT64", "64:ff9b::101:101", 443, SOCK_STREAM),
    OUT("link-local", "a neighbour by fe80", "fe80::1", 80, SOCK_STREAM), OUT("multicast", "a group", "224.0.0.251", 5353, SOCK_DGRAM),
    OUT("broadcast", "everybody", "255.255.255.255", 67, SOCK_DGRAM),
    { .name = "out-host-loopback", .title = "the host's loopback", .run = run_loopback, .path = "127.0.0.1", .flags = ATTEMPT_SLOW },
    { .name = "out-any-address", .title = "the host by 0.0.0.0", .run = run_loopback, .path = "0.0.0.0", .flags = ATTEMPT_SLOW },
    { .name = "routes", .title = "a route out", .run = run_routes },
    { .name = "interfaces", .title = "an interface of the host's", .run = run_interfaces },
};
/* clang-format on */

const struct group group_network = { "network", network, sizeof(network) / sizeof(network[0]) };

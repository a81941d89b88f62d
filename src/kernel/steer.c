#include "kernel/steer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/icmp.h>
#include <linux/netlink.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/netns.h"
#include "kernel/rtnl.h"
#include "kernel/sklookup.h"

#define BACKLOG 1024
#define TCP_PORT \
    4 /* assigned to nobody: a server of the sandbox's own, on every address, is not in its way */
#define UDP_PORT 53 /* answers come from it */
#define REST_PORT 5

/* Bind where nobody inside would: the address is local like all others, and not loopback's. */
static int bind_there(int fd, int family, uint16_t port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    int on = 1;
    if (setsockopt(fd, SOL_IP, IP_FREEBIND, &on, sizeof(on)) < 0)
        return -errno;
    if (family == AF_INET) {
        (void)inet_pton(AF_INET, STEER_RESOLVER, &v4.sin_addr);
        return bind(fd, (const struct sockaddr *)&v4, sizeof(v4)) < 0 ? -errno : 0;
    }
    int off = 0;
    (void)inet_pton(AF_INET6, "::ffff:" STEER_RESOLVER, &v6.sin6_addr);
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
        return -errno;
    return bind(fd, (const struct sockaddr *)&v6, sizeof(v6)) < 0 ? -errno : 0;
}

/* A broker that was restarted may bind beside the sockets of the one before it. */
static int make_socket(int *family, int type, uint16_t port)
{
    int on = 1, fd = socket(*family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EAFNOSUPPORT && *family == AF_INET6) {
        *family = AF_INET;
        return make_socket(family, type, port);
    }
    if (fd < 0)
        return -errno;
    int r = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ? -errno : 0;
    if (r == 0)
        r = bind_there(fd, *family, port);
    if (r == 0 && type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
        r = -errno;
    if (r < 0) {
        (void)close(fd);
        return r;
    }
    return fd;
}

/* Have each datagram's own destination told, whichever family it is of. */
static int want_destination(int fd, int family)
{
    int on = 1;
    if (setsockopt(fd, SOL_IP, IP_RECVORIGDSTADDR, &on, sizeof(on)) < 0)
        return -errno;
    if (family == AF_INET6 && setsockopt(fd, SOL_IPV6, IPV6_RECVORIGDSTADDR, &on, sizeof(on)) < 0)
        return -errno;
    return 0;
}

static int udp_socket(int *family, uint16_t port, int *ret_fd)
{
    *ret_fd = make_socket(family, SOCK_DGRAM, port);
    return *ret_fd < 0 ? *ret_fd : want_destination(*ret_fd, *family);
}

static int set_raw(int fd, bool v4)
{
    struct icmp_filter filter = { ~(1u << ICMP_ECHO) };
    struct icmp6_filter filter6;
    int on = 1;
    ICMP6_FILTER_SETBLOCKALL(&filter6);
    ICMP6_FILTER_SETPASS(ICMP6_ECHO_REQUEST, &filter6);
    if (v4)
        return setsockopt(fd, SOL_IP, IP_HDRINCL, &on, sizeof(on)) < 0 ||
                       setsockopt(fd, SOL_RAW, ICMP_FILTER, &filter, sizeof(filter)) < 0
                   ? -errno
                   : 0;
    return setsockopt(fd, SOL_IPV6, IPV6_HDRINCL, &on, sizeof(on)) < 0 ||
                   setsockopt(fd, SOL_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) < 0 ||
                   setsockopt(fd, SOL_ICMPV6, ICMP6_FILTER, &filter6, sizeof(filter6)) < 0
               ? -errno
               : 0;
}

/* Whole packets out, echo requests in. */
static int raw_socket(int family)
{
    bool v4 = family == AF_INET;
    int fd = socket(family, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    v4 ? (int)IPPROTO_ICMP : (int)IPPROTO_ICMPV6);
    int r = fd < 0 ? -errno : set_raw(fd, v4);
    if (r < 0 && fd >= 0)
        (void)close(fd);
    return r < 0 ? r : fd;
}

/* Everybody inside may ping, by sockets that need no right, once the kernel there has been told not to answer:
 * else every place would seem to be there. Where it cannot be told, nobody may, as before; nor may groups of a
 * higher number than the kernel takes here, which only the 4,097th sandbox at once has (uidrange.c). */
static void lead_echoes(void)
{
    static const struct {
        const char *path, *value;
    } settings[] = {
        { "/proc/sys/net/ipv6/icmp/echo_ignore_all", "1" }, /* not there without IPv6 */
        { "/proc/sys/net/ipv4/icmp_echo_ignore_all", "1" },
        { "/proc/sys/net/ipv4/ping_group_range", "0 2147483647" },
    };
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(settings[i].value);
        _cleanup_fd_ int fd = open(settings[i].path, O_WRONLY | O_CLOEXEC);
        bool set = fd >= 0 && write(fd, settings[i].value, n) == (ssize_t)n;
        if (!set && !(fd < 0 && errno == ENOENT && i == 0))
            return;
    }
}

static int build(void *arg, struct err *err)
{
    int *fds = arg, family = AF_INET6;
    int r = rtnl_all_local(err);
    if (r < 0)
        return r;
    fds[STEER_TCP] = make_socket(&family, SOCK_STREAM, TCP_PORT);
    if (fds[STEER_TCP] < 0)
        return err_set(err, -fds[STEER_TCP], "cannot make the socket that connections go to");
    r = udp_socket(&family, UDP_PORT, &fds[STEER_UDP]);
    if (r == 0)
        r = udp_socket(&family, REST_PORT, &fds[STEER_REST]);
    if (r < 0)
        return err_set(err, -r, "cannot make the sockets that datagrams go to");
    lead_echoes();
    fds[STEER_RAW_V4] = raw_socket(AF_INET);
    fds[STEER_RAW_V6] = raw_socket(family);
    if (fds[STEER_RAW_V4] < 0 || fds[STEER_RAW_V6] < 0)
        return err_set(err, EPERM, "cannot make the sockets that answers come from");
    r = sklookup_attach(fds[STEER_TCP], fds[STEER_UDP], fds[STEER_REST], &fds[STEER_LINK], err);
    if (r < 0)
        return r;
    fds[STEER_DIAG] =
        socket(AF_NETLINK, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fds[STEER_DIAG] < 0) /* something stands for it, and answers nothing */
        fds[STEER_DIAG] = fcntl(fds[STEER_LINK], F_DUPFD_CLOEXEC, 0);
    return fds[STEER_DIAG] < 0 ? err_set(err, errno, "no descriptor is left") : 0;
}

int steer_make(int pidfd, int ret_fds[STEER_FDS], struct err *err)
{
    int fds[STEER_FDS] = { -1, -1, -1, -1, -1, -1, -1 };
    int r = netns_visit(pidfd, build, fds, err);
    if (r < 0) {
        fd_close_all(fds, STEER_FDS);
        return r;
    }
    memcpy(ret_fds, fds, sizeof(fds));
    return 0;
}

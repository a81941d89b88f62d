#include "kernel/steer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "kernel/netns.h"
#include "kernel/rtnl.h"
#include "kernel/sklookup.h"

#define BACKLOG 1024
#define TCP_PORT \
    4 /* assigned to nobody: a server of the sandbox's own, on every address, is not in its way */
#define UDP_PORT 53 /* answers come from it */

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

struct work {
    unsigned flags;
    int fds[STEER_FDS];
};

static int build(void *arg, struct err *err)
{
    struct work *w = arg;
    int family = AF_INET6;
    int r = rtnl_all_local(err);
    if (r < 0)
        return r;
    w->fds[STEER_TCP] = make_socket(&family, SOCK_STREAM, TCP_PORT);
    if (w->fds[STEER_TCP] < 0)
        return err_set(err, -w->fds[STEER_TCP], "cannot make the socket that connections go to");
    w->fds[STEER_UDP] = make_socket(&family, SOCK_DGRAM, UDP_PORT);
    r = w->fds[STEER_UDP] < 0 ? w->fds[STEER_UDP] : want_destination(w->fds[STEER_UDP], family);
    if (r < 0)
        return err_set(err, -r, "cannot make the socket that datagrams go to");
    return sklookup_attach(w->fds[STEER_TCP], w->fds[STEER_UDP], w->flags & STEER_ALL_UDP,
                           &w->fds[STEER_LINK], err);
}

int steer_make(int pidfd, unsigned flags, int ret_fds[STEER_FDS], struct err *err)
{
    struct work w = { flags, { -1, -1, -1 } };
    int r = netns_visit(pidfd, build, &w, err);
    if (r < 0) {
        fd_close_all(w.fds, STEER_FDS);
        return r;
    }
    memcpy(ret_fds, w.fds, sizeof(w.fds));
    return 0;
}

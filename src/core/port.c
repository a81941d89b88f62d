#include "core/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/keeper.h"
#include "core/private.h"
#include "wire/broker.h"

/* 0, or -errno: -ETIMEDOUT when the listener's queue stays full. */
static int connect_within(int fd, const void *addr, size_t len, int timeout_ms)
{
    int nodelay = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay));
    if (connect(fd, addr, (socklen_t)len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -errno;
    int r = fd_wait(fd, POLLOUT, timeout_ms);
    if (r <= 0)
        return r < 0 ? r : -ETIMEDOUT;
    int failure = 0;
    socklen_t size = sizeof(failure);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
        return -errno;
    return -failure;
}

static int connect_either(const int fds[KEEPER_SOCKETS], unsigned port, int timeout_ms)
{
    const struct sockaddr_in v4 = { .sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                                     .sin6_port = htons((uint16_t)port),
                                     .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int64_t until = clock_mono_ms() + timeout_ms;
    int r = connect_within(fds[0], &v4, sizeof(v4), timeout_ms);
    if (r == 0)
        return 0;
    if (r != -ECONNREFUSED || fds[1] < 0)
        return r;
    int64_t left = until - clock_mono_ms();
    r = connect_within(fds[1], &v6, sizeof(v6), left > 0 ? (int)left : 0);
    return r == 0 ? 1 : r == -EADDRNOTAVAIL ? -ECONNREFUSED : r;
}

int port_dial(struct core *core, const struct sandbox *s, unsigned port, int timeout_ms,
              int *ret_fd, struct err *err)
{
    if (port == 0 || port > PORT_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "a port is a number from 1 to %d", PORT_MAX);
    int fds[KEEPER_SOCKETS];
    int r = keeper_ask_sockets(core, s->id, fds, err);
    if (r < 0)
        return err_wrap(err, r, "cannot reach port %u of sandbox '%s'", port, s->id);
    int chosen = connect_either(fds, port, timeout_ms);
    if (chosen >= 0) {
        *ret_fd = fds[chosen];
        fds[chosen] = -1;
    }
    fd_close_all(fds, KEEPER_SOCKETS);
    if (chosen == -ECONNREFUSED)
        return err_fail(err, FAIL_PORT_CLOSED, "nothing listens on port %u of sandbox '%s'", port,
                        s->id);
    if (chosen == -ETIMEDOUT)
        return err_fail(err, FAIL_PORT_TIMEOUT,
                        "port %u of sandbox '%s' took no connection within %d ms", port, s->id,
                        timeout_ms);
    return chosen < 0 ? err_set(err, -chosen, "cannot reach port %u of sandbox '%s'", port, s->id)
                      : 0;
}

int port_forward(struct core *core, const char *sandbox, int client_fd, int inside_fd, int lease_fd,
                 struct err *err)
{
    struct broker_forward msg = { .type = BROKER_FORWARD };
    const int fds[] = { client_fd, inside_fd, lease_fd };
    (void)snprintf(msg.sandbox, sizeof(msg.sandbox), "%s", sandbox);
    int r = networks_send(core, &msg, sizeof(msg), fds, ARRAY_LEN(fds));
    fd_close_all(fds, ARRAY_LEN(fds));
    return r < 0 ? err_set(err, -r, "the broker does not take the connection") : 0;
}

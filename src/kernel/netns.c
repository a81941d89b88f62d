#include "kernel/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

#define LOG_MODULE "netns"

static int stream_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int netns_visit(int pidfd, int (*fn)(void *arg, struct err *err), void *arg, struct err *err)
{
    _cleanup_fd_ int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0)
        return err_set(err, errno, "cannot open our own network namespace");
    if (setns(pidfd, CLONE_NEWNET) < 0)
        return err_set(err, errno, "cannot visit the network namespace");
    int r = fn(arg, err);
    if (setns(home, CLONE_NEWNET) < 0) {
        log_error("cannot come back from a network namespace");
        abort();
    }
    return r;
}

static int make_sockets(void *arg, struct err *err)
{
    int *fds = arg;
    fds[NETNS_V4] = stream_socket(AF_INET);
    if (fds[NETNS_V4] < 0)
        return err_set(err, errno, "cannot make a socket in the network namespace");
    fds[NETNS_V6] = stream_socket(AF_INET6); /* -1 where there is none */
    return 0;
}

int netns_sockets(int pidfd, int ret_fds[NETNS_FAMILIES], struct err *err)
{
    return netns_visit(pidfd, make_sockets, ret_fds, err);
}

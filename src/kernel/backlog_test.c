/* Real connections in a network namespace of the test's own, where this kernel has what it takes. */
#include "kernel/backlog.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "kernel/cgroup.h"

#define LISTENERS 8192
#define ORDINARY (48 << 10) /* what a client may have sent before a slow server accepts it */

static int raise_loopback(void)
{
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM, 0);
    return ioctl(fd, SIOCSIFFLAGS, &lo);
}

static int listen_at(struct sockaddr_in *at)
{
    socklen_t n = sizeof(*at);
    int size = 8 << 20, fd = socket(AF_INET, SOCK_STREAM, 0);
    *at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    if (bind(fd, (struct sockaddr *)at, n) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)at, &n) < 0)
        return -1;
    return fd;
}

/* Connect, send as much as goes, and close. -1: nobody let it in. */
static long visit(const struct sockaddr_in *at, size_t most)
{
    static char block[65536];
    struct timeval patience = { 0, 200000 };
    size_t sent = 0;
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0)
        return -1;
    while (sent < most) {
        size_t n = most - sent < sizeof(block) ? most - sent : sizeof(block);
        ssize_t r = send(fd, block, n, MSG_DONTWAIT);
        if (r <= 0)
            break;
        sent += (size_t)r;
    }
    return (long)sent;
}

static int accept_one(int listener, long *sum)
{
    int waits = 0;
    _cleanup_fd_ int fd = accept(listener, NULL, NULL);
    if (fd < 0 || ioctl(fd, FIONREAD, &waits) < 0)
        return -1;
    *sum += waits;
    return 0;
}

static int visit_many(const struct sockaddr_in *at, size_t each)
{
    int n = 0;
    while (n <= BACKLOG_CONNECTIONS && visit(at, each) >= 0)
        n++;
    return n;
}

/* Which step failed. */
static int try_all(void)
{
    struct sockaddr_in at, other;
    long sum = 0;
    if (unshare(CLONE_NEWNET) < 0 || raise_loopback() < 0)
        return 1;
    int listener = listen_at(&at);
    if (listener < 0 || visit(&at, ORDINARY) != ORDINARY || accept_one(listener, &sum) < 0 ||
        sum != ORDINARY)
        return 2;
    if (visit_many(&at, 64 << 10) > BACKLOG_CONNECTIONS)
        return 3;
    _cleanup_fd_ int second = listen_at(&other);
    if (second < 0 || visit(&other, 1) >= 0) /* what the first has counts here, too */
        return 4;
    sum = 0;
    for (int i = 0; i < 1000; i++)
        if (accept_one(listener, &sum) < 0)
            return 5;
    if (sum > 4L * BACKLOG_CONNECTIONS * BACKLOG_BYTES_EACH)
        return 6;
    if (visit(&at, 1) != 1 || visit(&other, 1) != 1) /* accepted ones do not count */
        return 7;
    (void)close(listener); /* nor do those that end with their listener */
    return visit_many(&other, 1) < BACKLOG_CONNECTIONS - 8 ? 8 : 0;
}

/* A waiting connection may hold as much however many listeners its cell has. Which step failed. */
static int try_listeners(void)
{
    static char block[96 << 10];
    const struct rlimit files = { 2 * LISTENERS, 2 * LISTENERS };
    struct sockaddr_in at, other;
    long sum = 0;
    if (unshare(CLONE_NEWNET) < 0 || raise_loopback() < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0)
        return 11;
    int listener = listen_at(&at), client = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || connect(client, (struct sockaddr *)&at, sizeof(at)) < 0)
        return 12;
    for (int i = 0; i < LISTENERS; i++) {
        if (listen_at(&other) < 0)
            return 13;
        _cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fd, (struct sockaddr *)&other, sizeof(other));
    }
    if (send(client, block, sizeof(block), 0) != sizeof(block) || accept_one(listener, &sum) < 0)
        return 14;
    return sum == sizeof(block) ? 0 : 15;
}

static int in_child(const struct cgroup_host *group, int (*work)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (fd_write_file_at(cgroup_host_group(group), "cell/cgroup.procs", "0") < 0)
            _exit(100);
        _exit(work());
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(connections_that_nobody_accepts_are_bounded)
{
    char name[32];
    struct err err = ERR_INIT;
    struct cgroup_host *group = NULL;
    if (geteuid() != 0)
        check_skip("BPF is root's");
    (void)snprintf(name, sizeof(name), "backlog-test-%d", (int)getpid());
    CHECK_OK(cgroup_host_open(name, &group, &err));
    int r = backlog_bound(cgroup_host_group(group), &err);
    if (r == 0)
        r = backlog_bound(cgroup_host_group(group), &err); /* as each new keeper does */
    if (r == 0) {
        CHECK_OK(mkdirat(cgroup_host_group(group), "cell", 0755));
        r = in_child(group, try_all);
        if (r == 0)
            r = in_child(group, try_listeners);
    }
    (void)unlinkat(cgroup_host_group(group), "cell", AT_REMOVEDIR);
    WAIT_FOR(cgroup_host_remove(group) == 0);
    cgroup_host_free(group);
    if (r < 0)
        print_message("no bound on this kernel: %s (%s)\n", err.msg, strerror(err.code));
    else
        CHECK_EQ(r, 0);
}

/* A namespace of its own, with a process in it that tries things; the rest is the real kernel's. */
#include "kernel/steer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "kernel/netns.h"
#include "kernel/rtnl.h"

#define WAIT_MS 20000 /* far longer than anything here takes */

struct place {
    pid_t pid;
    int pidfd;
    int fds[STEER_FDS];
};

static _Noreturn void be_inside(int ready)
{
    struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    bool ok = unshare(CLONE_NEWNET) == 0;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    ok = ok && s >= 0 && ioctl(s, SIOCSIFFLAGS, &ifr) == 0;
    (void)!write(ready, ok ? "y" : "n", 1);
    for (;;)
        (void)pause();
}

/* A place that is steered; skips the test where this user may not make one. */
static struct place place_new(void)
{
    struct place p = { -1, -1, { -1, -1, -1, -1, -1, -1, -1 } };
    struct err err = ERR_INIT;
    int ready[2];
    char c = 'n';
    if (geteuid() != 0)
        check_skip("network namespaces and BPF are root's");
    CHECK_EQ(pipe(ready), 0);
    p.pid = fork();
    CHECK_OK(p.pid);
    if (p.pid == 0)
        be_inside(ready[1]);
    CHECK_EQ(read(ready[0], &c, 1), 1);
    fd_close_all(ready, 2);
    p.pidfd = (int)syscall(SYS_pidfd_open, p.pid, 0);
    int r = c == 'y' ? steer_make(p.pidfd, p.fds, &err) : -EPERM;
    if (r == -EPERM || r == -ENOSYS) {
        (void)kill(p.pid, SIGKILL);
        check_skip("this machine lets nobody do it");
    }
    if (r < 0)
        fail_msg("%s: %s", err.msg, strerror(-r));
    return p;
}

static void place_done(struct place *p)
{
    fd_close_all(p->fds, STEER_FDS);
    fd_close_all(&p->pidfd, 1);
    if (p->pid > 0) {
        (void)kill(p->pid, SIGKILL);
        (void)waitpid(p->pid, NULL, 0);
    }
}

/* ---- a client inside ---- */

struct client {
    struct sockaddr_storage to;
    socklen_t len;
    int type;
    int fd;
    int result;
};

static int dial(void *arg, struct err *err)
{
    struct client *c = arg;
    c->fd = socket(c->to.ss_family, c->type | SOCK_CLOEXEC, 0);
    CHECK_OK(c->fd);
    c->result = connect(c->fd, (const struct sockaddr *)&c->to, c->len) < 0 ? -errno : 0;
    return 0;
}

static struct client client(const struct place *p, const char *address, uint16_t port, int type)
{
    struct client c = { .type = type, .fd = -1 };
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
        memcpy(&c.to, &v4, sizeof(v4));
        c.len = sizeof(v4);
    } else {
        CHECK_EQ(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
        memcpy(&c.to, &v6, sizeof(v6));
        c.len = sizeof(v6);
    }
    CHECK_OK(netns_visit(p->pidfd, dial, &c, NULL));
    return c;
}

static void client_done(struct client *c)
{
    fd_close_all(&c->fd, 1);
}

/* Where the next connection wanted to go. */
static void check_accepted(const struct place *p, const char *address, uint16_t port)
{
    struct sockaddr_in6 to, want = { .sin6_family = AF_INET6 };
    socklen_t len = sizeof(to);
    CHECK(fd_wait(p->fds[STEER_TCP], POLLIN, WAIT_MS) > 0);
    _cleanup_fd_ int fd = accept4(p->fds[STEER_TCP], NULL, NULL, SOCK_CLOEXEC);
    CHECK_OK(fd);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&to, &len), 0);
    CHECK_EQ(inet_pton(AF_INET6, address, &want.sin6_addr), 1);
    CHECK_MEM(&to.sin6_addr, &want.sin6_addr, sizeof(to.sin6_addr));
    CHECK_EQ(ntohs(to.sin6_port), port);
}

TEST(a_connection_to_anywhere_comes_to_the_socket)
{
    _cleanup_(place_done) struct place p = place_new();
    _cleanup_(client_done) struct client a = client(&p, "8.8.8.8", 80, SOCK_STREAM);
    CHECK_EQ(a.result, 0);
    check_accepted(&p, "::ffff:8.8.8.8", 80);
    _cleanup_(client_done) struct client b = client(&p, "2001:4860::8", 65535, SOCK_STREAM);
    CHECK_EQ(b.result, 0);
    check_accepted(&p, "2001:4860::8", 65535);
    _cleanup_(client_done) struct client c = client(&p, "169.254.169.254", 80, SOCK_STREAM);
    CHECK_EQ(c.result, 0);
    check_accepted(&p, "::ffff:169.254.169.254", 80);
    _cleanup_(client_done) struct client d = client(&p, "::ffff:10.0.0.1", 22, SOCK_STREAM);
    CHECK_EQ(d.result, 0);
    check_accepted(&p, "::ffff:10.0.0.1", 22);
}

TEST(loopback_is_the_namespaces_own)
{
    _cleanup_(place_done) struct place p = place_new();
    static const char *const own[] = { "127.0.0.1", "127.8.8.8", "::1", RTNL_HERE_V4,
                                       RTNL_HERE_V6 };
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        _cleanup_(client_done) struct client c = client(&p, own[i], 80, SOCK_STREAM);
        CHECK_EQ(c.result, -ECONNREFUSED);
    }
}

TEST(questions_and_other_datagrams_go_their_ways)
{
    _cleanup_(place_done) struct place p = place_new();
    _cleanup_(client_done) struct client q = client(&p, "9.9.9.9", 53, SOCK_DGRAM);
    CHECK_EQ(send(q.fd, "q", 1, 0), 1);
    CHECK(fd_wait(p.fds[STEER_UDP], POLLIN, WAIT_MS) > 0);
    _cleanup_(client_done) struct client c = client(&p, "2001:4860::8", 443, SOCK_DGRAM);
    CHECK_EQ(send(c.fd, "x", 1, 0), 1);
    CHECK(fd_wait(p.fds[STEER_REST], POLLIN, WAIT_MS) > 0);
}

TEST(a_datagram_that_nobody_takes_is_refused)
{
    _cleanup_(place_done) struct place p = place_new();
    (void)close(take_fd(p.fds[STEER_REST]));
    _cleanup_(client_done) struct client c = client(&p, "9.9.9.9", 443, SOCK_DGRAM);
    char byte;
    CHECK_EQ(send(c.fd, "x", 1, 0), 1);
    CHECK(fd_wait(c.fd, POLLIN, WAIT_MS) & POLLERR);
    CHECK_EQ(recv(c.fd, &byte, 1, 0), -1);
    CHECK_EQ(errno, ECONNREFUSED);
}

TEST(without_its_holder_a_connection_is_refused)
{
    _cleanup_(place_done) struct place p = place_new();
    fd_close_all(p.fds, STEER_FDS);
    for (size_t i = 0; i < STEER_FDS; i++)
        p.fds[i] = -1;
    _cleanup_(client_done) struct client c = client(&p, "8.8.8.8", 80, SOCK_STREAM);
    CHECK_EQ(c.result, -ECONNREFUSED);
    /* and the next holder gets it */
    CHECK_OK(steer_make(p.pidfd, p.fds, NULL));
    _cleanup_(client_done) struct client d = client(&p, "8.8.8.8", 80, SOCK_STREAM);
    CHECK_EQ(d.result, 0);
    check_accepted(&p, "::ffff:8.8.8.8", 80);
}

TEST(sockets_alone_hold_nothing_without_the_program)
{
    _cleanup_(place_done) struct place p = place_new();
    (void)close(take_fd(p.fds[STEER_LINK]));
    _cleanup_(client_done) struct client c = client(&p, "8.8.8.8", 80, SOCK_STREAM);
    CHECK_EQ(c.result, -ECONNREFUSED);
}

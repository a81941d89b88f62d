/* Real sockets, where this kernel has what it takes. */
#include "kernel/netlinks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "kernel/cgroup.h"

#define CELL_UID 0x7ffe0000u

static int fds[2 * NETLINKS_MOST];

/* As many as there are to be had; how many. */
static int take(void)
{
    int n = 0;
    while (n < 2 * NETLINKS_MOST && (fds[n] = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)) >= 0)
        n++;
    return n;
}

/* The kernel frees a socket some milliseconds after it was closed. */
static int take_after_a_while(void)
{
    int n = 0;
    for (int i = 0; i < 500 && n < NETLINKS_MOST; i++) {
        const struct timespec moment = { 0, 10000000 };
        (void)nanosleep(&moment, NULL);
        for (int fd = 0; fd < n; fd++)
            (void)close(fds[fd]);
        n = take();
    }
    return n;
}

static int size_after(int fd, int option, int wanted)
{
    char text[8192] = "";
    int got = 0;
    socklen_t n = sizeof(got);
    memcpy(text, &wanted, sizeof(wanted));
    if (setsockopt(fd, SOL_SOCKET, option, &wanted, sizeof(wanted)) < 0 ||
        setsockopt(fd, SOL_SOCKET, option, text, sizeof(text)) < 0 || /* more than a program sees */
        getsockopt(fd, SOL_SOCKET, option, &got, &n) < 0)
        return -errno;
    return got;
}

static int try_sizes(void)
{
    static const int options[] = { SO_RCVBUF, SO_SNDBUF };
    int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), udp = socket(AF_INET, SOCK_DGRAM, 0);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (size_after(netlink, options[i], 8192) != 16384)
            return 10;
        if (size_after(netlink, options[i], 1 << 22) != NETLINKS_BUFFER ||
            size_after(netlink, options[i], -1) != NETLINKS_BUFFER)
            return 11;
        if (size_after(udp, options[i], 65536) != 131072)
            return 12;
    }
    (void)close(netlink);
    (void)close(udp);
    return 0;
}

/* Which step failed. */
static int try_all(void)
{
    struct rlimit files = { 4 * NETLINKS_MOST, 4 * NETLINKS_MOST };
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setresuid(CELL_UID, CELL_UID, CELL_UID) < 0)
        return 1;
    int r = try_sizes();
    if (r != 0)
        return r;
    int n = take_after_a_while();
    if (n != NETLINKS_MOST || errno != EMFILE)
        return 2;
    if (socket(AF_INET, SOCK_DGRAM, 0) < 0 || socket(AF_UNIX, SOCK_DGRAM, 0) < 0)
        return 3;
    for (int i = 0; i < 10; i++) { /* what was refused or closed counts no more */
        for (int fd = 0; fd < NETLINKS_MOST; fd++)
            (void)close(fds[fd]);
        if (take_after_a_while() != NETLINKS_MOST)
            return 4;
    }
    return 0;
}

static int in_child(int group_fd, const char *procs, uid_t uid, int (*fn)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (procs && fd_write_file_at(group_fd, procs, "0") < 0)
            _exit(100);
        if (uid && setresuid(uid, uid, uid) < 0)
            _exit(101);
        _exit(fn());
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int more_than_a_cell(void)
{
    struct rlimit files = { 4 * NETLINKS_MOST, 4 * NETLINKS_MOST };
    (void)setrlimit(RLIMIT_NOFILE, &files);
    return take() > NETLINKS_MOST ? 0 : 1;
}

TEST(netlink_sockets_of_a_cell_are_bounded)
{
    char name[32];
    struct err err = ERR_INIT;
    struct cgroup_host *group = NULL;
    struct rlimit files = { 4 * NETLINKS_MOST, 4 * NETLINKS_MOST };
    if (geteuid() != 0)
        check_skip("BPF is root's");
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)snprintf(name, sizeof(name), "netlinks-test-%d", (int)getpid());
    CHECK_OK(cgroup_host_open(name, &group, &err));
    int fd = cgroup_host_group(group), r = netlinks_bound(fd, &err), host = 0, other = 0;
    if (r == 0) {
        CHECK_OK(mkdirat(fd, "cell", 0755));
        host = in_child(fd, "cell/cgroup.procs", 0, more_than_a_cell);
        other = in_child(fd, NULL, CELL_UID, more_than_a_cell);
        r = in_child(fd, "cell/cgroup.procs", 0, try_all);
    }
    (void)unlinkat(fd, "cell", AT_REMOVEDIR);
    WAIT_FOR(cgroup_host_remove(group) == 0);
    cgroup_host_free(group);
    if (r < 0) {
        print_message("no bound on this kernel: %s (%s)\n", err.msg, strerror(err.code));
        return;
    }
    CHECK_EQ(r, 0);
    CHECK_EQ(host, 0);
    CHECK_EQ(other, 0);
}

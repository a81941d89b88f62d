/* Real sockets in real network namespaces, where this kernel has what a fence needs. */
#include "kernel/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "kernel/cgroup.h"

static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };

static struct sockaddr_un address(const char *dir, int type)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%d", dir, type);
    return sa;
}

static int listen_at(const char *dir, int type)
{
    struct sockaddr_un sa = address(dir, type);
    int fd = socket(AF_UNIX, type, 0);
    (void)unlink(sa.sun_path);
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    return type != SOCK_DGRAM && listen(fd, 8) < 0 ? -errno : fd;
}

/* 0, or the errno. */
static int connect_to(const char *dir, int type)
{
    struct sockaddr_un sa = address(dir, type);
    _cleanup_fd_ int fd = socket(AF_UNIX, type, 0);
    return connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? errno : 0;
}

static int send_to(const char *dir)
{
    struct sockaddr_un sa = address(dir, SOCK_DGRAM);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    return sendto(fd, "x", 1, 0, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? errno : 0;
}

/* Listen in one network namespace, connect from it and then from another. 0: the second
 * connection ended as `across` says. */
static int try_all(const char *dir, int across)
{
    if (unshare(CLONE_NEWNET) < 0)
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (listen_at(dir, types[i]) < 0)
            return 2;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (connect_to(dir, types[i]) != 0)
            return 3;
    if (send_to(dir) != 0)
        return 4;
    if (unshare(CLONE_NEWNET) < 0)
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (connect_to(dir, types[i]) != across)
            return 5;
    int pair[2]; /* sockets of one namespace, without a path */
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0 || send(pair[0], "x", 1, 0) != 1)
        return 6;
    return send_to(dir) != across ? 7 : 0;
}

static int in_child(const struct cgroup_host *group, const char *dir, int across)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (group && fd_write_file_at(cgroup_host_group(group), "cell/cgroup.procs", "0") < 0)
            _exit(100);
        _exit(try_all(dir, across));
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(sockets_do_not_lead_into_another_network_namespace)
{
    char name[32], dir[] = "/tmp/fence-XXXXXX";
    struct err err = ERR_INIT;
    struct cgroup_host *group = NULL;
    if (geteuid() != 0)
        check_skip("BPF is root's");
    (void)snprintf(name, sizeof(name), "fence-test-%d", (int)getpid());
    CHECK_OK(cgroup_host_open(name, &group, &err));
    int r = fence_raise(cgroup_host_group(group), &err);
    if (r == 0)
        r = fence_raise(cgroup_host_group(group), &err); /* as each new keeper does */
    if (r == 0) {
        CHECK(mkdtemp(dir));
        CHECK_OK(mkdirat(cgroup_host_group(group), "cell", 0755));
        int inside = in_child(group, dir, EPERM), outside = in_child(NULL, dir, 0);
        for (size_t i = 0; i < ARRAY_LEN(types); i++) {
            struct sockaddr_un sa = address(dir, types[i]);
            (void)unlink(sa.sun_path);
        }
        (void)rmdir(dir);
        r = inside ? inside : outside;
    }
    (void)unlinkat(cgroup_host_group(group), "cell", AT_REMOVEDIR);
    WAIT_FOR(cgroup_host_remove(group) == 0);
    cgroup_host_free(group);
    if (r < 0)
        print_message("no fence on this kernel: %s (%s)\n", err.msg, strerror(err.code));
    else
        CHECK_EQ(r, 0);
}

#include "kernel/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

static const struct seccomp_cookie cookie = { 0x1122334455667788, 0x99aabbccddeeff00 };

/* Run fn under the filter in a child; its return value is the child's exit code. */
static int under_filter(int (*fn)(void))
{
    struct sock_fprog *prog = NULL;
    struct err err = ERR_INIT;
    CHECK_OK(seccomp_compile(&cookie, &prog, &err));
    pid_t pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install(prog) < 0)
            _exit(200);
        _exit(fn());
    }
    free(prog);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int try_unshare(void)
{
    return unshare(CLONE_NEWUSER) < 0 ? errno : 0;
}

static int try_clone3(void)
{
    char args[88] = { 0 };
    return syscall(SYS_clone3, args, 8, 0, 0, 1L, 2L) < 0 ? errno : 0;
}

static int try_clone3_with_cookie(void)
{
    char args[88] = { 0 };
    /* Too small a size: the kernel's own answer, so the call got through. */
    return syscall(SYS_clone3, args, 8, 0, 0, cookie.a, cookie.b) < 0 ? errno : 0;
}

static int try_vsock(void)
{
    return socket(AF_VSOCK, SOCK_STREAM, 0) < 0 ? errno : 0;
}

static int try_protocol(int family, int type, int protocol)
{
    int fd = socket(family, type, protocol);
    return fd < 0 ? errno : close(fd);
}

static int try_sctp(void)
{
    return try_protocol(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
}

static int try_dccp(void)
{
    return try_protocol(AF_INET6, SOCK_DCCP, IPPROTO_DCCP);
}

static int try_usual_sockets(void)
{
    return try_protocol(AF_UNIX, SOCK_STREAM, 0) || try_protocol(AF_INET, SOCK_STREAM, 0) ||
           try_protocol(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP) ||
           try_protocol(AF_INET6, SOCK_STREAM, IPPROTO_TCP);
}

static int try_bpf(void)
{
    return syscall(SYS_bpf, 0, NULL, 0) < 0 ? errno : 0;
}

static int try_io_uring(void)
{
    return syscall(SYS_io_uring_setup, 1, NULL) < 0 ? errno : 0;
}

TEST(the_filter_refuses_what_leads_out)
{
    CHECK_EQ(under_filter(try_unshare), EPERM);
    CHECK_EQ(under_filter(try_bpf), EPERM);
    CHECK_EQ(under_filter(try_vsock), EAFNOSUPPORT);
    CHECK_EQ(under_filter(try_io_uring), ENOSYS);
}

TEST(the_filter_lets_only_the_usual_sockets_be_made)
{
    CHECK_EQ(under_filter(try_sctp), EPROTONOSUPPORT);
    CHECK_EQ(under_filter(try_dccp), EPERM);
    CHECK_EQ(under_filter(try_usual_sockets), 0);
}

TEST(clone3_is_for_whoever_knows_the_cookie)
{
    CHECK_EQ(under_filter(try_clone3), ENOSYS);
    CHECK_EQ(under_filter(try_clone3_with_cookie), EINVAL);
}

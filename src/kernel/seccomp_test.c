#include "kernel/seccomp.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/if_tun.h>
#include <linux/ioprio.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"

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

/* Numbers that no libseccomp of today names: the end of its table, a gap on x86-64, and a number
 * that no architecture of the common table has. */
static int try_unnamed(void)
{
    static const long numbers[] = { 600, 2000, 100000, 0x3fffffff, 0x40000001, 0x7fffffff };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (syscall(numbers[i], 0, 0, 0, 0, 0, 0) >= 0 || errno != ENOSYS)
            return 1 + (int)i;
    return 0;
}

static int try_gap(void)
{
    return syscall(400) < 0 ? errno : 0; /* no architecture with the common table has it */
}

static int try_first_named(void)
{
    char c;
    return syscall(SYS_read, -1, &c, 1) < 0 ? errno : 0;
}

static int try_last_refused(void)
{
    return syscall(SYS_quotactl_fd, 0, 0, 0, 0) < 0 ? errno : 0;
}

static struct sock_filter pass[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
static const struct sock_fprog pass_all = { 1, pass };

static int try_attach(long level, long option)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    return syscall(SYS_setsockopt, fd, level, option, &pass_all, sizeof(pass_all)) < 0 ? errno : 0;
}

static int try_socket_filter(void)
{
    return try_attach(SOL_SOCKET, SO_ATTACH_FILTER);
}

static int try_reuseport_filter(void)
{
    return try_attach(SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF);
}

/* The kernel reads the low half of an int: a high bit must not disguise an option. */
static int try_socket_filter_in_disguise(void)
{
    return try_attach(SOL_SOCKET | 1L << 32, SO_ATTACH_FILTER | 1L << 40);
}

static int try_other_options(void)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    return setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0 ||
           setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
           setsockopt(fd, IPPROTO_TCP, SO_ATTACH_FILTER /* TCP_ULP's neighbours */, &on, 0) == 0;
}

static int try_listener(void)
{
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                   &pass_all) < 0
               ? errno
               : 0;
}

static int try_own_filter(void)
{
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &pass_all) <
               0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &pass_all) < 0;
}

TEST(compiled_filters_are_for_processes_and_not_for_descriptors)
{
    CHECK_EQ(under_filter(try_socket_filter), ENOPROTOOPT);
    CHECK_EQ(under_filter(try_reuseport_filter), ENOPROTOOPT);
    CHECK_EQ(under_filter(try_socket_filter_in_disguise), ENOPROTOOPT);
    CHECK_EQ(under_filter(try_listener), EINVAL);
    CHECK_EQ(under_filter(try_other_options), 0);
    CHECK_EQ(under_filter(try_own_filter), 0);
}

TEST(a_call_that_libseccomp_cannot_name_answers_as_an_older_kernel)
{
    CHECK_EQ(under_filter(try_unnamed), 0);
    CHECK_EQ(under_filter(try_gap), ENOSYS);
}

TEST(a_call_that_has_a_name_is_judged_by_the_list)
{
    CHECK_EQ(under_filter(try_first_named), EBADF);
    CHECK_EQ(under_filter(try_last_refused), EPERM);
    CHECK_EQ(under_filter(try_unshare), EPERM);
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

#define ABOVE 0x100000000L /* the kernel does not look at this bit */

/* Count the calls on pid 1 of the test's machine that get through; none of them would change
 * anything there. */
static int try_pid_1(void)
{
    static const long calls[][5] = {
        { SYS_prlimit64, 1, RLIMIT_NOFILE },
        { SYS_sched_setaffinity, 1 },
        { SYS_sched_setattr, 1 },
        { SYS_sched_setparam, 1 },
        { SYS_sched_setscheduler, 1, -1 },
        { SYS_setpriority, PRIO_PROCESS, 1 },
        { SYS_setpriority, PRIO_PGRP, 1 },
        { SYS_setpriority, PRIO_USER, 12345 },
        { SYS_ioprio_set, IOPRIO_WHO_PROCESS, 1, -1 },
        { SYS_ioprio_set, IOPRIO_WHO_USER, 12345, -1 },
        { SYS_kill, 1, 999 },
        { SYS_tkill, 1, 999 },
        { SYS_tgkill, 1, 1, 999 },
        { SYS_rt_sigqueueinfo, 1, 999 },
        { SYS_rt_tgsigqueueinfo, 1, 1, 999 },
        { SYS_pidfd_open, 1 },
        { SYS_ioctl, -1, TIOCSTI },
    };
    int through = 0;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        for (int k = 0; k < 8; k++) {
            const long *c = calls[i];
            long r = syscall(c[0], c[1] | (k & 1 ? ABOVE : 0), c[2] | (k & 2 ? ABOVE : 0),
                             c[3] | (k & 4 ? ABOVE : 0), c[4]);
            through += r >= 0 || errno != EPERM;
        }
    return through;
}

/* The same calls on oneself, by each name, and on others, must pass. */
static int try_others(void)
{
    struct rlimit lim;
    pid_t self = getpid();
    return prlimit(0, RLIMIT_NOFILE, NULL, &lim) < 0 ||
           prlimit(self, RLIMIT_NOFILE, NULL, &lim) < 0 || setpriority(PRIO_PROCESS, 0, 19) < 0 ||
           setpriority(PRIO_PROCESS, (id_t)self, 19) < 0 || kill(self, 0) < 0 ||
           syscall(SYS_kill, 1, 0) < 0 || syscall(SYS_tgkill, self, self, 0) < 0;
}

TEST(nobody_touches_pid_1)
{
    CHECK_EQ(under_filter(try_pid_1), 0);
    CHECK_EQ(under_filter(try_others), 0);
}

TEST(clone3_is_for_whoever_knows_the_cookie)
{
    CHECK_EQ(under_filter(try_clone3), ENOSYS);
    CHECK_EQ(under_filter(try_clone3_with_cookie), EINVAL);
}

/* Use a descriptor that is not open: without a filter the kernel says EBADF, and nothing
 * happens. The kernel reads the lower 32 bits of a request, and so must the filter. */
static int all_answer(const unsigned long *requests, size_t n, int error)
{
    char args[4096] = { 0 };
    for (size_t i = 0; i < n; i++)
        for (unsigned long high = 0; high < 2; high++)
            if (syscall(SYS_ioctl, -1, requests[i] | high << 32, args) == 0 || errno != error)
                return (int)i + 1;
    return 0;
}

static int try_refused_ioctls(void)
{
    static const unsigned long refused[] = {
        BTRFS_IOC_SUBVOL_CREATE,
        BTRFS_IOC_SUBVOL_CREATE_V2,
        BTRFS_IOC_SNAP_CREATE,
        BTRFS_IOC_SNAP_CREATE_V2,
        BTRFS_IOC_SNAP_DESTROY,
        BTRFS_IOC_SNAP_DESTROY_V2,
        BTRFS_IOC_SUBVOL_SETFLAGS,
        BTRFS_IOC_TREE_SEARCH,
        BTRFS_IOC_INO_LOOKUP,
        BTRFS_IOC_FS_INFO,
        BTRFS_IOC_SPACE_INFO,
        BTRFS_IOC_QGROUP_LIMIT,
        BTRFS_IOC_SET_RECEIVED_SUBVOL,
        BTRFS_IOC_DEFRAG,
        FIFREEZE,
        FITRIM,
        FS_IOC_FSSETXATTR,
        FS_IOC_FIEMAP,
        FS_IOC_GETFSLABEL,
        BLKGETSIZE64,
        TUNSETIFF,
        SIOCDEVPRIVATE,
        SIOCPROTOPRIVATE,
        0,
    };
    return all_answer(refused, ARRAY_LEN(refused), ENOTTY);
}

static int try_forbidden_ioctls(void)
{
    static const unsigned long forbidden[] = { TIOCSTI, TIOCLINUX, TIOCSETD, SIOCGSKNS };
    return all_answer(forbidden, ARRAY_LEN(forbidden), EPERM);
}

static int try_allowed_ioctls(void)
{
    static const unsigned long allowed[] = {
        TCGETS,        TIOCGWINSZ,  TIOCSCTTY,       TIOCGPTPEER,     FIONREAD,      FIONBIO,
        FIOCLEX,       SIOCGIFCONF, SIOCGIFHWADDR,   SIOCOUTQ,        FICLONE,       FICLONERANGE,
        FIDEDUPERANGE, FIGETBSZ,    FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, NS_GET_USERNS,
    };
    return all_answer(allowed, ARRAY_LEN(allowed), EBADF);
}

TEST(the_filter_lets_only_the_usual_ioctls_pass)
{
    CHECK_EQ(under_filter(try_refused_ioctls), 0);
    CHECK_EQ(under_filter(try_forbidden_ioctls), 0);
    CHECK_EQ(under_filter(try_allowed_ioctls), 0);
}

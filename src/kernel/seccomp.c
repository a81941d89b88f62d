#include "kernel/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "confine/unnamed.h"
#include "kernel/seccomp_bpf.h"
#include "kernel/seccomp_guard.h"
#include "kernel/seccomp_ioctl.h"

/* libseccomp's comparison macros leave the second operand out, which clang remarks on. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

DEFINE_FREEP(scmp_filter_ctx, seccomp_release)

/* clang-format off */ /* lists to be read by group, not a name a line */

/* Allowed with any arguments. Calls that this libseccomp does not know yet are passed over: they
 * answer ENOSYS (confine/unnamed.h). */
static const char *const allowed[] = {
    /* files and directories */
    "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup",
    "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod",
    "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr",
    "flock", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futimesat",
    "getcwd", "getdents", "getdents64", "getxattr", "inotify_add_watch", "inotify_init",
    "inotify_init1", "inotify_rm_watch", "lchown", "lgetxattr", "link", "linkat", "listxattr",
    "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "mknod",
    "mknodat", "newfstatat", "open", "openat", "openat2", "pread64", "preadv", "preadv2",
    "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv",
    "removexattr", "rename", "renameat", "renameat2", "rmdir", "sendfile", "setxattr", "splice",
    "stat", "statfs", "statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs", "tee",
    "truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes", "vmsplice", "write",
    "writev", "chroot", "name_to_handle_at", "fanotify_mark", "cachestat", "fchmodat2",
    "statmount", "listmount", "getxattrat", "setxattrat", "listxattrat", "removexattrat",
    /* memory */
    "brk", "get_mempolicy", "madvise", "mbind", "membarrier", "memfd_create", "memfd_secret",
    "mincore", "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal", "msync",
    "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect",
    "process_madvise", "process_mrelease", "remap_file_pages", "set_mempolicy",
    "set_mempolicy_home_node", "map_shadow_stack",
    /* processes, threads, identities, limits */
    "alarm", "arch_prctl", "capget", "capset", "execve", "execveat", "exit", "exit_group", "fork",
    "futex", "futex_waitv", "futex_wake", "futex_wait", "futex_requeue", "get_robust_list",
    "get_thread_area", "getcpu", "getegid", "geteuid", "getgid", "getgroups", "getpgid",
    "getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresuid", "getrlimit",
    "getrusage", "getsid", "gettid", "getuid", "ioprio_get", "ioprio_set", "kill",
    "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "pause",
    "pidfd_getfd", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64", "ptrace", "rseq",
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr",
    "sched_setparam", "sched_setscheduler", "sched_yield", "seccomp", "set_robust_list",
    "set_thread_area", "set_tid_address", "setfsgid", "setfsuid", "setgid", "setgroups", "setpgid",
    "setpriority", "setregid", "setresgid", "setresuid", "setreuid", "setrlimit", "setsid",
    "setuid", "sigaltstack", "tgkill", "time", "times", "tkill", "vfork", "wait4", "waitid",
    "process_vm_readv",
    /* clocks and timers; setting a clock is not among them */
    "clock_getres", "clock_gettime", "clock_nanosleep", "getitimer", "gettimeofday", "nanosleep",
    "setitimer", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
    "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
    /* events, pipes, queues, shared memory */
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2",
    "epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "io_cancel", "io_destroy",
    "io_getevents", "io_pgetevents", "io_setup", "io_submit", "mq_getsetattr", "mq_notify",
    "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink", "msgctl", "msgget", "msgrcv",
    "msgsnd", "pipe", "pipe2", "poll", "ppoll", "pselect6", "select", "semctl", "semget", "semop",
    "semtimedop", "shmat", "shmctl", "shmdt", "shmget", "signalfd", "signalfd4",
    /* sockets; making one is ruled below */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    /* the system, read only; the kernel checks the capability for the others */
    "getrandom", "restart_syscall", "sysinfo", "uname", "sethostname", "setdomainname",
};

/* Programs probe for these and have another way. */
static const char *const unknown[] = {
    "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd",
    "lsm_get_self_attr", "lsm_list_modules", "lsm_set_self_attr", "rseq_slice_yield",
};

/* clang-format on */

/* A new namespace of any kind, and CLONE_NEWTIME, which shares a bit with the exit signal in
 * clone(2) and so cannot be asked for there. */
#define CLONE_NEW_ANY                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
     CLONE_NEWNET)

/* Address families that have no business leaving, or that reach the kernel's odd corners, are
 * left out: vsock, packet, alg, xdp, tipc, rds, bluetooth, ... So are the internet's rarer
 * protocols, whose modules a stock kernel loads for whoever asks: sctp, dccp, udplite, mptcp. */
static const int internet[] = { AF_INET, AF_INET6 };
static const int protocols[] = { 0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6 };

static int allow_internet(scmp_filter_ctx ctx, int family)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(protocols); i++)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                             SCMP_A0(SCMP_CMP_EQ, (uint64_t)family),
                             SCMP_A2(SCMP_CMP_EQ, (uint64_t)protocols[i]));
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                             SCMP_A0(SCMP_CMP_EQ, (uint64_t)family),
                             SCMP_A2(SCMP_CMP_GT, IPPROTO_ICMPV6));
    return r;
}

/* The others say what a kernel without them would, so that programs go on without: sudo, say,
 * without the audit system. */
static int refuse_sockets(scmp_filter_ctx ctx)
{
    int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                             SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, NETLINK_ROUTE));
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                             SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
    for (int f = 0; r == 0 && f < AF_NETLINK; f++)
        if (f != AF_UNIX && f != AF_INET && f != AF_INET6)
            r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                 SCMP_A0(SCMP_CMP_EQ, (uint64_t)f));
    return r;
}

static int add(scmp_filter_ctx ctx, uint32_t action, const char *name)
{
    int nr = seccomp_syscall_resolve_name(name);
    if (nr == __NR_SCMP_ERROR || nr < 0) /* unknown here, or another architecture's */
        return 0;
    int r = seccomp_rule_add(ctx, action, nr, 0);
    return r == -EEXIST ? 0 : r;
}

static int add_argument_rules(scmp_filter_ctx ctx, const struct seccomp_cookie *cookie)
{
    int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                             SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEW_ANY, 0));
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone3), 2,
                             SCMP_A4(SCMP_CMP_EQ, cookie->a), SCMP_A5(SCMP_CMP_EQ, cookie->b));
    /* Not EPERM: the C library falls back to clone on ENOSYS only. */
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 1,
                             SCMP_A4(SCMP_CMP_NE, cookie->a));
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 2,
                             SCMP_A4(SCMP_CMP_EQ, cookie->a), SCMP_A5(SCMP_CMP_NE, cookie->b));
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                             SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(internet); i++)
        r = allow_internet(ctx, internet[i]);
    /* Interfaces and routes are read through this one; every other netlink protocol is shut. */
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                             SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE));
    if (r == 0)
        r = refuse_sockets(ctx);
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1,
                             SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
    /* The harmless personalities: linux, and asking for the present one. */
    static const uint32_t personas[] = { 0x0, 0x0008, 0x20000, 0x20008, 0xffffffff };
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(personas); i++)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1,
                             SCMP_A0(SCMP_CMP_EQ, personas[i]));
    return r;
}

static int build(scmp_filter_ctx ctx, const struct seccomp_cookie *cookie)
{
    int r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    if (r == 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list */
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(allowed); i++)
        r = add(ctx, SCMP_ACT_ALLOW, allowed[i]);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(unknown); i++)
        r = add(ctx, SCMP_ACT_ERRNO(ENOSYS), unknown[i]);
    if (r == 0)
        r = add_argument_rules(ctx, cookie);
    return r;
}

/* Put the exported program in fd behind the instructions that libseccomp cannot express. */
static int put_behind_prelude(int fd, size_t size, struct sock_fprog **ret_prog, struct err *err)
{
    struct sock_filter
        prelude[UNNAMED_MAX + SECCOMP_GUARD_MAX + SECCOMP_IOCTL_MAX + SECCOMP_BPF_MAX];
    size_t n = unnamed_rules(prelude);
    n += seccomp_guard(prelude + n);
    n += seccomp_bpf_rules(prelude + n);
    n += seccomp_ioctl_rules(prelude + n);
    size_t total = n + size / sizeof(prelude[0]);
    struct sock_fprog *prog =
        total > BPF_MAXINSNS ? NULL : malloc(sizeof(*prog) + total * sizeof(prelude[0]));
    if (!prog)
        return err_set(err, ENOMEM, "cannot allocate the seccomp filter");
    prog->len = (unsigned short)total;
    prog->filter = (struct sock_filter *)(prog + 1);
    memcpy(prog->filter, prelude, n * sizeof(prelude[0]));
    int r = fd_read_full(fd, prog->filter + n, size);
    if (r < 0) {
        free(prog);
        return err_set(err, -r, "cannot read the seccomp filter");
    }
    *ret_prog = prog;
    return 0;
}

int seccomp_compile(const struct seccomp_cookie *cookie, struct sock_fprog **ret_prog,
                    struct err *err)
{
    _cleanup_(seccomp_releasep) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!ctx)
        return err_set(err, ENOMEM, "cannot start a seccomp filter");
    int r = build(ctx, cookie);
    if (r < 0)
        return err_set(err, -r, "cannot build the seccomp filter");

    _cleanup_fd_ int fd = memfd_create("seccomp", MFD_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot make a memory file");
    r = seccomp_export_bpf(ctx, fd);
    struct stat st;
    if (r < 0 || fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_set(err, r < 0 ? -r : errno, "cannot export the seccomp filter");
    return put_behind_prelude(fd, (size_t)st.st_size, ret_prog, err);
}

int seccomp_install(const struct sock_fprog *prog)
{
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, prog) < 0 ? -errno : 0;
}

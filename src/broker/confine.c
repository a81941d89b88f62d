#include "broker/confine.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sanitized.h"
#include "confine/calls.h"
#include "confine/paths.h"
#include "confine/rights.h"

#define LOG_MODULE "broker"
#define EMPTY_NAME "empty"
#define EMPTY_MODE 0555
#define FILES_WANTED 131072 /* two a proxied connection, of every kind at once */

/* Calls of an event loop, its sockets and OpenSSL. None opens a path, runs a program or makes a
 * process. */
static const char *const calls[] = {
    /* bytes and descriptors */
    "read",
    "readv",
    "pread64",
    "write",
    "writev",
    "close",
    "close_range",
    "fcntl",
    "dup3",
    "lseek",
    "fstat",
    "newfstatat",
    "ftruncate",
    "ioctl",
    "memfd_create",
    "pipe2",
    "splice",
    /* sockets; getifaddrs asks a netlink one */
    "socket",
    "socketpair",
    "bind",
    "listen",
    "connect",
    "accept",
    "accept4",
    "getsockname",
    "getpeername",
    "getsockopt",
    "setsockopt",
    "shutdown",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    /* waiting */
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "timerfd_create",
    "timerfd_settime",
    "eventfd2",
    "restart_syscall",
    /* memory */
    "brk",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "futex",
    /* time, random bytes, its own ids and limits */
    "clock_gettime",
    "clock_getres",
    "clock_nanosleep",
    "gettimeofday",
    "time",
    "getrandom",
    "getpid",
    "gettid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getrusage",
    "prlimit64",
    "sysinfo",
    "sched_yield",
    "sched_getaffinity",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigaltstack",
    "tgkill",
    "wait4",
    "exit",
    "exit_group",
};

static int give_up_calls(struct err *err)
{
    int r = paths_confine(NULL, 0, true, err); /* its descriptors are open already */
    if (r > 0)
        log_info("no Landlock in this kernel: only the empty root keeps the broker from files");
    return r < 0 ? r : calls_allow(calls, ARRAY_LEN(calls), err);
}

int confine_enter(const char *run_dir, uid_t uid, gid_t gid, struct err *err)
{
    struct rlimit files = { FILES_WANTED, FILES_WANTED }, none = { 0, 0 }, now;
    bool known = getrlimit(RLIMIT_NOFILE, &now) == 0;
    if (known && now.rlim_max > files.rlim_max)
        files.rlim_max = now.rlim_max;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 && known) { /* root in a container, perhaps */
        now.rlim_cur = now.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &now);
    }
    (void)setrlimit(RLIMIT_CORE, &none);

#if !SANITIZED_ADDRESS /* whose reports are files */
    if (chdir(run_dir) < 0 || (mkdir(EMPTY_NAME, EMPTY_MODE) < 0 && errno != EEXIST) ||
        chroot(EMPTY_NAME) < 0 || chdir("/") < 0)
        return err_set(err, errno, "cannot make '%s/" EMPTY_NAME "' the broker's root", run_dir);
#endif
    int r = rights_bound(NULL, 0, err);
    if (r >= 0)
        r = rights_become(uid, gid, err);
    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(err, errno, "cannot set no_new_privs");
#if !SANITIZED_ADDRESS
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the leak checker attaches to its own process */
#endif
    return give_up_calls(err);
}

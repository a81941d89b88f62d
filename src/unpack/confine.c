#include "unpack/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sanitized.h"
#include "confine/calls.h"
#include "confine/rights.h"
#include "kernel/mount.h"

#define MEMORY_MAX (1024ull * 1024 * 1024) /* an xz dictionary can ask for 4 GiB */
#define FILES_MAX 8192                     /* a directory's removal holds one a level */
#define NOBODY 65534u

/* CAP_SYS_ADMIN sets and shows trusted.*: the marks of overlayfs. The filter leaves it nothing else. */
static const int fill_caps[] = { CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,
                                 CAP_FSETID, CAP_SETFCAP,      CAP_SYS_ADMIN };
static const int read_caps[] = { CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN };

static int change_root(enum confine_to to, int dir_fd, struct err *err)
{
    _cleanup_fd_ int root = -1;
    static const struct mount_option empty[] = { { "size", "4k" }, { "mode", "0555" } };
    int r = to == CONFINE_NOTHING
                ? mount_new("tmpfs", empty, ARRAY_LEN(empty), 0, &root, err)
                : mount_clone(dir_fd, "", &root, err); /* in the namespace it belongs to */
    if (r < 0)
        return r;
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_set(err, errno, "cannot leave the host's namespaces");
    r = mount_place_at(root, AT_FDCWD, "/proc", err); /* a directory every host has */
    if (r < 0)
        return r;
    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return err_set(err, errno, "cannot change the root");
    return 0;
}

static int drop(enum confine_to to, struct err *err)
{
    struct rlimit files = { FILES_MAX, FILES_MAX };
    (void)setrlimit(RLIMIT_NOFILE, &files);
#if !SANITIZED /* which maps terabytes of shadow */
    struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
    (void)setrlimit(RLIMIT_AS, &memory);
#endif
    const int *caps = to == CONFINE_READ ? read_caps : fill_caps;
    size_t n = to == CONFINE_READ ? ARRAY_LEN(read_caps) : ARRAY_LEN(fill_caps);
    n -= to == CONFINE_FILL; /* the last one is for those marks */
    if (to == CONFINE_NOTHING) {
        n = 0;
        int r = rights_become(NOBODY, NOBODY, err);
        if (r < 0)
            return r;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(err, errno, "cannot set no_new_privs");
    return rights_hold(caps, n, err);
}

static const char *const any_calls[] = {
    "read",
    "pread64",
    "readv",
    "write",
    "writev",
    "close",
    "lseek",
    "fstat",
    "brk",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "futex",
    "getrandom",
    "exit",
    "exit_group",
    "rt_sigreturn",
    "poll",
    "fcntl",
    "clock_gettime",
    "getpid",
    "gettimeofday",
    "prlimit64",
    "sched_getaffinity",
    "restart_syscall",
    "newfstatat", /* glibc's fstat */
    "sendto",     /* fd_write_full tries it first */
};
static const char *const read_calls[] = {
    "openat",     "openat2",  "statx",     "getdents64", "readlinkat", "fgetxattr",
    "flistxattr", "getxattr", "lgetxattr", "llistxattr", "listxattr",
};
static const char *const fill_calls[] = {
    "openat",   "openat2",  "statx",     "pwrite64",  "getdents64", "mkdirat",
    "unlinkat", "linkat",   "symlinkat", "mknodat",   "fchown",     "fchownat",
    "fchmod",   "fchmodat", "utimensat", "fsetxattr", "ftruncate",  "fallocate",
};

static int filter(enum confine_to to, struct err *err)
{
    const char *calls[ARRAY_LEN(any_calls) + ARRAY_LEN(read_calls) + ARRAY_LEN(fill_calls)];
    bool reads = to == CONFINE_READ, fills = to == CONFINE_FILL || to == CONFINE_LAY;
    size_t n = ARRAY_LEN(any_calls);
    memcpy(calls, any_calls, sizeof(any_calls));
    for (size_t i = 0; reads && i < ARRAY_LEN(read_calls); i++)
        calls[n++] = read_calls[i];
    for (size_t i = 0; fills && i < ARRAY_LEN(fill_calls); i++)
        calls[n++] = fill_calls[i];
    return calls_allow(calls, n, err);
}

int confine(enum confine_to to, int dir_fd, struct err *err)
{
    int r = change_root(to, dir_fd, err);
    if (r == 0)
        r = drop(to, err);
    return r < 0 ? r : filter(to, err);
}

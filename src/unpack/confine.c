#include "unpack/confine.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sanitized.h"
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
        if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
            return err_set(err, errno, "cannot become nobody");
    }
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { 0 };
    for (size_t i = 0; i < n; i++) {
        data[caps[i] / 32].permitted |= 1u << (caps[i] % 32);
        data[caps[i] / 32].effective |= 1u << (caps[i] % 32);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &head, data) < 0)
        return err_set(err, errno, "cannot drop capabilities");
    return 0;
}

#if SANITIZED
static int filter(enum confine_to to, struct err *err)
{
    return 0; /* its runtime makes calls of its own */
}
#else
static const int any_calls[] = {
    SCMP_SYS(read),
    SCMP_SYS(pread64),
    SCMP_SYS(readv),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(close),
    SCMP_SYS(lseek),
    SCMP_SYS(fstat),
    SCMP_SYS(brk),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mprotect),
    SCMP_SYS(madvise),
    SCMP_SYS(futex),
    SCMP_SYS(getrandom),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(poll),
    SCMP_SYS(fcntl),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(getpid),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(prlimit64),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(newfstatat), /* glibc's fstat */
    SCMP_SYS(sendto),     /* fd_write_full tries it first */
};
static const int read_calls[] = {
    SCMP_SYS(openat),     SCMP_SYS(openat2),    SCMP_SYS(statx),      SCMP_SYS(getdents64),
    SCMP_SYS(readlinkat), SCMP_SYS(fgetxattr),  SCMP_SYS(flistxattr), SCMP_SYS(getxattr),
    SCMP_SYS(lgetxattr),  SCMP_SYS(llistxattr), SCMP_SYS(listxattr),
};
static const int fill_calls[] = {
    SCMP_SYS(openat),     SCMP_SYS(openat2),   SCMP_SYS(statx),     SCMP_SYS(pwrite64),
    SCMP_SYS(getdents64), SCMP_SYS(mkdirat),   SCMP_SYS(unlinkat),  SCMP_SYS(linkat),
    SCMP_SYS(symlinkat),  SCMP_SYS(mknodat),   SCMP_SYS(fchown),    SCMP_SYS(fchownat),
    SCMP_SYS(fchmod),     SCMP_SYS(fchmodat),  SCMP_SYS(utimensat), SCMP_SYS(fsetxattr),
    SCMP_SYS(ftruncate),  SCMP_SYS(fallocate),
};

static int allow(scmp_filter_ctx ctx, const int *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0) < 0)
            return -EINVAL;
    return 0;
}

static int filter(enum confine_to to, struct err *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int r = ctx ? allow(ctx, any_calls, ARRAY_LEN(any_calls)) : -ENOMEM;
    if (r == 0 && to == CONFINE_READ)
        r = allow(ctx, read_calls, ARRAY_LEN(read_calls));
    if (r == 0 && (to == CONFINE_FILL || to == CONFINE_LAY))
        r = allow(ctx, fill_calls, ARRAY_LEN(fill_calls));
    if (r == 0)
        r = seccomp_load(ctx);
    if (ctx)
        seccomp_release(ctx);
    return r < 0 ? err_set(err, -r, "cannot filter system calls") : 0;
}
#endif

int confine(enum confine_to to, int dir_fd, struct err *err)
{
    int r = change_root(to, dir_fd, err);
    if (r == 0)
        r = drop(to, err);
    return r < 0 ? r : filter(to, err);
}

/* The inside of a cell, built by its first process. Runs between clone and exec in a process of
 * its own (no memory is shared with the keeper), so it may use what it likes and reports a whole
 * struct err. Order matters: proc can be mounted in a user namespace only while the host's is still
 * in view; the capabilities go last. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/ns_boot.h"
#include "cell/ns_private.h"
#include "cell/ns_show.h"
#include "cell/ns_size.h"
#include "cell/ns_time.h"
#include "kernel/mount.h"
#include "kernel/seccomp_reflink.h"

#define FS_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define FIRST_FREE_FD 3
#define U64_TEXT_MAX 21 /* 20 digits and the NUL */
#define ARG_SIZE 16
#define NS_TERMINALS_MAX "256" /* of one cell; all of the host's are in one table of the kernel's */

/* What root inside keeps: enough to own its files, switch users and install packages. Tighter
 * than the container engines' default by MKNOD and NET_RAW. */
static const int kept_caps[] = {
    CAP_CHOWN,  CAP_DAC_OVERRIDE,     CAP_FSETID,     CAP_FOWNER,
    CAP_SETGID, CAP_SETUID,           CAP_SETFCAP,    CAP_SETPCAP,
    CAP_KILL,   CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_AUDIT_WRITE,
};

/* The filesystems of the inside, made while the keeper makes the root they will be put on. */
struct parts {
    int dev, proc, sys, pts, shm, mqueue;
};

static int make_parts(const struct ns_spec *spec, struct parts *p, struct err *err)
{
    char shm_size[U64_TEXT_MAX];
    (void)snprintf(shm_size, sizeof(shm_size), "%" PRIu64, spec->shm_bytes);

    static const struct mount_option pts[] = {
        { "ptmxmode", "0666" }, { "mode", "0620" }, { "gid", "5" }, { "max", NS_TERMINALS_MAX }
    };
    const struct mount_option shm[] = { { "mode", "1777" }, { "size", shm_size } };
    int r = mount_clone(AT_FDCWD, "dev", &p->dev, err);
    if (r == 0)
        r = mount_new("proc", NULL, 0, FS_FLAGS, &p->proc, err);
    if (r == 0)
        r = mount_clone(AT_FDCWD, NS_SHOW_DIR "/" NS_SHOW_SYS, &p->sys, err);
    if (r == 0)
        r = mount_new("devpts", pts, ARRAY_LEN(pts), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &p->pts,
                      err);
    if (r == 0)
        r = mount_new("tmpfs", shm, ARRAY_LEN(shm), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &p->shm,
                      err);
    if (r == 0)
        r = mount_new("mqueue", NULL, 0, FS_FLAGS, &p->mqueue, err);
    return r;
}

/* A directory of the image's to mount on; made in the sandbox's own layer if it is missing. */
static int place(int root, int mount, const char *path, struct err *err)
{
    int r = mount_place_at(mount, root, path, err);
    if (r != -ENOENT)
        return r;
    if (mkdirat(root, path, 0755) < 0)
        return err_set(err, errno, "cannot make '/%s'", path);
    return mount_place_at(mount, root, path, err);
}

static int place_parts(int root, const struct parts *p, struct err *err)
{
    int r = place(root, p->dev, "dev", err);
    if (r == 0)
        r = place(root, p->proc, "proc", err);
    if (r == 0)
        r = place(root, p->sys, "sys", err);
    return r;
}

/* Itself again, read-only. */
static int seal(const char *path, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r = mount_clone(AT_FDCWD, path, &fd, err);
    if (r == 0)
        r = mount_set_flags(fd, FS_FLAGS | MOUNT_ATTR_RDONLY, err);
    return r < 0 ? r : mount_place_at(fd, AT_FDCWD, path, err);
}

/* The masks lie on a filesystem that the kernel fills: no name there is the image's to choose. Nearly all are put by a
 * single call: creation spends more time here than anywhere else. */
static int mask_all(const struct ns_host *h, struct err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < h->nmasks; i++) {
        const struct ns_mask *m = &h->masks[i];
        r = m->kind == NS_READONLY ? seal(m->path, err) : mount_bind(m->over, m->path, err);
    }
    return r;
}

/* The cell's own files over the kernel's, which are the same in every cell. */
static int show_boot(const struct ns_spec *spec, struct err *err)
{
    char path[NS_PATH_SIZE];
    (void)snprintf(path, sizeof(path), NS_BOOT_SHOWN "/%s", spec->id);
    return mount_bind(path, &NS_BOOT_PATH[1], err);
}

/* From the writable mount: the keeper rewrites these through the cell (ns_size.h). */
static int show_size(const struct ns_spec *spec, struct err *err)
{
    static const struct {
        const char *suffix, *at;
    } files[] = {
        { NS_MEMINFO_SUFFIX, &NS_MEMINFO_PATH[1] },
        { NS_CPUINFO_SUFFIX, &NS_CPUINFO_PATH[1] },
        { NS_STAT_SUFFIX, &NS_STAT_PATH[1] },
        { NS_CGROUP_SUFFIX, NS_OWN_SYS "/fs/cgroup" },
        { NS_ONLINE_SUFFIX, NS_OWN_SYS "/devices/system/cpu/online" },
    };
    char path[NS_PATH_SIZE];
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++) {
        (void)snprintf(path, sizeof(path), NS_BOOT_DIR "/%s%s", spec->id, files[i].suffix);
        r = mount_bind(path, files[i].at, err);
    }
    return r;
}

static int loopback_up(struct err *err)
{
    _cleanup_fd_ int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &ifr) < 0)
        return err_set(err, errno, "cannot bring loopback up");
    return 0;
}

/* Nothing can be mounted on a tree that is not attached (before Linux 6.15), so each part first hangs
 * in a directory of the shared directory, our working directory; it is moved from there with all that is
 * on it. */
static int hang(int mount, const char *hook, struct err *err)
{
    return mount_place_at(mount, AT_FDCWD, hook, err);
}

/* All that needs no root yet, done while the keeper makes it. */
static int assemble(const struct ns_host *h, const struct ns_spec *spec, const struct parts *p,
                    struct err *err)
{
    int r = hang(p->proc, "proc", err);
    if (r == 0)
        r = mask_all(h, err);
    if (r == 0)
        r = show_boot(spec, err);
    if (r == 0)
        r = hang(p->sys, NS_OWN_SYS, err);
    if (r == 0)
        r = show_size(spec, err);
    if (r == 0)
        r = hang(p->dev, "own-dev", err);
    if (r == 0)
        r = mount_place_at(p->pts, p->dev, "pts", err);
    if (r == 0)
        r = mount_place_at(p->shm, p->dev, "shm", err);
    if (r == 0)
        r = mount_place_at(p->mqueue, p->dev, "mqueue", err);
    return r;
}

static int enter_root(const struct parts *parts, int root, struct err *err)
{
    int r = hang(root, "root", err); /* out of sight after the pivot */
    if (r == 0)
        r = place_parts(root, parts, err);
    if (r < 0)
        return r;
    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return err_set(err, errno, "cannot change the root");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_set(err, errno, "cannot leave the old root");
    return 0;
}

/* Wait for the keeper's next word, and the descriptors with it; returns how many. */
static size_t await(int go_fd, char expected, struct ns_word *ret_word, int fds[NS_LATE_MAX])
{
    size_t nfds = 0;
    ssize_t n = fd_recv_msg(go_fd, ret_word, sizeof(*ret_word), fds, NS_LATE_MAX, &nfds);
    if (n != (ssize_t)sizeof(*ret_word) || ret_word->word != expected)
        _exit(1); /* the keeper is gone or gave up: nobody is there to tell */
    return nfds;
}

static bool is_kept(int cap)
{
    for (size_t i = 0; i < ARRAY_LEN(kept_caps); i++)
        if (kept_caps[i] == cap)
            return true;
    return false;
}

/* From the next exec on. What we hold until then we need: the filters are installed last. */
static int bound_rights(struct err *err)
{
    struct rlimit none = { 0, 0 };
    (void)setrlimit(RLIMIT_CORE, &none);
    for (int cap = 0; cap <= CAP_LAST_CAP || prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        if (!is_kept(cap) && prctl(PR_CAPBSET_DROP, cap) < 0 && errno != EINVAL)
            return err_set(err, errno, "cannot drop capability %d", cap);
    return 0;
}

static int install_filters(const struct ns_host *h, const struct ns_spec *spec, struct err *err)
{
    int r = spec->apart ? seccomp_refuse_reflinks() : 0;
    if (r == 0)
        r = seccomp_install(h->filter);
    return r < 0 ? err_set(err, -r, "cannot install the seccomp filter") : 0;
}

/* Give fd the number n and let it live through exec. */
static int pin(int fd, int n)
{
    return fd < 0 || dup2(fd, n) < 0 ? -1 : n;
}

static int become_init(const struct ns_host *h, const struct ns_spec *spec,
                       const int late[NS_LATE_MAX], int status_fd, struct err *err)
{
    /* Descriptors first move above every number they will be given, so none is overwritten. */
    int from[] = { spec->listen_fd, spec->cgroup->work_group, late[0], late[1], late[2], late[3] };
    static const char *const names[] = { "--listen", "--group", "--oom",
                                         "--procs",  "--procs", "--procs" };
    char numbers[ARRAY_LEN(from)][ARG_SIZE], cookie[64];
    const char *argv[2 + 2 * ARRAY_LEN(from)] = { "warren-init" };
    char *envp[] = { cookie, NULL };
    size_t argc = 1;
    int next = FIRST_FREE_FD, high = 64;

    int exe = fcntl(h->init_fd, F_DUPFD_CLOEXEC, high);
    int status = fcntl(status_fd, F_DUPFD_CLOEXEC, high);
    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        if (from[i] >= 0)
            from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, high);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (exe < 0 || status < 0 || null < 0)
        return err_set(err, errno, "cannot arrange descriptors");
    for (int i = 0; i < FIRST_FREE_FD; i++)
        (void)dup2(null, i);
    for (size_t i = 0; i < ARRAY_LEN(from); i++) {
        if (pin(from[i], next) < 0)
            continue;
        (void)snprintf(numbers[i], ARG_SIZE, "%d", next++);
        argv[argc++] = names[i];
        argv[argc++] = numbers[i];
    }
    if (syscall(SYS_close_range, next, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
        return err_set(err, errno, "cannot close descriptors");
    (void)snprintf(cookie, sizeof(cookie), "WARREN_CLONE_COOKIE=%016llx:%016llx",
                   (unsigned long long)h->cookie.a, (unsigned long long)h->cookie.b);
    (void)syscall(SYS_execveat, exe, "", argv, envp, AT_EMPTY_PATH);
    int r = err_set(err, errno, "cannot start warren-init");
    (void)dup2(status, status_fd); /* the report goes where it was expected */
    return r;
}

/* By ourselves, and as a lone thread: see make_v1 in cgroup_make.c. */
static int join_groups(const int procs[CGROUP_CONTROLLERS], struct err *err)
{
    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        if (procs[c] >= 0 && write(procs[c], "0", 1) < 0)
            return err_set(err, errno, "cannot join a control group");
    return 0;
}

/* A cgroup namespace begins where its maker is. Make it in the workload's groups, so that processes see
 * themselves at the root and no name of the host's. */
static int settle_in_groups(const struct ns_spec *spec, const int late[NS_LATE_MAX],
                            struct err *err)
{
    int r = 0;
    if (spec->cgroup->ns < 0) {
        r = join_groups(late + NS_LATE_PROCS, err);
        if (r == 0 && unshare(CLONE_NEWCGROUP) < 0)
            r = err_set(err, errno, "cannot make a cgroup namespace");
    }
    return r < 0 ? r : join_groups(late + NS_LATE_INIT, err);
}

static int live(const struct ns_host *h, const struct ns_spec *spec, int go_fd, int status_fd,
                struct err *err)
{
    struct parts parts;
    struct ns_word word;
    int fds[NS_LATE_MAX], late[NS_LATE_MAX];
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_UNBLOCK, &all, NULL);
    (void)umask(022);
    (void)await(go_fd, NS_WORD_MAPPED, &word, fds);
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 || setsid() < 0)
        return err_set(err, errno, "cannot become root inside");
    int r = ns_time_enter(err);
    if (r < 0)
        return r;
    if (sethostname(spec->id, strlen(spec->id)) < 0)
        return err_set(err, errno, "cannot set the host name");
    r = loopback_up(err);
    if (r == 0)
        r = make_parts(spec, &parts, err);
    if (r == 0)
        r = assemble(h, spec, &parts, err);
    if (r == 0)
        r = bound_rights(err);
    if (r < 0)
        return r;
    if (await(go_fd, NS_WORD_ROOT, &word, fds) != 1)
        return err_set(err, EPROTO, "no root came with the word");
    r = enter_root(&parts, fds[0], err);
    if (r < 0)
        return r;
    size_t nfds = await(go_fd, NS_WORD_GROUPS, &word, fds), next = 0;
    for (size_t i = 0; i < NS_LATE_MAX; i++)
        late[i] = word.has[i] && next < nfds ? fds[next++] : -1;
    r = settle_in_groups(spec, late, err);
    if (r == 0)
        r = install_filters(h, spec, err);
    return r < 0 ? r : become_init(h, spec, late, status_fd, err);
}

_Noreturn void ns_child(const struct ns_host *host, const struct ns_spec *spec, int go_fd,
                        int status_fd)
{
    struct err err = ERR_INIT;
    (void)live(host, spec, go_fd, status_fd, &err);
    (void)fd_write_full(status_fd, &err, sizeof(err));
    _exit(1);
}

#include "init/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/envp.h"

#define PENDING_MAX \
    256 /* pending signals: the kernel walks all of them for each one that we read */

static struct {
    int procs_fds[LAUNCH_PROCS_MAX];
    size_t procs_n;
    uint64_t cookie[2];
    struct rlimit nofile;  /* the one we were started with: a command's default */
    bool nofile_differs;   /* from our own, which we raise */
    struct rlimit pending; /* likewise */
    bool pending_differs;  /* from our own, which we lower */
    bool groups_differ;    /* we have supplementary groups to shed */
} setup;

void launch_setup(const int *procs_fds, size_t n, const uint64_t cookie[2])
{
    for (size_t i = 0; i < n && i < LAUNCH_PROCS_MAX; i++)
        setup.procs_fds[setup.procs_n++] = procs_fds[i];
    if (cookie)
        memcpy(setup.cookie, cookie, sizeof(setup.cookie));
    setup.groups_differ = getgroups(0, NULL) > 0;

    /* A thousand commands need more descriptors than the usual soft limit. */
    if (getrlimit(RLIMIT_NOFILE, &setup.nofile) == 0) {
        struct rlimit ours = { setup.nofile.rlim_max, setup.nofile.rlim_max };
        setup.nofile_differs =
            setup.nofile.rlim_cur != ours.rlim_cur && setrlimit(RLIMIT_NOFILE, &ours) == 0;
    }
    if (getrlimit(RLIMIT_SIGPENDING, &setup.pending) == 0) {
        struct rlimit ours = { PENDING_MAX, setup.pending.rlim_max };
        setup.pending_differs =
            setup.pending.rlim_cur > PENDING_MAX && setrlimit(RLIMIT_SIGPENDING, &ours) == 0;
    }
}

void launch_forget(void)
{
    explicit_bzero(setup.cookie, sizeof(setup.cookie));
}

void launch_let_go(void)
{
    fd_close_all(setup.procs_fds, setup.procs_n);
    setup.procs_n = 0;
}

void launch_take_back(const int *procs_fds, size_t n)
{
    for (size_t i = 0; i < n && setup.procs_n < LAUNCH_PROCS_MAX; i++)
        if (procs_fds[i] >= 0)
            setup.procs_fds[setup.procs_n++] = procs_fds[i];
}

/* ---- in the child ---- */

static _Noreturn void child_fail(int report_fd, enum launch_step step, int code)
{
    struct launch_report r = { step, code };
    if (write(report_fd, &r, sizeof(r)) < 0)
        _exit(126);
    _exit(127);
}

/* The groups of cgroup v1 take a process in whatever their limit says, so a fork storm inside does
 * not keep us from starting one. */
static int child_join_v1(void)
{
    for (size_t i = 0; i < setup.procs_n; i++)
        if (write(setup.procs_fds[i], "0", 1) < 0)
            return -errno;
    return 0;
}

static int child_limits(const struct launch *l)
{
    int r = child_join_v1();
    if (r < 0)
        return r;
    if (setup.pending_differs && setrlimit(RLIMIT_SIGPENDING, &setup.pending) < 0)
        return -errno;
    struct rlimit lim = setup.nofile;
    if (l->nofile) {
        rlim_t n = l->nofile < lim.rlim_max ? l->nofile : lim.rlim_max;
        lim = (struct rlimit){ n, n };
    } else if (!setup.nofile_differs) {
        return 0;
    }
    return setrlimit(RLIMIT_NOFILE, &lim) < 0 ? -errno : 0;
}

static int child_stdio(const struct launch *l)
{
    for (int i = 0; i < 3; i++) {
        if (dup2(l->stdio[i], i) < 0)
            return -errno;
        /* Root may open any of them again through /dev/stdout; another user only his own. An id
         * that does not exist here fails where it is taken on, with a better word for it. */
        if (l->own[i] && l->who->uid != 0 && fchown(i, l->who->uid, (gid_t)-1) < 0)
            continue;
    }
    return 0;
}

int launch_become(const struct account *a)
{
    if ((a->ngroups || setup.groups_differ) && setgroups(a->ngroups, a->groups) < 0)
        return -errno;
    if (a->uid == 0 && a->gid == 0)
        return 0; /* what we are already */
    if (setresgid(a->gid, a->gid, a->gid) < 0 || setresuid(a->uid, a->uid, a->uid) < 0)
        return -errno;
    uid_t ruid, euid, suid;
    gid_t rgid, egid, sgid;
    if (getresuid(&ruid, &euid, &suid) < 0 || getresgid(&rgid, &egid, &sgid) < 0)
        return -errno;
    bool as_asked = ruid == a->uid && euid == a->uid && suid == a->uid && rgid == a->gid &&
                    egid == a->gid && sgid == a->gid;
    return as_asked ? 0 : -EPERM;
}

int launch_act_for(const struct account *a)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    (void)setfsgid(a->gid);
    (void)setfsuid(a->uid); /* which takes the rights over files away, but not for good */
    if (setfsgid((gid_t)-1) != (int)a->gid || setfsuid((uid_t)-1) != (int)a->uid)
        return -EPERM;
    if (syscall(SYS_capget, &head, caps) < 0)
        return -errno;
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        caps[i].effective = caps[i].permitted;
    return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

static int child_workdir(const struct launch *l)
{
    if (l->cwd[0] == '/' && l->cwd[1] == '\0')
        return 0; /* where we are already */
    if (chdir(l->cwd) == 0 || (l->cwd_or_root && chdir("/") == 0))
        return 0;
    return -errno;
}

/* As execvpe looks for it, without the allocation and without the detour through a shell. */
static int child_exec(const struct launch *l)
{
    const char *name = l->argv[0];
    if (strchr(name, '/')) {
        (void)execve(name, l->argv, l->envp);
        return -errno;
    }
    const char *path = envp_get(l->envp, "PATH");
    size_t name_n = strlen(name);
    char full[PATH_MAX];
    int seen = -ENOENT;
    if (!path)
        path = ENVP_PATH;
    for (;;) {
        const char *end = strchrnul(path, ':');
        size_t n = (size_t)(end - path);
        if (n + 1 + name_n < sizeof(full)) {
            memcpy(full, path, n);
            if (n > 0 && full[n - 1] != '/') /* an empty element is the working directory */
                full[n++] = '/';
            memcpy(full + n, name, name_n + 1);
            (void)execve(full, l->argv, l->envp);
            if (errno == EACCES)
                seen = -EACCES; /* a later directory may have one that runs */
            else if (errno != ENOENT && errno != ENOTDIR)
                return -errno;
        }
        if (*end == '\0')
            return seen;
        path = end + 1;
    }
}

static _Noreturn void child_main(const struct launch *l, bool inside, int report_fd)
{
    int r;
    (void)setsid();
    r = inside || l->family->dir < 0 ? 0 : family_join(l->family);
    if (r < 0)
        child_fail(report_fd, LAUNCH_FAMILY, -r);
    r = child_stdio(l);
    if (r < 0)
        child_fail(report_fd, LAUNCH_STDIO, -r);
    if (l->terminal && ioctl(0, TIOCSCTTY, 0) < 0)
        child_fail(report_fd, LAUNCH_TERMINAL, errno);
    r = child_limits(l);
    if (r < 0)
        child_fail(report_fd, LAUNCH_LIMITS, -r);
    r = launch_become(l->who);
    if (r < 0)
        child_fail(report_fd, LAUNCH_IDS, -r);
    r = child_workdir(l);
    if (r < 0)
        child_fail(report_fd, LAUNCH_WORKDIR, -r);

    /* All of ours are close-on-exec already; should one not be, it ends here. */
    (void)syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
    /* Dispositions are the default ones: we have no handlers, only a mask. */
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    r = child_exec(l);
    child_fail(report_fd, LAUNCH_EXEC, -r);
}

/* ---- in init ---- */

/* Born inside its group: nothing it does can happen outside of it. */
static pid_t clone_into(const struct family *f)
{
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)f->dir,
    };
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args), 0, 0, setup.cookie[0], setup.cookie[1]);
}

static pid_t fork_into(const struct family *f, bool *ret_inside)
{
    bool inside = f->dir >= 0;
    pid_t pid = inside ? clone_into(f) : -1;
    /* Refused because the group is full (a fork storm), or by an older kernel or filter: joining
     * from within asks for no room. */
    if (pid < 0) {
        inside = false;
        pid = _Fork();
    }
    *ret_inside = inside;
    return pid;
}

pid_t launch_fork(const struct family *f, int *ret_r)
{
    bool inside;
    pid_t pid = fork_into(f, &inside);
    if (pid < 0)
        return -errno;
    if (pid > 0)
        return pid;
    (void)setsid();
    int r = inside || f->dir < 0 ? 0 : family_join(f);
    if (r == 0)
        r = child_join_v1();
    explicit_bzero(setup.cookie, sizeof(setup.cookie));
    *ret_r = r;
    return 0;
}

pid_t launch(const struct launch *l, int *ret_report)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    bool inside;
    pid_t pid = fork_into(l->family, &inside);
    if (pid == 0)
        child_main(l, inside, report[1]);
    int r = -errno;
    (void)close(report[1]);
    if (pid < 0) {
        (void)close(report[0]);
        return r;
    }
    *ret_report = report[0];
    return pid;
}

int launch_explain(struct launch_report report, const char *program, const char *cwd,
                   struct err *err)
{
    int code = report.code;
    if (code == ENOMEM)
        return err_fail_as(err, code, FAIL_OUT_OF_MEMORY, "no memory to start '%.100s'", program);
    if (code == EAGAIN)
        return err_fail_as(err, code, FAIL_TOO_MANY_PROCESSES, "no process left to start '%.100s'",
                           program);
    switch ((enum launch_step)report.step) {
    case LAUNCH_EXEC:
        if (code == E2BIG)
            return err_fail_as(err, code, FAIL_ARGUMENT_TOO_LARGE,
                               "argv and env are larger than a program can be given");
        if (code == ENOENT && strchr(program, '/'))
            return err_fail_as(err, code, FAIL_PROGRAM_NOT_FOUND,
                               "there is no '%.100s', or its interpreter is missing", program);
        if (code == ENOENT || code == ENOTDIR || code == ENAMETOOLONG || code == ELOOP)
            return err_fail_as(err, code, FAIL_PROGRAM_NOT_FOUND, "there is no program '%.100s'",
                               program);
        return err_fail_as(err, code, FAIL_PROGRAM_NOT_EXECUTABLE, "'%.100s' cannot be run: %s",
                           program, strerror(code));
    case LAUNCH_WORKDIR:
        return err_fail_as(err, code, FAIL_WORKDIR_NOT_FOUND, "cannot enter '%.100s': %s", cwd,
                           strerror(code));
    case LAUNCH_IDS:
        return err_fail_as(err, code, FAIL_USER_NOT_FOUND, "cannot take on the user's ids: %s",
                           strerror(code));
    case LAUNCH_STDIO:
    case LAUNCH_FAMILY:
    case LAUNCH_LIMITS:
    case LAUNCH_TERMINAL: break;
    }
    return err_set(err, code ? code : EIO, "start step %d failed: %s", report.step, strerror(code));
}

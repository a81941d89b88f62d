/* Pid 1, warren-init, is the daemon's only way into a sandbox: programs inside must not reach
 * it. */
#include "attack/attempt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PID 1
#define SCHED_IDLE_POLICY 5
#define IDLE_IO ((3 << 13) | 7) /* ioprio: the idle class */

/* Set limits to their present values, so that an attempt that gets through does no harm. */
static void run_prlimit(const struct attempt *self, struct outcome *o)
{
    uint64_t now[2] = { 0, 0 };
    if (syscall(SYS_prlimit64, PID, self->args[0], NULL, now) < 0) {
        held(o, "prlimit: %s", strerror(errno));
        return;
    }
    failed(o, syscall(SYS_prlimit64, PID, self->args[0], now, NULL), "a limit of init's");
}

static void run_affinity(const struct attempt *self, struct outcome *o)
{
    unsigned long mask[32] = { 0 };
    long n = syscall(SYS_sched_getaffinity, PID, sizeof(mask), mask);
    if (n < 0)
        held(o, "affinity: %s", strerror(errno));
    else
        failed(o, syscall(SYS_sched_setaffinity, PID, n, mask), "init's processors");
}

static void run_nice(const struct attempt *self, struct outcome *o)
{
    errno = 0;
    int now = getpriority(PRIO_PROCESS, PID);
    if (now == -1 && errno)
        held(o, "priority: %s", strerror(errno));
    else
        failed(o, setpriority(PRIO_PROCESS, PID, now), "init's priority");
}

/* By user instead of by pid: programs must not name init through its user id. */
static void run_nice_user(const struct attempt *self, struct outcome *o)
{
    errno = 0;
    int before = getpriority(PRIO_PROCESS, PID);
    if (before == -1 && errno) {
        held(o, "priority: %s", strerror(errno));
        return;
    }
    (void)setpriority(PRIO_USER, 0, before + 1);
    int after = getpriority(PRIO_PROCESS, PID);
    if (after != before)
        broke(o, "nice of all that root has changed init's from %d to %d", before, after);
    held(o, "init is not among root's processes");
}

static void run_scheduler(const struct attempt *self, struct outcome *o)
{
    int none = 0, policy = (int)syscall(SYS_sched_getscheduler, PID);
    if (policy < 0)
        held(o, "scheduler: %s", strerror(errno));
    else
        failed(o, syscall(SYS_sched_setscheduler, PID, policy, &none), "init's scheduler");
}

static void run_ioprio(const struct attempt *self, struct outcome *o)
{
    long now = syscall(SYS_ioprio_get, 1, PID);
    if (now < 0)
        held(o, "ioprio: %s", strerror(errno));
    else
        failed(o, syscall(SYS_ioprio_set, 1, PID, now), "init's io priority");
}

static void run_kill(const struct attempt *self, struct outcome *o)
{
    (void)kill(PID, (int)self->args[0]); /* the kernel may say yes and drop it */
    (void)usleep(200 * 1000);
    char text[4096];
    if (slurp("/proc/1/stat", text, sizeof(text)) > 0) {
        const char *state = strrchr(text, ')');
        if (state && (state[2] == 'T' || state[2] == 't'))
            broke(o, "init stopped");
    }
    held(o, "init runs on"); /* had init ended, this process would be gone, too */
}

static void run_open(const struct attempt *self, struct outcome *o)
{
    int fd = open(self->path, (int)self->args[0] | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        held(o, "%s: %s", self->path, strerror(errno));
        return;
    }
    char byte;
    ssize_t n = self->args[0] == O_RDONLY ? read(fd, &byte, 1) : 1;
    if (n > 0)
        broke(o, "%s opens", self->path);
    else
        held(o, "%s opens and gives nothing", self->path);
    (void)close(fd);
}

static void run_links(const struct attempt *self, struct outcome *o)
{
    char path[300], link[256];
    struct dirent *e;
    DIR *dir = opendir(self->path);
    if (!dir) {
        held(o, "%s: %s", self->path, strerror(errno));
        return;
    }
    while ((e = readdir(dir))) {
        (void)snprintf(path, sizeof(path), "%s/%s", self->path, e->d_name);
        if (e->d_name[0] != '.' && readlink(path, link, sizeof(link)) > 0)
            broke(o, "%s can be followed", path);
    }
    (void)closedir(dir);
    held(o, "no descriptor of init's shows");
}

static void run_follow(const struct attempt *self, struct outcome *o)
{
    char link[256];
    failed(o, readlink(self->path, link, sizeof(link)), self->path);
}

static void run_vm_read(const struct attempt *self, struct outcome *o)
{
    char byte;
    struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 };
    long r = syscall(SYS_process_vm_readv, PID, &here, 1, &there, 1, 0);
    if (r < 0 && errno == EFAULT)
        broke(o, "init's memory may be read: only the address was wrong");
    failed(o, r, "reading init's memory");
}

static void run_pidfd(const struct attempt *self, struct outcome *o)
{
    int fd = (int)syscall(SYS_pidfd_open, PID, 0);
    if (fd < 0) {
        held(o, "pidfd_open: %s", strerror(errno));
        return;
    }
    for (int n = 0; n < 16; n++)
        failed(o, syscall(SYS_pidfd_getfd, fd, n, 0), "taking a descriptor of init's");
    (void)close(fd);
}

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
static void run_madvise(const struct attempt *self, struct outcome *o)
{
    struct iovec there = { (void *)0x400000, 4096 };
    int fd = (int)syscall(SYS_pidfd_open, PID, 0);
    long r = fd < 0 ? -1 : syscall(SYS_process_madvise, fd, &there, 1, 21 /* PAGEOUT */, 0);
    failed(o, r, "pushing init's memory out");
    if (fd >= 0)
        (void)close(fd);
}

/* Anyone can open the file; the write must fail. */
static void run_timerslack(const struct attempt *self, struct outcome *o)
{
    int fd = open("/proc/1/timerslack_ns", O_WRONLY | O_CLOEXEC);
    failed(o, fd < 0 ? -1 : write(fd, "50000", 5), "init's timers");
    if (fd >= 0)
        (void)close(fd);
}

/* No process may rewrite another's program, init's least of all. */
static void run_exe(const struct attempt *self, struct outcome *o)
{
    char path[300];
    struct dirent *e;
    DIR *dir = opendir("/proc");
    while (dir && (e = readdir(dir))) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%s/exe", e->d_name);
        unwritable(o, path);
    }
    if (dir)
        (void)closedir(dir);
}

/* Queue signals at init: a full queue would silence it. */
static void run_queue(const struct attempt *self, struct outcome *o)
{
    union sigval v = { .sival_int = 1 };
    int r = 0;
    for (int i = 0; i < 64 && r == 0; i++)
        r = sigqueue(PID, SIGRTMIN + 3, v);
    (void)r;
    char text[8192];
    (void)slurp("/proc/1/status", text, sizeof(text));
    const char *at = strstr(text, "SigQ:");
    unsigned n = 0;
    if (at && sscanf(at, "SigQ: %u", &n) == 1 && n >= 64)
        broke(o, "%u signals wait at init", n);
    held(o, "none of them waits there");
}

#define LIMIT(name_, what_, res_)                                                          \
    {                                                                                      \
        .name = "init-prlimit" name_, .title = what_, .run = run_prlimit, .args = { res_ } \
    }
#define OPEN(name_, path_, how_)                                                                 \
    {                                                                                            \
        .name = "init-" name_, .title = "open " path_, .run = run_open, .path = path_, .args = { \
            how_                                                                                 \
        }                                                                                        \
    }

/* clang-format off */
static const struct attempt init[] = {
    LIMIT("", "take init's descriptors", RLIMIT_NOFILE), LIMIT("-cpu", "take init's time", RLIMIT_CPU),
    LIMIT("-as", "take init's memory", RLIMIT_AS), LIMIT("-nproc", "take init's processes", RLIMIT_NPROC),
    LIMIT("-fsize", "take init's file sizes", RLIMIT_FSIZE), LIMIT("-sigpending", "take init's signals", RLIMIT_SIGPENDING),
    { .name = "init-affinity", .title = "bind init to one processor", .run = run_affinity },
    { .name = "init-setpriority", .title = "make init wait for others", .run = run_nice },
    { .name = "init-setpriority-user", .title = "the same, by its user", .run = run_nice_user, .flags = ATTEMPT_SPOILS },
    { .name = "init-scheduler", .title = "give init the idle scheduler", .run = run_scheduler },
    { .name = "init-ioprio", .title = "make init's reads wait", .run = run_ioprio },
    { .name = "init-kill", .title = "kill init", .run = run_kill, .args = { SIGKILL } },
    { .name = "init-stop", .title = "stop init", .run = run_kill, .args = { SIGSTOP } },
    { .name = "init-segv", .title = "crash init", .run = run_kill, .args = { SIGSEGV } },
    { .name = "init-signal-queue", .title = "fill init's queue of signals", .run = run_queue },
    { .name = "init-ptrace", .title = "trace init", .run = run_call, .nr = SYS_ptrace, .args = { 16, 1, 0, 0 } },
    { .name = "init-seize", .title = "trace init, another way", .run = run_call, .nr = SYS_ptrace, .args = { 0x4206, 1, 0, 0 } },
    { .name = "init-memory", .title = "read init's memory", .run = run_vm_read },
    { .name = "init-pageout", .title = "push init's memory out", .run = run_madvise },
    { .name = "init-descriptors", .title = "take a descriptor of init's", .run = run_pidfd },
    OPEN("mem", "/proc/1/mem", O_RDWR),
    OPEN("environ", "/proc/1/environ", O_RDONLY), OPEN("maps", "/proc/1/maps", O_RDONLY),
    OPEN("auxv", "/proc/1/auxv", O_RDONLY), OPEN("stack", "/proc/1/stack", O_RDONLY),
    OPEN("syscall", "/proc/1/syscall", O_RDONLY), OPEN("pagemap", "/proc/1/pagemap", O_RDONLY),
    OPEN("oom-score", "/proc/1/oom_score_adj", O_WRONLY), OPEN("coredump-filter", "/proc/1/coredump_filter", O_WRONLY),
     OPEN("clear-refs", "/proc/1/clear_refs", O_WRONLY),
    OPEN("uid-map", "/proc/1/uid_map", O_WRONLY), OPEN("autogroup", "/proc/1/autogroup", O_WRONLY),
    { .name = "init-timerslack", .title = "make init's timers late", .run = run_timerslack },
    { .name = "init-fd", .title = "follow init's descriptors", .run = run_links, .path = "/proc/1/fd" },
    { .name = "init-map-files", .title = "follow init's mapped files", .run = run_links, .path = "/proc/1/map_files" },
    { .name = "init-exe", .title = "name init's program", .run = run_follow, .path = "/proc/1/exe" },
    { .name = "init-cwd", .title = "go where init is", .run = run_follow, .path = "/proc/1/cwd" },
    { .name = "init-root", .title = "go where init's root is", .run = run_follow, .path = "/proc/1/root" },
    { .name = "exe-overwrite", .title = "rewrite a running program", .run = run_exe },
};
/* clang-format on */

const struct group group_init = { "init", init, sizeof(init) / sizeof(init[0]) };

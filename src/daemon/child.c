#include "daemon/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "confine/rights.h"

#define LOG_MODULE "warrend"
#define READY_MS 60000 /* the first start makes a filesystem of its own */
#define FD_OPTION_MAX 16
#define EXEC_FAILED 127
#define RESTART_PAUSE_MS 50

int child_program(const char *name, char path[PATH_MAX], struct err *err)
{
    const char *dir = getenv("WARREN_LIBEXEC");
    char self[PATH_MAX];
    if (!dir || !*dir) {
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n < 0)
            return err_set(err, errno, "cannot find our own program");
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
        dir = self;
    }
    int n = snprintf(path, PATH_MAX, "%s/%s", dir, name);
    if (n < 0 || n >= PATH_MAX)
        return err_set(err, ENAMETOOLONG, "the path of %s is too long", name);
    if (access(path, X_OK) < 0)
        return err_set(err, errno, "there is no program '%s'; WARREN_LIBEXEC says where it is",
                       path);
    return 0;
}

struct launch {
    const char *name, *path;
    char *const *argv;
    int fds[CHILD_FDS_MAX + 2]; /* alive, ready, and the program's own */
    size_t nfds;
    const int *rights;
    size_t nrights;
    _Atomic uint64_t *restarts;
};

/* Between fork and exec: only async-signal-safe calls. */
static void exec_program(const struct launch *l)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    bool kept = true;
    for (size_t i = 0; i < l->nfds; i++)
        kept = fcntl(l->fds[i], F_SETFD, 0) == 0 && kept;
    if (kept)
        (void)execv(l->path, l->argv);
    _exit(EXEC_FAILED);
}

static pid_t spawn(const struct launch *l)
{
    pid_t pid = fork();
    if (pid == 0)
        exec_program(l);
    return pid;
}

/* The launcher: keeps root for the one thing warrend cannot do without it, starting the program
 * again. Cells of a keeper that died become its children and are reaped here. */
static _Noreturn void launch(const struct launch *l)
{
    int alive_fd = l->fds[0];
    sigset_t set;
    (void)prctl(PR_SET_NAME, "warren-launcher");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    (void)signal(SIGTERM, SIG_IGN); /* it ends when warrend does */
    (void)signal(SIGINT, SIG_IGN);
    (void)setsid();
    /* The launcher only starts a program and waits: it stays root without capabilities. The
     * program keeps those of its bounding set. */
    if (rights_bound(l->rights, l->nrights, NULL) < 0 || rights_hold(NULL, 0, NULL) < 0)
        _exit(1);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    pid_t pid = spawn(l);
    for (bool first = true;;) {
        struct pollfd p[2] = { { signals, POLLIN, 0 }, { alive_fd, POLLIN, 0 } };
        (void)poll(p, 2, -1);
        if (p[1].revents || pid < 0)
            break;
        struct signalfd_siginfo si;
        (void)!read(signals, &si, sizeof(si));
        int status;
        for (pid_t dead; (dead = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (dead != pid)
                continue;
            if (first && WIFEXITED(status))
                _exit(1); /* it said why in the log; trying again would not help */
            log_warn("%s died and is started again", l->name);
            if (l->restarts)
                atomic_fetch_add(l->restarts, 1);
            (void)poll(NULL, 0, RESTART_PAUSE_MS);
            first = false;
            pid = spawn(l);
        }
    }
    /* The program sees the same end of file; waiting for it means that whoever waits for us knows
     * that both are gone. */
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    _exit(0);
}

static int wait_ready(const char *name, int fd, struct err *err)
{
    char byte = 0;
    int r = fd_wait(fd, POLLIN, READY_MS);
    if (r == 0)
        return err_set(err, ETIMEDOUT, "%s was not ready after %d s", name, READY_MS / 1000);
    if (r < 0 || read(fd, &byte, 1) != 1 || byte != 'R')
        return err_set(err, EIO, "%s could not start; its last log line says why", name);
    return 0;
}

/* In the launcher: the program's arguments, its descriptors among them, and off. */
static _Noreturn void become_launcher(const struct child_config *config, const char *path,
                                      int alive_fd, int ready_fd, _Atomic uint64_t *restarts)
{
    const char *argv[CHILD_ARGS_MAX] = { config->program };
    char numbers[CHILD_FDS_MAX + 2][FD_OPTION_MAX];
    const char *options[CHILD_FDS_MAX + 2] = { "--parent-fd", "--ready-fd" };
    struct launch l = { .name = config->program,
                        .path = path,
                        .fds = { alive_fd, ready_fd },
                        .nfds = config->nfds + 2,
                        .rights = config->rights,
                        .nrights = config->nrights,
                        .restarts = restarts };
    size_t n = 1;
    for (size_t i = 0; i < config->nfds; i++) {
        l.fds[i + 2] = config->fds[i].fd;
        options[i + 2] = config->fds[i].option;
    }
    if (fd_keep_only(l.fds, l.nfds) < 0)
        _exit(1);
    for (size_t i = 0; config->args[i] && n < ARRAY_LEN(argv) - 1; i++)
        argv[n++] = config->args[i];
    for (size_t i = 0; i < l.nfds && n < ARRAY_LEN(argv) - 2; i++) {
        (void)snprintf(numbers[i], FD_OPTION_MAX, "%d", l.fds[i]);
        argv[n++] = options[i];
        argv[n++] = numbers[i];
    }
    l.argv = (char *const *)(uintptr_t)argv;
    launch(&l);
}

int child_start(const struct child_config *config, struct child *ret_child, struct err *err)
{
    char path[PATH_MAX];
    int alive[2], tell[2];

    assert(config->nfds <= CHILD_FDS_MAX);
    int r = child_program(config->program, path, err);
    if (r < 0)
        return r;
    if (pipe2(alive, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    _cleanup_fd_ int alive_read = alive[0];
    _cleanup_fd_ int alive_write = alive[1];
    if (pipe2(tell, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    _cleanup_fd_ int tell_read = tell[0];
    _cleanup_fd_ int tell_write = tell[1];

    _Atomic uint64_t *restarts =
        mmap(NULL, sizeof(*restarts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (restarts == MAP_FAILED)
        restarts = NULL;
    pid_t pid = fork();
    if (pid < 0)
        return err_set(err, errno, "cannot fork");
    if (pid == 0)
        become_launcher(config, path, alive_read, tell_write, restarts);
    (void)close(take_fd(tell_write)); /* so that its death ends the wait */
    r = wait_ready(config->program, tell_read, err);
    if (r < 0) {
        (void)close(take_fd(alive_write));
        (void)waitpid(pid, NULL, 0);
        return r;
    }
    *ret_child = (struct child){ pid, take_fd(alive_write), restarts };
    return 0;
}

void child_stop(struct child *child, int timeout_ms)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    if (child->alive_fd >= 0)
        (void)close(child->alive_fd);
    child->alive_fd = -1;
    while (child->pid > 0 && waitpid(child->pid, NULL, WNOHANG) == 0 && clock_mono_ms() < deadline)
        (void)poll(NULL, 0, 10);
    child->pid = 0;
}

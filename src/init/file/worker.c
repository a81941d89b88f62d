#include "init/file/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/family.h"
#include "init/file/job.h"
#include "init/file/placed.h"
#include "init/launch.h"

#define CONNECTION_FD 3

static struct {
    pid_t pids[WORKERS_MAX];
    size_t n;
    struct family family;
} workers = { .family = FAMILY_INIT };

bool worker_is(pid_t pid)
{
    for (size_t i = 0; i < workers.n; i++)
        if (workers.pids[i] == pid)
            return true;
    return false;
}

bool worker_reaped(pid_t pid)
{
    for (size_t i = 0; i < workers.n; i++)
        if (workers.pids[i] == pid) {
            workers.pids[i] = workers.pids[--workers.n];
            return true;
        }
    return false;
}

void workers_signal_all(int signo)
{
    for (size_t i = 0; i < workers.n; i++)
        (void)kill(workers.pids[i], signo);
}

size_t workers_count(void)
{
    return workers.n;
}

void worker_family(void (*fn)(struct family *f))
{
    fn(&workers.family);
}

/* ---- in the worker ---- */

static int shed(int fd)
{
    (void)prctl(PR_SET_NAME, "warren-file");
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return -errno;
    if (fd != CONNECTION_FD && dup3(fd, CONNECTION_FD, O_CLOEXEC) < 0)
        return -errno;
    if (syscall(SYS_close_range, CONNECTION_FD + 1, ~0u, 0) < 0)
        return -errno;
    sigset_t none; /* a sweep must be heard */
    (void)sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

/* ---- in init ---- */

/* The pid of a new worker, or 0 in it; its connection is then CONNECTION_FD. */
static int fork_worker(int fd, struct err *err)
{
    if (workers.n == WORKERS_MAX)
        return err_fail(err, FAIL_TOO_MANY_PROCESSES,
                        "%d file operations run in this sandbox already", WORKERS_MAX);
    int r = workers.family.dir < 0 ? family_new(&workers.family) : 0;
    if (r < 0)
        return err_set(err, -r, "cannot make a group: %s", strerror(-r));
    int entered = 0;
    placed_share();
    pid_t pid = launch_fork(&workers.family, &entered);
    if (pid == 0) {
        if (entered < 0 || shed(fd) < 0)
            _exit(1);
        return 0;
    }
    if (pid == -ENOMEM)
        return err_fail(err, FAIL_OUT_OF_MEMORY, "no memory for a file operation");
    if (pid < 0)
        return err_fail_as(err, (int)-pid, FAIL_TOO_MANY_PROCESSES,
                           "no process left for a file operation");
    workers.pids[workers.n++] = pid;
    return pid;
}

int worker_start(int fd, char *payload, size_t n, const char *rest, size_t rest_n, struct err *err)
{
    int pid = fork_worker(fd, err);
    if (pid != 0)
        return pid < 0 ? pid : 0;
    job_run(CONNECTION_FD, payload, n, rest, rest_n);
    _exit(0);
}

int worker_start_job(int fd, void (*fn)(int fd, char *payload, size_t n), char *payload, size_t n,
                     struct err *err)
{
    int pid = fork_worker(fd, err);
    if (pid != 0)
        return pid < 0 ? pid : 0;
    fn(CONNECTION_FD, payload, n);
    _exit(0);
}

#include "kernel/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/criu.h"
#include "base/fd.h"
#include "confine/rights.h"

#define ARGV_MAX 16
#define JOBS_MAX 128   /* at the same time; others wait in the socket */
#define START_MS 60000 /* for the starter to answer on a machine that is busy */
#define LEAVE_MS 10000 /* for CRIU to let processes go and end */
#define NOT_STARTED 3  /* exit code: it did not become CRIU */

/* A request, with descriptors in the order of `enum part`, then what is given, then those of steps. */
struct request {
    uint32_t ngiven, nsteps;
    uint32_t steps[STARTER_STEPS_MAX];
};
enum part { PART_REPORT, PART_SOCK, PART_MOUNTS, PART_CWD, PARTS };
#define FDS_MAX (PARTS + 1 + STARTER_STEPS_MAX)
_Static_assert(FDS_MAX <= FD_PASS_MAX, "one message");

/* For CRIU to take processes of a cell apart, or to build them again. */
static const int rights[] = {
    CAP_SYS_ADMIN,
    CAP_SYS_PTRACE,
    CAP_CHECKPOINT_RESTORE,
    CAP_SYS_RESOURCE,
    CAP_SYS_CHROOT,
    CAP_SYS_NICE,
    CAP_SYS_TIME,
    CAP_NET_ADMIN,
    CAP_SETUID,
    CAP_SETGID,
    CAP_SETPCAP,
    CAP_SETFCAP,
    CAP_CHOWN,
    CAP_FOWNER,
    CAP_FSETID,
    CAP_DAC_OVERRIDE,
    CAP_MKNOD,
    CAP_KILL,
    CAP_IPC_LOCK,
    CAP_DAC_READ_SEARCH,
    CAP_IPC_OWNER,
    CAP_NET_BIND_SERVICE,
};

/* ---- in the process that becomes CRIU ---- */

static int take_step(enum starter_step what, int fd)
{
    switch (what) {
    case STARTER_GROUP: return write(fd, "0", 1) < 0 ? -errno : 0;
    case STARTER_NAMESPACE: return setns(fd, 0) < 0 ? -errno : 0;
    case STARTER_CGROUP_NS: return unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
    }
    return -EINVAL;
}

static int take_place(const struct request *q, const int *fds)
{
    const int *next = fds + PARTS + (q->ngiven ? 1 : 0);
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < q->nsteps; i++)
        r = take_step(q->steps[i], q->steps[i] == STARTER_CGROUP_NS ? -1 : *next++);
    if (r == 0 && (setns(fds[PART_MOUNTS], CLONE_NEWNS) < 0 || fchdir(fds[PART_CWD]) < 0))
        r = -errno;
    return r;
}

/* The socket and what is given, by the numbers that CRIU is told; nothing else. */
static int take_descriptors(const struct request *q, const int *fds)
{
    int above = STARTER_GIVEN_FD + STARTER_GIVEN_MAX, last = STARTER_SOCK_FD;
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; null >= 0 && i <= STDERR_FILENO; i++)
        (void)dup2(null, i);
    /* First above every number they will have, so that none is overwritten. */
    int given = q->ngiven ? fcntl(fds[PARTS], F_DUPFD, above) : -1;
    int sock = fcntl(fds[PART_SOCK], F_DUPFD, above);
    if (sock < 0 || dup2(sock, STARTER_SOCK_FD) < 0)
        return -errno;
    for (int i = 0; i < (int)q->ngiven; i++)
        if ((last = dup2(given, STARTER_GIVEN_FD + i)) < 0)
            return -errno;
    return syscall(SYS_close_range, last + 1, ~0u, 0) < 0 ? -errno : 0;
}

/* Nothing of our environment: CRIU's defaults could come from there. */
static _Noreturn void become(const struct request *q, const int *fds, char *const *program)
{
    static char *const env[] = { (char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                 (char *)(uintptr_t) "HOME=/nonexistent", NULL };
    static struct criu criu;
    char fd[16], *argv[ARGV_MAX];
    size_t n = 0;
    (void)signal(SIGCHLD, SIG_DFL);
    if (!program && criu_find(&criu, NULL) < 0)
        _exit(NOT_STARTED);
    if (!program)
        program = criu.argv;
    for (; n < ARGV_MAX - 3 && program[n]; n++)
        argv[n] = program[n];
    (void)snprintf(fd, sizeof(fd), "%d", STARTER_SOCK_FD);
    argv[n++] = (char *)(uintptr_t) "swrk";
    argv[n++] = fd;
    argv[n] = NULL;
    if (setpgid(0, 0) < 0 || take_place(q, fds) < 0 || take_descriptors(q, fds) < 0)
        _exit(NOT_STARTED);
    (void)umask(077);
    (void)execve(argv[0], argv, env);
    _exit(NOT_STARTED);
}

/* ---- in the starter ---- */

struct job {
    pid_t pid;
    int pidfd, report;
};

/* A killed CRIU leaves children that nobody else ends. It is reaped after them: until then its
 * number is nobody else's. */
static void job_end(const struct job *j)
{
    siginfo_t info = { 0 };
    while (waitid(P_PID, (id_t)j->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    if (info.si_code != CLD_EXITED)
        (void)kill(-j->pid, SIGKILL);
    (void)waitpid(j->pid, NULL, 0);
    (void)close(j->pidfd);
    (void)close(j->report);
}

static bool request_valid(const struct request *q, ssize_t size, size_t nfds)
{
    if (size != (ssize_t)sizeof(*q) || q->ngiven > STARTER_GIVEN_MAX ||
        q->nsteps > STARTER_STEPS_MAX)
        return false;
    size_t wanted = PARTS + (q->ngiven ? 1 : 0);
    for (uint32_t i = 0; i < q->nsteps; i++)
        wanted += q->steps[i] != STARTER_CGROUP_NS;
    return nfds == wanted;
}

static int job_begin(const struct request *q, const int *fds, char *const *argv,
                     struct job *ret_job)
{
    struct job j = { .report = fcntl(fds[PART_REPORT], F_DUPFD_CLOEXEC, 0), .pidfd = -1 };
    j.pid = j.report < 0 ? -1 : fork();
    if (j.pid == 0)
        become(q, fds, argv);
    if (j.pid > 0)
        j.pidfd = pidfd_open(j.pid, 0);
    if (j.pidfd < 0) {
        if (j.pid > 0) {
            (void)kill(j.pid, SIGKILL);
            (void)waitpid(j.pid, NULL, 0);
        }
        if (j.report >= 0)
            (void)close(j.report);
        return -EAGAIN;
    }
    (void)fd_try_send_msg(j.report, &j.pid, sizeof(j.pid), &j.pidfd, 1);
    *ret_job = j;
    return 0;
}

/* False: nobody can ask any more. */
static bool next_request(int sock, char *const *argv, struct job *jobs, size_t *njobs)
{
    struct request q;
    int fds[FDS_MAX];
    size_t nfds = 0;
    ssize_t n = fd_recv_msg(sock, &q, sizeof(q), fds, FDS_MAX, &nfds);
    if (n == 0)
        return false;
    if (request_valid(&q, n, nfds) && job_begin(&q, fds, argv, &jobs[*njobs]) == 0)
        (*njobs)++;
    fd_close_all(fds, nfds);
    return true;
}

static _Noreturn void serve(int sock, char *const *argv)
{
    static struct job jobs[JOBS_MAX];
    size_t n = 0;
    for (;;) {
        struct pollfd p[1 + JOBS_MAX];
        for (size_t i = 0; i < n; i++)
            p[i] = (struct pollfd){ jobs[i].pidfd, POLLIN, 0 };
        p[n] = (struct pollfd){ n < JOBS_MAX ? sock : -1, POLLIN, 0 };
        if (poll(p, n + 1, -1) < 0)
            continue;
        bool asked = p[n].revents;
        for (size_t i = n; i-- > 0;)
            if (p[i].revents) {
                job_end(&jobs[i]);
                jobs[i] = jobs[--n];
            }
        if (asked && !next_request(sock, argv, jobs, &n))
            _exit(0);
    }
}

/* The lock of the keeper's run directory is among what is closed here. */
static _Noreturn void run(int sock, pid_t keeper, char *const *argv)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "keeper-starter");
    if (getppid() != keeper || fd_keep_only(&sock, 1) < 0 || chdir("/") < 0)
        _exit(1);
    /* CRIU acts as other ids for a while and keeps its capabilities (kernel/inject.h). */
    if (geteuid() == 0 && (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0 ||
                           rights_bound(rights, ARRAY_LEN(rights), NULL) < 0 ||
                           rights_hold(rights, ARRAY_LEN(rights), NULL) < 0))
        _exit(1);
    serve(sock, argv);
}

/* ---- in the keeper ---- */

int starter_start(struct starter *s, char *const *argv, struct err *err)
{
    int sv[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return err_set(err, errno, "cannot make a socket pair");
    pid_t keeper = getpid(), pid = fork();
    if (pid == 0)
        run(sv[1], keeper, argv);
    int r = pid < 0 ? err_set(err, errno, "cannot start CRIU's starter") : 0;
    (void)close(sv[1]);
    if (r < 0)
        (void)close(sv[0]);
    else
        *s = (struct starter){ pid, sv[0] };
    return r;
}

void starter_end(struct starter *s)
{
    if (s->pid <= 0)
        return;
    (void)kill(s->pid, SIGKILL);
    (void)waitpid(s->pid, NULL, 0);
    (void)close(take_fd(s->fd));
    s->pid = -1;
}

/* ---- in a process of the keeper's ---- */

int starter_place_add(struct starter_place *p, enum starter_step what, int fd)
{
    if (p->n == STARTER_STEPS_MAX)
        return -E2BIG;
    p->steps[p->n].what = what;
    p->steps[p->n++].fd = fd;
    return 0;
}

static int ask(int fd, const struct starter_place *place, const int parts[PARTS], int given,
               unsigned ngiven)
{
    struct request q = { .ngiven = ngiven };
    int fds[FDS_MAX];
    size_t n = 0;
    for (; n < PARTS; n++)
        fds[n] = parts[n];
    if (ngiven)
        fds[n++] = given;
    for (size_t i = 0; i < place->n; i++) {
        q.steps[q.nsteps++] = place->steps[i].what;
        if (place->steps[i].what != STARTER_CGROUP_NS)
            fds[n++] = place->steps[i].fd;
    }
    return fd_send_msg(fd, &q, sizeof(q), fds, n);
}

int starter_run(int fd, const struct starter_place *place, int sock, int given, unsigned ngiven,
                struct starter_child *ret_child, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set(err, errno, "cannot make a socket pair");
    _cleanup_fd_ int gone = ends[0], theirs = ends[1];
    _cleanup_fd_ int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int parts[PARTS] = { theirs, sock, mounts, cwd };
    int r = mounts < 0 || cwd < 0 ? -errno : ask(fd, place, parts, given, ngiven);
    if (r < 0)
        return err_set(err, -r, "cannot ask for CRIU to be started");
    (void)close(take_fd(theirs)); /* the starter's copy alone is left, and ends with it */
    struct starter_child c = { .pidfd = -1 };
    size_t nfds = 0;
    if (fd_wait(gone, POLLIN, START_MS) <= 0 ||
        fd_recv_msg(gone, &c.pid, sizeof(c.pid), &c.pidfd, 1, &nfds) != (ssize_t)sizeof(c.pid) ||
        nfds != 1)
        return err_set(err, ECHILD, "CRIU was not started");
    c.gone = take_fd(gone);
    *ret_child = c;
    return 0;
}

void starter_wait(struct starter_child *c)
{
    if (fd_wait(c->pidfd, POLLIN, LEAVE_MS) <= 0)
        (void)pidfd_send_signal(c->pidfd, SIGKILL, NULL, 0);
    (void)fd_wait(c->gone, POLLIN, LEAVE_MS);
    (void)close(c->pidfd);
    (void)close(c->gone);
}

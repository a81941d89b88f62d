#include "keeper/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/ns_attach.h"
#include "wire/bucket.h"

#define ATTACH_MAX_S 20     /* then the kernel ends the job */
#define SERVER_MAX_MS 60000 /* its own patience, with tries, is less */
#define REPORT_MS 2000

struct attach_job {
    struct keeper *k;
    struct watch watch; /* on report_fd */
    int report_fd;
    pid_t pid;
    struct conn *asker;
};

/* ---- in the process ---- */

/* A first question to the filesystem, which is answered once the server has reached its bucket. A process that
 * waits for it cannot be killed, so another one does, and the server is killed if need be. */
static int ask_server(const struct attach_server *server, int mount_fd, struct err *err)
{
    struct bucket_report rep = { 0 };
    struct stat sb;
    int status = 1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(fstat(mount_fd, &sb) < 0);
    _cleanup_fd_ int done = pid < 0 ? -1 : pidfd_open(pid, 0);
    if (done < 0)
        return err_set(err, errno, "cannot start a process");
    bool late = fd_wait(done, POLLIN, SERVER_MAX_MS) <= 0;
    if (late)
        (void)pidfd_send_signal(server->pidfd, SIGKILL, NULL, 0);
    (void)waitpid(pid, &status, 0);
    if (!late && status == 0)
        return 0;
    if (late || fd_wait(server->report_fd, POLLIN, REPORT_MS) <= 0 ||
        fd_read_full(server->report_fd, &rep, sizeof(rep)) < 0)
        return err_set(err, ETIMEDOUT, "the bucket does not answer");
    rep.msg[sizeof(rep.msg) - 1] = '\0';
    return err_set(err, EIO, "the bucket cannot be shown: %s", rep.msg);
}

static _Noreturn void go_in(int pidfd, int mount_fd, const char *path,
                            const struct attach_server *server, int report)
{
    struct err err = ERR_INIT;
    int fds[] = { report, pidfd, mount_fd, server ? server->pidfd : report,
                  server ? server->report_fd : report };
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fd_keep_only(fds, ARRAY_LEN(fds)) < 0)
        _exit(1);
    const struct attach_server moved = { fds[3], fds[4] };
    int r = server ? ask_server(&moved, fds[2], &err) : 0;
    (void)alarm(ATTACH_MAX_S);
    if (r == 0)
        (void)ns_attach(fds[1], fds[2], path, &err);
    if (err.code && server)
        (void)pidfd_send_signal(moved.pidfd, SIGKILL, NULL, 0);
    if (r < 0)
        err.code = EHOSTUNREACH; /* the one failure with a name of its own */
    (void)fd_write_full(fds[0], &err, sizeof(err));
    _exit(0);
}

/* ---- in the keeper ---- */

static void on_report(struct watch *w, uint32_t events)
{
    struct attach_job *job = container_of(w, struct attach_job, watch);
    struct err err = ERR_INIT;
    if (fd_read_full(job->report_fd, &err, sizeof(err)) < 0) {
        err = (struct err)ERR_INIT;
        (void)err_set(&err, ETIMEDOUT, "the way to the path did not end");
    }
    err.msg[sizeof(err.msg) - 1] = '\0';
    if (err.code < 0 || err.code >= 4096)
        err.code = EIO;
    err.failure = err.code == EHOSTUNREACH ? FAIL_BUCKET_UNREACHABLE : FAIL_NONE;
    (void)waitpid(job->pid, NULL, 0);
    loop_remove(job->k->loop, &job->watch);
    (void)close(job->report_fd);
    if (job->asker)
        conn_result(job->asker, -err.code, &err);
    loop_later(job->k->loop, job);
}

static int start(struct attach_job *job, const struct keeper_request *q, int mount_fd,
                 const struct attach_server *server, struct err *err)
{
    int report[2];
    int pidfd = cells_pidfd(job->k, q->id);
    if (pidfd < 0)
        return err_fail(err, FAIL_SANDBOX_NOT_RUNNING, "it does not run");
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    job->pid = fork();
    if (job->pid == 0)
        go_in(pidfd, mount_fd, q->path, server, report[1]);
    (void)close(report[1]);
    int r = job->pid < 0 ? err_set(err, errno, "cannot start a process") : 0;
    if (r == 0)
        r = loop_add(job->k->loop, &job->watch, report[0], EPOLLIN);
    if (r < 0) {
        (void)close(report[0]);
        return r;
    }
    job->report_fd = report[0];
    return 0;
}

int attach_begin(struct conn *conn, int mount_fd, const struct attach_server *server,
                 struct err *err)
{
    struct attach_job *job = calloc(1, sizeof(*job));
    if (!job)
        return err_set(err, ENOMEM, "out of memory");
    *job = (struct attach_job){ .k = conn->k, .watch = { -1, on_report } };
    int r = start(job, &conn->req, mount_fd, server, err);
    if (r < 0) {
        free(job);
        return r;
    }
    conn_keep(conn, &job->asker);
    return 0;
}

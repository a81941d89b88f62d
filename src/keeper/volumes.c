/* Volumes: subvolumes that outlive cells, and the jobs that show one in a cell. Such a job is a
 * process that goes into the cell (ns_attach), so a path that waits there does not hold the loop. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/ns_attach.h"
#include "keeper/keeper.h"
#include "keeper/storage.h"

#define ATTACH_MAX_S 20 /* then the kernel ends the job */

struct attach_job {
    struct keeper *k;
    struct watch watch; /* on report_fd */
    int report_fd;
    pid_t pid;
    struct conn *asker;
};

void volumes_put(struct conn *conn)
{
    struct err err = ERR_INIT;
    const struct keeper_request *q = &conn->req;
    int r = storage_volume_put(conn->k->storage, q->volume, q->limits.disk_bytes, &err);
    conn_result(conn, r, &err);
}

void volumes_remove(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = storage_volume_trash(conn->k->storage, conn->req.volume, &err);
    sweeper_sweep(&conn->k->sweeper, -1);
    conn_result(conn, r, &err);
}

void volumes_stat(struct conn *conn)
{
    struct keeper_reply reply = { 0 };
    reply.usage.disk_bytes = storage_volume_used(conn->k->storage, conn->req.volume);
    conn_answer(conn, &reply);
}

static int list_one(const char *name, void *arg)
{
    struct conn *conn = arg;
    struct keeper_reply reply = { 0 };
    if (id_valid(name)) {
        (void)snprintf(reply.id, sizeof(reply.id), "%s", name);
        conn_send_more(conn, &reply);
    }
    return 0;
}

void volumes_list(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = storage_each(conn->k->storage, STORAGE_VOLUMES, list_one, conn);
    if (r < 0)
        (void)err_set(&err, -r, "cannot list the volumes");
    conn_result(conn, r, &err);
}

/* ---- showing one in a cell ---- */

static _Noreturn void go_in(int pidfd, int mount_fd, const char *path, int report)
{
    struct err err = ERR_INIT;
    int fds[] = { report, pidfd, mount_fd };
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)alarm(ATTACH_MAX_S);
    if (fd_keep_only(fds, ARRAY_LEN(fds)) < 0)
        _exit(1);
    (void)ns_attach(fds[1], fds[2], path, &err);
    err.what = NULL; /* a pointer means nothing to the reader */
    (void)fd_write_full(fds[0], &err, sizeof(err));
    _exit(0);
}

static void on_report(struct watch *w, uint32_t events)
{
    struct attach_job *job = container_of(w, struct attach_job, watch);
    struct err err = ERR_INIT;
    if (fd_read_full(job->report_fd, &err, sizeof(err)) < 0) {
        err = (struct err)ERR_INIT;
        (void)err_set(&err, ETIMEDOUT, "the way to the path did not end");
    }
    err.what = NULL;
    err.msg[sizeof(err.msg) - 1] = '\0';
    if (err.code < 0 || err.code >= 4096)
        err.code = EIO;
    (void)waitpid(job->pid, NULL, 0);
    loop_remove(job->k->loop, &job->watch);
    (void)close(job->report_fd);
    if (job->asker)
        conn_result(job->asker, -err.code, &err);
    loop_later(job->k->loop, job);
}

static int start(struct attach_job *job, int pidfd, int mount_fd, const char *path, struct err *err)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    job->pid = fork();
    if (job->pid == 0)
        go_in(pidfd, mount_fd, path, report[1]);
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

static int attach(struct attach_job *job, const struct keeper_request *q, struct err *err)
{
    struct keeper *k = job->k;
    _cleanup_fd_ int volume = -1, mount = -1;
    int pidfd = cells_pidfd(k, q->id);
    if (pidfd < 0)
        return err_name(err, ESRCH, "sandbox_not_running", "it does not run");
    int r = storage_volume(k->storage, q->volume, &volume, err);
    if (r == 0)
        r = ns_attach_prepare(cells_pid(k, q->id), volume, q->read_only != 0, &mount, err);
    return r < 0 ? r : start(job, pidfd, mount, q->path, err);
}

void volumes_attach(struct conn *conn)
{
    struct err err = ERR_INIT;
    struct attach_job *job = calloc(1, sizeof(*job));
    if (job) {
        job->k = conn->k;
        job->watch = (struct watch){ -1, on_report };
    }
    int r = job ? attach(job, &conn->req, &err) : err_set(&err, ENOMEM, "out of memory");
    if (r < 0) {
        free(job);
        conn_result(conn, r, &err);
        return;
    }
    conn_keep(conn, &job->asker);
}

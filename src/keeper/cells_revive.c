/* Cells whose processes are brought back rather than started: from a checkpoint's memory, or from
 * having been parked when a keeper died. A process of its own does it (memory.h) and reports. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "keeper/cell.h"
#include "keeper/memory.h"
#include "keeper/park.h"
#include "keeper/storage.h"
#include "kernel/cgroup.h"
#include "kernel/execs.h"
#include "kernel/uidrange.h"

#define LOG_MODULE "cells"
#define LITTLE_MORE 8 /* the part of its limit that it may have on top */

/* What the process says: that init is there, then how it ended. */
struct revival_report {
    int32_t code; /* 0, or a positive errno; REPORT_BORN */
    int32_t pid;
    int32_t failure;
    char msg[ERR_MSG_MAX];
};
#define REPORT_BORN (-1)

struct revival {
    struct cell *cell;
    struct watch watch;
    int fd; /* to the process */
    pid_t pid;
    bool rescue;
    struct cgroup_limits limits;
    struct keeper_request req;
};

/* ---- in the process ---- */

static void say(int fd, int r, const struct err *err)
{
    struct revival_report rep = { .code = -r };
    if (r < 0) {
        rep.failure = (int32_t)err->failure;
        (void)snprintf(rep.msg, sizeof(rep.msg), "%s", err->msg);
    }
    (void)fd_write_full(fd, &rep, sizeof(rep));
}

static int on_born(void *arg, pid_t pid, struct err *err)
{
    const int *fd = arg;
    const struct revival_report rep = { .code = REPORT_BORN, .pid = pid };
    char go;
    if (fd_write_full(*fd, &rep, sizeof(rep)) < 0 || fd_read_full(*fd, &go, 1) < 0)
        return err_set(err, ECANCELED, "the keeper wants it no more");
    return 0;
}

static _Noreturn void work(struct revival *v, struct memory_restore *m, int fd)
{
    struct cell *c = v->cell;
    struct err err = ERR_INIT;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    m->born = on_born;
    m->arg = &fd;
    int r =
        v->rescue ? memory_rescue(c->k, c->id, c->record.pid, &err) : memory_restore(c->k, m, &err);
    say(fd, r, &err);
    _exit(0);
}

/* ---- in the keeper ---- */

static void let_go(struct revival *v)
{
    struct keeper *k = v->cell->k;
    (void)waitpid(v->pid, NULL, 0);
    loop_remove(k->loop, &v->watch);
    (void)close(v->fd);
    v->cell->revival = NULL;
    loop_later(k->loop, v);
}

/* Its init is there, and nothing of it runs yet: from here on it is found again. */
static int note_born(struct revival *v, pid_t pid, struct err *err)
{
    struct cell *c = v->cell;
    _cleanup_fd_ int pidfd = pidfd_open(pid, 0), run_dir = cell_open_run_dir(c->k, c->id, err);
    if (pidfd < 0 || run_dir < 0 || record_start_time(pid, &c->record.start_time) < 0)
        return err_set(err, ESRCH, "the sandbox's first process is gone");
    c->record.pid = pid;
    int r = record_write(run_dir, &c->record, err);
    if (r == 0)
        r = loop_add(c->k->loop, &c->exit_watch, pidfd, EPOLLIN);
    if (r == 0)
        c->pidfd = take_fd(pidfd);
    return r < 0 ? r : fd_write_full(v->fd, "g", 1);
}

static void fail(struct revival *v, int r, const struct err *err)
{
    struct cell *c = v->cell;
    struct keeper *k = c->k;
    bool rescue = v->rescue;
    (void)kill(v->pid, SIGKILL);
    let_go(v);
    log_warn("%s err=%s sandbox=%s", err->msg, strerror(-r), c->id);
    if (rescue) { /* it crashed, for all that anybody can tell */
        (void)cgroup_kill(k->cgroups, c->id);
        return;
    }
    if (c->state == CELL_STARTING)
        cell_answer(c, r, err);
    (void)cgroup_kill(k->cgroups, c->id); /* CRIU too, if it is still there */
    if (c->pidfd < 0)
        cell_bury(c);
    else if (c->state != CELL_ENDING)
        cell_kill(c);
}

/* Nothing runs without them. What was shared when it was written down may not be so now: a little more than it may have
 * is its limit then. */
static int set_limits(struct revival *v, struct err *err)
{
    struct cell *c = v->cell;
    struct cgroup_host *groups = c->k->cgroups;
    struct cgroup_limits limits = v->limits;
    int r = cgroup_limit(groups, c->id, &limits, err);
    uint64_t used = r == -EBUSY ? cgroup_memory_bytes(groups, c->id) : 0;
    if (used == 0 || used > limits.memory_bytes + limits.memory_bytes / LITTLE_MORE)
        return r;
    log_warn("it has more memory than its limit sandbox=%s bytes=%llu", c->id,
             (unsigned long long)used);
    *err = (struct err)ERR_INIT;
    limits.memory_bytes = used;
    return cgroup_limit(groups, c->id, &limits, err);
}

static void finish(struct revival *v)
{
    struct cell *c = v->cell;
    struct keeper *k = c->k;
    struct err err = ERR_INIT;
    bool rescue = v->rescue;
    int r = rescue || c->state == CELL_ENDING ? 0 : set_limits(v, &err);
    if (r < 0) {
        fail(v, r, &err);
        return;
    }
    let_go(v);
    if (c->state == CELL_ENDING)
        return; /* someone ended it meanwhile: its exit tells */
    if (!c->pauses && !c->asleep)
        (void)cgroup_freeze(k->cgroups, c->id, false, NULL);
    if (rescue)
        return;
    c->state = CELL_RUNNING;
    execs_begin(k->execs, c->record.uid_base, c->id);
    cell_answer(c, 0, NULL);
}

static void on_report(struct watch *w, uint32_t events)
{
    struct revival *v = container_of(w, struct revival, watch);
    struct revival_report rep;
    struct err err = ERR_INIT;
    int r = fd_read_full(v->fd, &rep, sizeof(rep));
    if (r == 0 && rep.code == REPORT_BORN) {
        r = v->cell->state == CELL_STARTING ? note_born(v, rep.pid, &err)
                                            : err_set(&err, ECANCELED, "it was ended");
        if (r < 0)
            fail(v, r, &err);
        return;
    }
    if (r < 0) {
        r = err_set(&err, ECHILD, "the process that was to do it was killed");
    } else if (rep.code) {
        enum failure failure = failure_numbered(rep.failure);
        rep.msg[sizeof(rep.msg) - 1] = '\0';
        r = err_fail_as(&err, rep.code, failure ? failure : FAIL_CANNOT_RESTORE, "%s", rep.msg);
    }
    if (r < 0)
        fail(v, r, &err);
    else
        finish(v);
}

static int start(struct revival *v, struct memory_restore *m, struct err *err)
{
    int ends[2];
    struct keeper *k = v->cell->k;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set(err, errno, "cannot make a pair of sockets");
    v->pid = fork();
    if (v->pid == 0) {
        (void)close(ends[0]);
        work(v, m, ends[1]);
    }
    (void)close(ends[1]);
    v->fd = ends[0];
    int r = v->pid < 0 ? err_set(err, errno, "cannot start a process") : 0;
    if (r == 0)
        r = loop_add(k->loop, &v->watch, ends[0], EPOLLIN);
    if (r < 0) {
        (void)close(ends[0]);
        if (v->pid > 0) {
            (void)kill(v->pid, SIGKILL);
            (void)waitpid(v->pid, NULL, 0);
        }
    }
    return r;
}

static struct revival *revival_new(struct cell *c, bool rescue)
{
    struct revival *v = calloc(1, sizeof(*v));
    if (v)
        *v = (struct revival){ .cell = c, .watch = { -1, on_report }, .rescue = rescue };
    return v;
}

/* What a cell needs from outside before it is there: as much of it is made as for one that starts. */
static int furnish(struct revival *v, struct err *err)
{
    struct cell *c = v->cell;
    struct keeper *k = c->k;
    const struct cgroup_limits none = { 0 }; /* bringing it back may take more than it may have */
    _cleanup_(cgroup_fds_close) struct cgroup_fds fds = CGROUP_FDS_INIT;
    _cleanup_fd_ int run_dir = cell_open_run_dir(k, c->id, err), sock = -1;
    int r = run_dir < 0 ? run_dir : cell_make_socket(k, c->id, run_dir, &sock, err);
    if (r == 0)
        r = cgroup_make(k->cgroups, c->id, c->record.uid_base, &fds, err);
    if (r < 0)
        return r;
    r = cgroup_make_limits(k->cgroups, c->id, &none, &fds, err);
    struct memory_restore m = { .req = &v->req,
                                .uid_base = c->record.uid_base,
                                .run_dir = run_dir,
                                .listener = sock,
                                .fds = &fds };
    if (r == 0)
        r = start(v, &m, err);
    if (r < 0)
        (void)cgroup_remove(k->cgroups, c->id);
    return r;
}

void cell_drop_revival(struct cell *c)
{
    struct revival *v = c->revival;
    if (!v)
        return;
    (void)kill(v->pid, SIGKILL);
    let_go(v);
    (void)cgroup_kill(c->k->cgroups, c->id); /* CRIU too, if it is at work there */
}

int cell_revive(struct cell *c, const struct keeper_request *req, struct err *err)
{
    struct keeper *k = c->k;
    if (!cgroup_host_has_unified(k->cgroups))
        return err_fail(err, FAIL_MEMORY_UNSUPPORTED,
                        "memory is kept only where there is a unified cgroup hierarchy");
    struct revival *v = revival_new(c, false);
    if (!v)
        return err_set(err, ENOMEM, "out of memory");
    v->req = *req;
    v->limits = (struct cgroup_limits){ req->limits.memory_bytes, req->limits.cpu_millis,
                                        req->limits.pids };
    int r = uidrange_take(k->uids, &c->record.uid_base, err);
    if (r == 0) {
        (void)snprintf(c->record.image, sizeof(c->record.image), "%s", req->image);
        (void)snprintf(c->record.cgroup, sizeof(c->record.cgroup), "%s",
                       cgroup_host_name(k->cgroups));
        r = furnish(v, err);
        if (r < 0) {
            cell_remove_run_dir(k, c->id);
            uidrange_give_back(k->uids, c->record.uid_base);
        }
    }
    if (r < 0)
        free(v);
    else
        c->revival = v;
    return r;
}

void cell_rescue(struct cell *c)
{
    struct err err = ERR_INIT;
    struct revival *v = c->revival ? NULL : revival_new(c, true);
    int r = v ? start(v, &(struct memory_restore){ 0 }, &err) : -EBUSY;
    if (r < 0) {
        log_error("cannot bring it back: %s sandbox=%s", err.msg, c->id);
        free(v);
    } else {
        c->revival = v;
    }
}

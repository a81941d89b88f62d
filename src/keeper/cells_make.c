/* A new cell: built from the outside while its child builds the inside, then let go. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "keeper/cell.h"
#include "keeper/storage.h"
#include "kernel/cgroup.h"
#include "kernel/uidrange.h"

/* The rest of what the cell needs, made while its child builds the inside. */
static int provide(struct cell *c, const struct keeper_limits *l, struct cgroup_fds *fds,
                   struct ns_cell *cell, struct ns_spec *spec, struct err *err)
{
    const struct cgroup_limits limits = { l->memory_bytes, l->cpu_millis, l->pids };
    _cleanup_fd_ int box = -1;
    int r = storage_box(c->k->storage, c->id, l->disk_bytes, &box, err);
    spec->box_fd = box;
    if (r == 0)
        r = ns_give_root(cell, spec, err);
    if (r == 0)
        r = cgroup_make_limits(c->k->cgroups, c->id, &limits, fds, err);
    return r < 0 ? r : ns_release(cell, spec, err);
}

static int launch(struct cell *c, struct ns_spec *spec, const struct keeper_limits *limits,
                  struct cgroup_fds *fds, int run_dir, struct err *err)
{
    struct ns_cell cell = NS_CELL_INIT;
    int r = ns_prepare(c->k->ns, spec, &cell, err);
    if (r < 0)
        return r;
    c->record.pid = cell.pid;
    r = record_start_time(cell.pid, &c->record.start_time);
    if (r < 0)
        r = err_set(err, -r, "the cell's first process is gone");
    else
        r = record_write(run_dir, &c->record, err);
    if (r == 0)
        r = provide(c, limits, fds, &cell, spec, err);
    if (r == 0)
        r = loop_add(c->k->loop, &c->exit_watch, cell.pidfd, EPOLLIN);
    if (r == 0)
        r = loop_add(c->k->loop, &c->status_watch, cell.status_fd, EPOLLIN);
    if (r < 0) {
        (void)pidfd_send_signal(cell.pidfd, SIGKILL, NULL, 0);
        siginfo_t si;
        (void)waitid(P_PIDFD, (id_t)cell.pidfd, &si, WEXITED);
        loop_remove(c->k->loop, &c->exit_watch);
        ns_cell_close(&cell);
        return r;
    }
    c->pidfd = take_fd(cell.pidfd);
    c->status_fd = take_fd(cell.status_fd);
    return 0;
}

static int build(struct cell *c, const struct keeper_request *req, struct err *err)
{
    struct keeper *k = c->k;
    _cleanup_fd_ int image = -1, run_dir = -1, sock = -1;
    _cleanup_(cgroup_fds_close) struct cgroup_fds fds = CGROUP_FDS_INIT;

    int r = storage_image(k->storage, req->image, &image, err);
    if (r < 0)
        return r;
    r = uidrange_take(k->uids, &c->record.uid_base, err);
    if (r < 0)
        return r;
    (void)snprintf(c->record.image, sizeof(c->record.image), "%s", req->image);
    (void)snprintf(c->record.cgroup, sizeof(c->record.cgroup), "%s", cgroup_host_name(k->cgroups));
    run_dir = cell_open_run_dir(k, c->id, err);
    r = run_dir < 0 ? run_dir : cell_make_socket(k, c->id, run_dir, &sock, err);
    if (r < 0)
        goto undo_run_dir;
    r = cgroup_make(k->cgroups, c->id, c->record.uid_base, &fds, err);
    if (r < 0)
        goto undo_run_dir;
    /* Half of the memory, so that a full /dev/shm leaves room for programs to empty it again. */
    uint64_t shm = req->limits.memory_bytes ? req->limits.memory_bytes / 2 : NS_SHM_BYTES;
    bool apart = req->flags & KEEPER_MAKE_APART && storage_counts_writers(k->storage);
    const struct keeper_limits *l = &req->limits;
    const struct cgroup_limits shown = { l->memory_bytes, l->cpu_millis, l->pids };
    struct ns_spec spec = { c->id, image, -1, c->record.uid_base, &fds, sock, shm, &shown, apart };
    r = launch(c, &spec, &req->limits, &fds, run_dir, err);
    if (r == 0)
        return 0;
    (void)cgroup_remove(k->cgroups, c->id);
undo_run_dir:
    cell_remove_run_dir(k, c->id);
    uidrange_give_back(k->uids, c->record.uid_base);
    return r;
}

void cells_make(struct conn *conn)
{
    struct keeper *k = conn->k;
    struct err err = ERR_INIT;
    struct cell *c = cell_find(k, conn->req.id);

    if (c && c->state == CELL_LINGERING) {
        k->lingering--;
        cell_forget(c); /* the new one takes over its groups */
        c = NULL;
    }
    if (c && c->state != CELL_ENDING) {
        conn_result(conn,
                    c->revival ? err_fail(&err, FAIL_SANDBOX_BUSY, "it is being brought back")
                               : err_fail(&err, FAIL_CELL_EXISTS, "it runs already"),
                    &err);
        return;
    }
    if (c) {
        conn_result(conn, err_fail(&err, FAIL_SANDBOX_BUSY, "it is ending"), &err);
        return;
    }
    c = cell_add(k, conn->req.id);
    if (!c) {
        conn_result(conn, err_set(&err, ENOMEM, "out of memory"), &err);
        return;
    }
    int r = conn->req.point[0] ? cell_revive(c, &conn->req, &err) : build(c, &conn->req, &err);
    if (r < 0) {
        cell_forget(c);
        conn_result(conn, r, &err);
        return;
    }
    conn_keep(conn, &c->asker);
}

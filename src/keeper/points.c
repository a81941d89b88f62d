/* Checkpoints of boxes, and boxes made from them. Writing out what is dirty and telling the filesystem
 * may take long, so a process of its own does it and the loop goes on. It asks before it needs a
 * cell to stand still, and the cell stands still for that one step only. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/memory.h"
#include "keeper/park.h"
#include "keeper/record.h"
#include "keeper/storage.h"
#include "keeper/storage_memory.h"
#include "keeper/task.h"
#include "kernel/btrfs.h"
#include "kernel/cgroup.h"

#define FROZEN_WAIT_MS 100 /* one that does not stand still by then is taken as it moves */

struct point_job {
    struct task task;
    struct keeper_request req;
    int64_t froze_us;
    uint64_t frozen_us, memory_bytes;
    pid_t init; /* with memory */
    bool frozen, adrift;
    struct conn *asker;
    struct point_job *next;
};

static struct point_job *jobs; /* all that are under way */

/* ---- in the process ---- */

/* Ask for the cell to stand still; it does when this returns, or will at once. */
static int ask_rest(void *arg, struct err *err)
{
    const int *fd = arg;
    return task_ready(*fd, err);
}

static void tell_back(void *arg)
{
    const int *fd = arg;
    task_say(*fd, TASK_BACK);
}

static int take_point(struct keeper *k, const struct keeper_request *q, int fd, struct err *err)
{
    int r = storage_box_flush(k->storage, q->id, err);
    if (r == 0) /* of a request that is made again after a keeper's death */
        r = storage_point_trash(k->storage, q->point, err);
    if (r == 0)
        r = task_ready(fd, err);
    if (r < 0)
        return r;
    (void)cgroup_wait_frozen(k->cgroups, q->id, FROZEN_WAIT_MS);
    return storage_point_put(k->storage, q->point, q->id, err);
}

static int put_box(struct keeper *k, const struct keeper_request *q, struct err *err)
{
    bool made = (q->flags & KEEPER_BOX_MADE) && storage_box_is_made(k->storage, q->id);
    int r = made ? 0 : storage_box_make(k->storage, q->id, q->point, err);
    return r < 0 || (q->flags & KEEPER_BOX_AHEAD)
               ? r
               : storage_box_put(k->storage, q->id, q->limits.disk_bytes, err);
}

static void work(void *arg, int fd)
{
    const struct point_job *job = arg;
    struct keeper *k = job->task.k;
    const struct keeper_request *q = &job->req;
    struct err err = ERR_INIT;
    struct memory_dump d = {
        .req = q, .pid = job->init, .rest = ask_rest, .back = tell_back, .arg = &fd
    };
    int r = q->op != KEEPER_POINT_PUT        ? put_box(k, q, &err)
            : q->flags & KEEPER_POINT_MEMORY ? memory_dump(k, &d, &err)
                                             : take_point(k, q, fd, &err);
    if (d.adrift)
        task_say(fd, TASK_ADRIFT);
    task_end(fd, r, d.bytes, &err);
}

/* ---- in the keeper ---- */

static void thaw(struct point_job *job)
{
    if (!job->frozen)
        return;
    (void)cells_pause(job->task.k, job->req.id, false, NULL);
    job->frozen_us = (uint64_t)(clock_mono_us() - job->froze_us);
    job->frozen = false;
}

static int freeze(struct point_job *job, struct err *err)
{
    job->froze_us = clock_mono_us();
    int r = cells_pause(job->task.k, job->req.id, true, err);
    job->frozen = r == 0;
    return r == 0 ? task_go(&job->task) : r;
}

static void drop_half(struct point_job *job)
{
    storage_memory_abort(job->task.k->storage, job->req.point);
    (void)storage_memory_trash(job->task.k->storage, job->req.point, NULL);
    (void)storage_point_trash(job->task.k->storage, job->req.point, NULL);
    sweeper_sweep(&job->task.k->sweeper, -1);
}

/* Who asked is gone, and nobody will ever know of it. What was to be ended goes on. */
static void nobody_waits(struct point_job *job)
{
    if (job->req.op != KEEPER_POINT_PUT)
        return;
    if (job->req.flags & KEEPER_POINT_END)
        cells_rescue(job->task.k, job->req.id);
    drop_half(job);
}

void points_write_out(struct keeper *k, const char *point)
{
    int fd = -1;
    if (storage_memory(k->storage, point, &fd, NULL) == 0)
        sweeper_flush(&k->sweeper, fd);
}

static void leave_jobs(struct point_job *job)
{
    struct point_job **at = &jobs;
    while (*at && *at != job)
        at = &(*at)->next;
    if (*at)
        *at = job->next;
}

static bool is_written_down(const char *id)
{
    struct point_job *job = jobs;
    while (job && (!(job->req.flags & KEEPER_POINT_MEMORY) || strcmp(job->req.id, id) != 0))
        job = job->next;
    return job != NULL;
}

static void finish(struct point_job *job, int r, const struct err *err)
{
    struct keeper_reply reply = { .result = r,
                                  .frozen_us = job->frozen_us,
                                  .memory_bytes = job->memory_bytes };
    bool end = r == 0 && (job->req.flags & KEEPER_POINT_END);
    leave_jobs(job);
    task_done(&job->task);
    if (job->asker && end)
        cells_end_kept(take_ptr(job->asker), job->frozen_us, job->memory_bytes);
    else if (job->asker && r == 0)
        conn_answer(job->asker, &reply);
    else if (job->asker)
        conn_result(job->asker, r, err);
    else if (r == 0)
        nobody_waits(job);
    if (r == 0 && !end && (job->req.flags & KEEPER_POINT_MEMORY))
        points_write_out(job->task.k, job->req.point); /* if it is still there */
    loop_later(job->task.k->loop, job);
}

static void on_report(struct watch *w, uint32_t events)
{
    struct point_job *job = container_of(w, struct point_job, task.watch);
    struct err err = ERR_INIT;
    int r = task_hear(&job->task, &job->memory_bytes, &err);
    if (r == TASK_READY) {
        r = freeze(job, &err);
        if (r == 0)
            return;
        thaw(job); /* it was not told to go, and is killed */
        finish(job, r, &err);
        return;
    }
    if (r == TASK_BACK) {
        thaw(job);
        return;
    }
    if (r == TASK_ADRIFT) {
        job->adrift = true;
        return;
    }
    bool memory = job->req.flags & KEEPER_POINT_MEMORY;
    bool stays = r == 0 && (job->req.flags & KEEPER_POINT_END);
    if ((r == -ECHILD || job->adrift) && memory && job->frozen)
        cells_rescue(job->task.k, job->req.id);
    else if (!stays)
        thaw(job);
    if (job->frozen)
        job->frozen_us = (uint64_t)(clock_mono_us() - job->froze_us);
    finish(job, r, &err);
}

static void begin(struct conn *conn)
{
    struct err err = ERR_INIT;
    struct point_job *job = calloc(1, sizeof(*job));
    int r = job ? 0 : err_set(&err, ENOMEM, "out of memory");
    if (job) {
        *job = (struct point_job){ .task = { .k = conn->k, .watch = { -1, on_report } },
                                   .req = conn->req,
                                   .init = cells_pid(conn->k, conn->req.id) };
        r = task_start(&job->task, work, job, &err);
    }
    if (r < 0) {
        free(job);
        conn_result(conn, r, &err);
        return;
    }
    job->next = jobs;
    jobs = job;
    conn_keep(conn, &job->asker);
}

/* CRIU traces every process of the cell: killed ones end only when CRIU lets go. */
static void end_criu(struct keeper *k, const char *id)
{
    struct park_note note;
    _cleanup_fd_ int run_dir =
        openat(k->cells_dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (run_dir < 0 || park_note_read(run_dir, &note) < 0 || note.criu <= 0)
        return;
    const struct record rec = { .pid = note.criu, .start_time = note.criu_start };
    _cleanup_fd_ int pidfd = record_open_pid(&rec);
    if (pidfd >= 0)
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

void points_cancel(struct keeper *k, const char *id)
{
    struct err err = ERR_INIT;
    (void)err_fail(&err, FAIL_SANDBOX_NOT_RUNNING, "the sandbox was ended meanwhile");
    for (struct point_job *job = jobs, *next; job; job = next) {
        next = job->next;
        if (job->task.k != k || job->req.op != KEEPER_POINT_PUT || strcmp(job->req.id, id) != 0)
            continue;
        end_criu(k, id);
        job->frozen = false; /* killing the cell thaws it */
        leave_jobs(job);
        task_done(&job->task);
        drop_half(job);
        if (job->asker)
            conn_result(take_ptr(job->asker), -ESRCH, &err);
        loop_later(k->loop, job);
    }
}

void points_put(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = 0;
    if (conn->req.flags && cells_pid(conn->k, conn->req.id) < 0)
        r = err_fail(&err, FAIL_SANDBOX_NOT_RUNNING, "it does not run");
    else if (conn->req.flags && cells_come_back(conn->k, conn->req.id))
        r = err_fail(&err, FAIL_SANDBOX_BUSY, "it is being brought back");
    else if (conn->req.flags && is_written_down(conn->req.id))
        r = err_fail(&err, FAIL_SANDBOX_BUSY, "its memory is being written down");
    else if (conn->req.flags && !cgroup_host_has_unified(conn->k->cgroups))
        r = err_fail(&err, FAIL_MEMORY_UNSUPPORTED,
                     "memory is kept only where there is a unified cgroup hierarchy");
    if (r < 0)
        conn_result(conn, r, &err);
    else
        begin(conn);
}

void points_box(struct conn *conn)
{
    struct err err = ERR_INIT;
    if (!(conn->req.flags & KEEPER_BOX_AHEAD) && cells_pid(conn->k, conn->req.id) > 0)
        conn_result(conn, err_fail(&err, FAIL_SANDBOX_BUSY, "it runs"), &err);
    else
        begin(conn);
}

void points_remove(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = storage_memory_trash(conn->k->storage, conn->req.point, &err);
    if (r == 0)
        r = storage_point_trash(conn->k->storage, conn->req.point, &err);
    sweeper_sweep(&conn->k->sweeper, -1);
    conn_result(conn, r, &err);
}

bool points_changed(struct keeper *k, const char *id, const char *point)
{
    _cleanup_fd_ int box = -1, then = -1;
    if (storage_box_upper(k->storage, id, &box, NULL) < 0 ||
        storage_point_upper(k->storage, point, &then, NULL) < 0)
        return true;
    return btrfs_subvol_changed_since(box, then);
}

static int list_one(const char *name, void *arg)
{
    struct conn *conn = arg;
    struct keeper_reply reply = { 0 };
    _cleanup_fd_ int memory = -1;
    (void)snprintf(reply.id, sizeof(reply.id), "%s", name);
    if (id_valid(reply.id) && storage_memory(conn->k->storage, reply.id, &memory, NULL) == 0)
        reply.memory_bytes = storage_memory_bytes(memory);
    if (id_valid(reply.id) && !storage_memory_is_unfinished(conn->k->storage, reply.id))
        conn_send_more(conn, &reply);
    return 0;
}

void points_list(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = storage_each(conn->k->storage, STORAGE_POINTS, list_one, conn);
    if (r < 0)
        (void)err_set(&err, -r, "cannot list the checkpoints");
    conn_result(conn, r, &err);
}

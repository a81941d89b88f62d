/* Checkpoints of volumes. As points.c has it for boxes: a process writes out what is dirty, says that it is
 * ready, and does the step while those that see the volume stand still. Who they are comes with the
 * request: what a cell sees is the daemon's business. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/storage.h"
#include "keeper/task.h"
#include "kernel/cgroup.h"

#define FROZEN_WAIT_MS 100 /* one that does not stand still by then is taken as it moves */
#define SEEN_BY_MAX 65536

struct volume_job {
    struct task task;
    struct keeper_request req;
    char (*seen_by)[ID_SIZE];
    size_t n;
    int64_t froze_us;
    uint64_t frozen_us;
    bool frozen;
    struct conn *asker;
};

/* ---- in the process ---- */

static int take_point(const struct volume_job *job, int fd, struct err *err)
{
    struct keeper *k = job->task.k;
    int r = storage_volume_flush(k->storage, job->req.volume, err);
    if (r == 0) /* of a request that is made again after a keeper's death */
        r = storage_volume_point_trash(k->storage, job->req.point, err);
    if (r == 0)
        r = task_ready(fd, err);
    if (r < 0)
        return r;
    int64_t until = clock_mono_ms() + FROZEN_WAIT_MS;
    for (size_t i = 0; i < job->n; i++) {
        int64_t left = until - clock_mono_ms();
        (void)cgroup_wait_frozen(k->cgroups, job->seen_by[i], left > 0 ? (int)left : 0);
    }
    return storage_volume_point_put(k->storage, job->req.point, job->req.volume, err);
}

static void work(void *arg, int fd)
{
    const struct volume_job *job = arg;
    struct err err = ERR_INIT;
    const struct keeper_request *q = &job->req;
    int r = q->op == KEEPER_VOLUME_POINT_PUT
                ? take_point(job, fd, &err)
                : storage_volume_restore(job->task.k->storage, q->volume, q->point,
                                         q->limits.disk_bytes, &err);
    task_end(fd, r, 0, &err);
}

/* ---- in the keeper ---- */

/* Keeps those that stand still now: the others do not run, and are not woken in the end. */
static void pause_all(struct volume_job *job)
{
    size_t n = 0;
    for (size_t i = 0; i < job->n; i++)
        if (cells_pid(job->task.k, job->seen_by[i]) > 0 &&
            cells_pause(job->task.k, job->seen_by[i], true, NULL) == 0)
            memmove(job->seen_by[n++], job->seen_by[i], ID_SIZE);
    job->n = n;
}

static void thaw(struct volume_job *job)
{
    if (!job->frozen)
        return;
    for (size_t i = 0; i < job->n; i++)
        (void)cells_pause(job->task.k, job->seen_by[i], false, NULL);
    job->frozen_us = (uint64_t)(clock_mono_us() - job->froze_us);
    job->frozen = false;
}

static int freeze(struct volume_job *job)
{
    job->froze_us = clock_mono_us();
    pause_all(job);
    job->frozen = job->n > 0;
    return task_go(&job->task);
}

static void finish(struct volume_job *job, int r, const struct err *err)
{
    struct keeper_reply reply = { .result = r, .frozen_us = job->frozen_us };
    task_done(&job->task);
    if (job->asker && r == 0)
        conn_answer(job->asker, &reply);
    else if (job->asker)
        conn_result(job->asker, r, err);
    free(job->seen_by);
    loop_later(job->task.k->loop, job);
}

static void on_report(struct watch *w, uint32_t events)
{
    struct volume_job *job = container_of(w, struct volume_job, task.watch);
    struct err err = ERR_INIT;
    int r = task_hear(&job->task, NULL, &err);
    if (r == TASK_READY && !job->froze_us && freeze(job) == 0)
        return;
    thaw(job);
    if (r > 0)
        r = err_set(&err, EPROTO, "the process that was to do it does not do it");
    finish(job, r, &err);
}

/* A memory file of ids, each ID_SIZE bytes: nothing that could make us wait. */
static int read_seen_by(struct volume_job *job, int fd, struct err *err)
{
    struct stat sb;
    if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &sb) < 0 || sb.st_size % ID_SIZE ||
        sb.st_size / ID_SIZE > SEEN_BY_MAX)
        return err_set(err, EINVAL, "not a list of cells");
    size_t size = (size_t)sb.st_size;
    job->seen_by = malloc(size + 1);
    if (!job->seen_by)
        return err_set(err, ENOMEM, "out of memory");
    if (pread(fd, job->seen_by, size, 0) != (ssize_t)size)
        return err_set(err, EINVAL, "the list of cells is cut off");
    job->n = size / ID_SIZE;
    for (size_t i = 0; i < job->n; i++)
        if (job->seen_by[i][ID_SIZE - 1] || !id_valid(job->seen_by[i]))
            return err_set(err, EINVAL, "not a list of cells");
    return 0;
}

static void begin(struct conn *conn)
{
    struct err err = ERR_INIT;
    struct volume_job *job = calloc(1, sizeof(*job));
    int r = job ? 0 : err_set(&err, ENOMEM, "out of memory");
    if (job)
        *job = (struct volume_job){ .task = { .k = conn->k, .watch = { -1, on_report } },
                                    .req = conn->req };
    if (r == 0 && conn->passed[0] >= 0)
        r = read_seen_by(job, conn->passed[0], &err);
    if (r == 0)
        r = task_start(&job->task, work, job, &err);
    if (r < 0) {
        if (job)
            free(job->seen_by);
        free(job);
        conn_result(conn, r, &err);
        return;
    }
    conn_keep(conn, &job->asker);
}

void volume_points_put(struct conn *conn)
{
    begin(conn);
}

void volume_points_restore(struct conn *conn)
{
    begin(conn);
}

void volume_points_remove(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = storage_volume_point_trash(conn->k->storage, conn->req.point, &err);
    sweeper_sweep(&conn->k->sweeper, -1);
    conn_result(conn, r, &err);
}

void volume_points_list(struct conn *conn)
{
    conn_list_ids(conn, STORAGE_VOLUME_POINTS, "the checkpoints of volumes");
}

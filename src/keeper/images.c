/* Trees, and the jobs of warren-unpack: a process of its own does the work, the loop goes on. A
 * tree appears under its name only when it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "keeper/keeper.h"
#include "keeper/storage.h"
#include "keeper/storage_memory.h"
#include "wire/unpack.h"

struct unpack_job {
    struct keeper *k;
    struct unpack_job *next;
    struct watch watch; /* on report_fd */
    int report_fd;
    pid_t pid;
    enum keeper_op op;
    char tree[KEEPER_IMAGE_SIZE]; /* LAYER_PUT */
    char id[ID_SIZE];             /* DIFF: the cell that is paused */
    char point[ID_SIZE];          /* POINT_READ, POINT_LAY */
    struct unpack_bounds bounds;  /* LAYER_PUT, SPLIT */
    bool memory;                  /* not its files */
    bool naming;                  /* all is there; a second process writes it out and names it */
    struct conn *asker;
};

#define U64_TEXT_MAX 21 /* 20 digits and the NUL */

/* What a job is given; -1 ends them. */
struct job_fds {
    int fds[6];
};

static _Noreturn void become(const struct unpack_job *job, const char *word, int report,
                             const struct job_fds *given)
{
    char bytes[U64_TEXT_MAX], ratio[U64_TEXT_MAX];
    char *argv[] = { (char *)(uintptr_t) "warren-unpack", (char *)(uintptr_t)word, bytes, ratio,
                     NULL };
    int fds[ARRAY_LEN(given->fds) + 2] = { report };
    size_t n = 1;
    for (size_t i = 0; i < ARRAY_LEN(given->fds) && given->fds[i] >= 0; i++)
        fds[n++] = given->fds[i];
    fds[n] = job->k->unpack_exe;
    (void)snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)job->bounds.bytes);
    (void)snprintf(ratio, sizeof(ratio), "%llu", (unsigned long long)job->bounds.ratio);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fd_keep_only(fds, n + 1) < 0)
        _exit(1);
    for (size_t i = 0; i < n; i++)
        (void)fcntl(fds[i], F_SETFD, 0);
    (void)fcntl(fds[n], F_SETFD, FD_CLOEXEC);
    (void)execveat(fds[n], "", argv, environ, AT_EMPTY_PATH);
    _exit(1);
}

/* To the process that was started for it, or could not be. */
static int listen_to(struct unpack_job *job, const int report[2], struct err *err)
{
    int r = job->pid < 0 ? err_set(err, errno, "cannot start a process") : 0;
    (void)close(report[1]);
    if (r == 0)
        r = loop_add(job->k->loop, &job->watch, report[0], EPOLLIN);
    if (r < 0) {
        (void)close(report[0]);
        return r;
    }
    job->report_fd = report[0];
    return 0;
}

static int start(struct unpack_job *job, const char *word, const struct job_fds *given,
                 struct err *err)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    job->pid = fork();
    if (job->pid == 0)
        become(job, word, report[1], given);
    return listen_to(job, report, err);
}

/* A tree or a checkpoint, which is to get a name. */
static bool makes(const struct unpack_job *job)
{
    return job->op == KEEPER_LAYER_PUT || job->op == KEEPER_POINT_LAY;
}

static void drop_point(struct unpack_job *job)
{
    if (job->memory)
        storage_memory_abort(job->k->storage, job->point);
    else
        storage_point_abort(job->k->storage, job->point);
}

static int take_report(struct unpack_job *job, struct keeper_reply *reply, struct err *err)
{
    struct unpack_report rep;
    bool whole = fd_read_full(job->report_fd, &rep, sizeof(rep)) == 0;
    (void)waitpid(job->pid, NULL, 0);
    if (!whole)
        return err_set(err, ECHILD, "warren-unpack was killed");
    rep.msg[sizeof(rep.msg) - 1] = '\0';
    rep.diff_id[sizeof(rep.diff_id) - 1] = '\0';
    if (rep.code == ENOSPC)
        return err_fail(err, FAIL_NO_SPACE, "%s", rep.msg);
    if (rep.code) {
        enum failure failure = failure_numbered(rep.failure);
        if (failure != FAIL_INVALID_IMAGE && failure != FAIL_LAYER_TOO_LARGE)
            failure = FAIL_NONE; /* it reads hostile bytes: that is all it may say */
        return err_fail_as(err, rep.code > 0 && rep.code < 4096 ? rep.code : EINVAL, failure, "%s",
                           rep.msg);
    }
    reply->size_bytes = rep.size_bytes;
    memcpy(reply->diff_id, rep.diff_id, sizeof(reply->diff_id));
    return 0;
}

/* Whole, written out, and under its name. */
static int commit(struct unpack_job *job, struct err *err)
{
    struct storage *st = job->k->storage;
    return job->op == KEEPER_LAYER_PUT ? storage_image_commit(st, job->tree, err)
           : job->memory               ? storage_memory_commit(st, job->point, err)
                                       : storage_point_commit(st, job->point, err);
}

static _Noreturn void give_name(struct unpack_job *job, const struct keeper_reply *found,
                                int report)
{
    struct unpack_report rep = { .size_bytes = found->size_bytes };
    struct err err = ERR_INIT;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int r = commit(job, &err);
    memcpy(rep.diff_id, found->diff_id, sizeof(rep.diff_id));
    rep.code = r < 0 ? -r : 0;
    (void)snprintf(rep.msg, sizeof(rep.msg), "%s", err.msg);
    (void)fd_write_full(report, &rep, sizeof(rep));
    _exit(0);
}

/* Writing it out takes as long as the disk does, and all that others have written with it: by a process, too. It reports
 * what the first one found. */
static int start_naming(struct unpack_job *job, const struct keeper_reply *found, struct err *err)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    job->naming = true;
    job->pid = fork();
    if (job->pid == 0)
        give_name(job, found, report[1]);
    return listen_to(job, report, err);
}

static void drop_made(struct unpack_job *job, bool named)
{
    struct storage *st = job->k->storage;
    if (job->op == KEEPER_LAYER_PUT && named)
        (void)storage_image_trash(st, job->tree, NULL);
    else if (job->op == KEEPER_LAYER_PUT)
        storage_image_abort(st, job->tree);
    else if (named && job->memory)
        (void)storage_memory_trash(st, job->point, NULL);
    else if (named)
        (void)storage_point_trash(st, job->point, NULL);
    else
        drop_point(job);
}

void images_cancel(struct keeper *k, const char *id)
{
    for (struct unpack_job *job = k->jobs; job; job = job->next)
        if (job->op == KEEPER_DIFF && strcmp(job->id, id) == 0)
            (void)kill(job->pid, SIGKILL); /* the end of its report answers the caller */
}

static void finish(struct unpack_job *job, int r, const struct keeper_reply *found,
                   const struct err *err)
{
    struct keeper_reply reply = *found;
    if (job->op == KEEPER_DIFF)
        (void)cells_pause(job->k, job->id, false, NULL);
    if (makes(job) && (r < 0 || !job->asker)) /* nobody was told, so nobody will need it */
        drop_made(job, r == 0 && job->naming);
    if (makes(job))
        sweeper_sweep(&job->k->sweeper, -1);
    if (job->asker && r == 0)
        conn_answer(job->asker, &reply);
    else if (job->asker)
        conn_result(job->asker, r, err);
    for (struct unpack_job **at = &job->k->jobs; *at; at = &(*at)->next)
        if (*at == job) {
            *at = job->next;
            break;
        }
    loop_later(job->k->loop, job);
}

static void on_report(struct watch *w, uint32_t events)
{
    struct unpack_job *job = container_of(w, struct unpack_job, watch);
    struct keeper_reply reply = { 0 };
    struct err err = ERR_INIT;

    int r = take_report(job, &reply, &err);
    loop_remove(job->k->loop, &job->watch);
    (void)close(job->report_fd);
    if (r == 0 && makes(job) && !job->naming && job->asker) {
        r = start_naming(job, &reply, &err);
        if (r == 0)
            return;
    }
    finish(job, r, &reply, &err);
}

static struct unpack_job *job_new(struct conn *conn)
{
    struct unpack_job *job = calloc(1, sizeof(*job));
    if (!job)
        return NULL;
    job->k = conn->k;
    job->op = conn->req.op;
    job->watch = (struct watch){ -1, on_report };
    (void)snprintf(job->tree, sizeof(job->tree), "%s", conn->req.image);
    (void)snprintf(job->id, sizeof(job->id), "%s", conn->req.id);
    (void)snprintf(job->point, sizeof(job->point), "%s", conn->req.point);
    job->memory = conn->req.flags & KEEPER_POINT_MEMORY;
    job->bounds = (struct unpack_bounds){ conn->req.limits.disk_bytes, conn->req.ratio };
    return job;
}

/* Takes the job; r is how its start went. */
static void go_on(struct conn *conn, struct unpack_job *job, int r, const struct err *err)
{
    if (r < 0) {
        free(job);
        conn_result(conn, r, err);
        return;
    }
    job->next = job->k->jobs;
    job->k->jobs = job;
    /* The child has them: their ends must be seen there. */
    fd_close_all(conn->passed, CONN_FDS_MAX);
    conn->passed[0] = conn->passed[1] = -1;
    conn_keep(conn, &job->asker);
}

static int start_layer(struct unpack_job *job, const struct conn *conn, struct err *err)
{
    _cleanup_fd_ int dir = -1;
    int r = storage_image_begin(job->k->storage, job->tree, conn->req.parent, &dir, err);
    if (r < 0)
        return r;
    const struct job_fds given = { { conn->passed[0], dir, -1 } };
    r = start(job, UNPACK_APPLY, &given, err);
    if (r < 0)
        storage_image_abort(job->k->storage, job->tree);
    return r;
}

static int start_diff(struct unpack_job *job, const struct conn *conn, struct err *err)
{
    _cleanup_fd_ int upper = -1;
    int r = storage_box_upper(job->k->storage, job->id, &upper, err);
    if (r == 0)
        r = cells_pause(job->k, job->id, true, err);
    if (r < 0)
        return r;
    const struct job_fds given = { { upper, conn->passed[0], -1 } };
    r = start(job, UNPACK_DIFF, &given, err);
    if (r < 0)
        (void)cells_pause(job->k, job->id, false, NULL);
    return r;
}

static int start_point_read(struct unpack_job *job, const struct conn *conn, struct err *err)
{
    _cleanup_fd_ int upper = -1;
    int r = job->memory ? storage_memory(job->k->storage, job->point, &upper, err)
                        : storage_point_upper(job->k->storage, job->point, &upper, err);
    const struct job_fds given = { { upper, conn->passed[0], -1 } };
    return r < 0 ? r : start(job, UNPACK_READ, &given, err);
}

static int start_point_lay(struct unpack_job *job, const struct conn *conn, struct err *err)
{
    _cleanup_fd_ int upper = -1;
    uint64_t most = conn->req.limits.disk_bytes;
    int r = job->memory ? storage_memory_begin(job->k->storage, job->point, &upper, err)
                        : storage_point_begin(job->k->storage, job->point, most, &upper, err);
    const struct job_fds given = { { conn->passed[0], upper, -1 } };
    if (r == 0)
        r = start(job, UNPACK_LAY, &given, err);
    if (r < 0)
        drop_point(job);
    return r;
}

static int start_split(struct unpack_job *job, const struct conn *conn, struct err *err)
{
    const struct job_fds given = { { conn->passed[0], conn->passed[1], -1 } };
    return start(job, UNPACK_SPLIT, &given, err);
}

static int start_changes(struct unpack_job *job, const struct conn *conn, struct err *err)
{
    _cleanup_fd_ int upper = -1, image = -1;
    int r = storage_box_upper(job->k->storage, job->id, &upper, err);
    if (r == 0)
        r = storage_image(job->k->storage, conn->req.image, &image, err);
    const struct job_fds given = { { conn->passed[0], upper, image, -1 } };
    return r < 0 ? r : start(job, UNPACK_CHANGES, &given, err);
}

/* A sandbox's files, or a checkpoint's. */
static int open_state(struct storage *st, const char *id, bool box, int *ret_fd, struct err *err)
{
    return box ? storage_box_upper(st, id, ret_fd, err) : storage_point_upper(st, id, ret_fd, err);
}

static int start_compare(struct unpack_job *job, const struct conn *conn, struct err *err)
{
    const struct keeper_request *q = &conn->req;
    struct storage *st = job->k->storage;
    _cleanup_fd_ int now = -1, before = -1, image = -1;
    int r = open_state(st, q->id, q->flags & KEEPER_COMPARE_BOX, &now, err);
    if (r == 0)
        r = open_state(st, q->point, q->flags & KEEPER_COMPARE_BOX_BEFORE, &before, err);
    if (r == 0)
        r = storage_image(st, q->image, &image, err);
    const struct job_fds given = { { conn->passed[1], now, image, before, conn->passed[0], -1 } };
    return r < 0 ? r : start(job, UNPACK_COMPARE, &given, err);
}

static void begin(struct conn *conn,
                  int (*fn)(struct unpack_job *, const struct conn *, struct err *))
{
    struct err err = ERR_INIT;
    struct unpack_job *job = job_new(conn);
    int r = job ? fn(job, conn, &err) : err_set(&err, ENOMEM, "out of memory");
    go_on(conn, job, r, &err);
}

void images_layer(struct conn *conn)
{
    begin(conn, start_layer);
}

void images_diff(struct conn *conn)
{
    begin(conn, start_diff);
}

void images_split(struct conn *conn)
{
    begin(conn, start_split);
}

void images_changes(struct conn *conn)
{
    begin(conn, start_changes);
}

void images_point_read(struct conn *conn)
{
    begin(conn, start_point_read);
}

void images_point_lay(struct conn *conn)
{
    begin(conn, start_point_lay);
}

void images_compare(struct conn *conn)
{
    begin(conn, start_compare);
}

void images_remove(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = storage_image_trash(conn->k->storage, conn->req.image, &err);
    sweeper_sweep(&conn->k->sweeper, -1);
    conn_result(conn, r, &err);
}

static int list_one(const char *name, void *arg)
{
    struct conn *conn = arg;
    struct keeper_reply reply = { 0 };
    if (strlen(name) == KEEPER_IMAGE_SIZE - 1) {
        (void)snprintf(reply.image, sizeof(reply.image), "%s", name);
        conn_send_more(conn, &reply);
    }
    return 0;
}

void images_list(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = storage_each(conn->k->storage, STORAGE_IMAGES, list_one, conn);
    if (r < 0)
        (void)err_set(&err, -r, "cannot list the images");
    conn_result(conn, r, &err);
}

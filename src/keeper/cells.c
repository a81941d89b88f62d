/* The life of cells. Starting: made, its child at work. Running: warren-init is up. Ending: its
 * pid 1 was killed and is not gone yet. A cell leaves the table when its last process is gone and
 * its groups, id range and run directory have been given back; its storage is another matter. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "keeper/keeper.h"
#include "keeper/record.h"
#include "keeper/storage.h"
#include "kernel/cgroup.h"
#include "kernel/uidrange.h"

#define LOG_MODULE "cells"
#define INIT_BACKLOG 128
#define SHM_BYTES (64ull * 1024 * 1024) /* without a memory limit */
#define STALE_TRIES 100                 /* of 10 ms */
#define LINGER_TRIES 600 /* ticks before a group that will not empty is left to the next start */

enum cell_state { CELL_STARTING, CELL_RUNNING, CELL_ENDING, CELL_LINGERING };

struct cell {
    struct keeper *k;
    struct cell *next;
    char id[ID_SIZE];
    enum cell_state state;
    bool delete_storage;
    bool paused; /* a diff reads its files */
    unsigned tries;
    struct record record;
    struct keeper_usage last; /* what it had used when it ended */
    int pidfd, status_fd;
    int root_fd; /* while ending: keeps the root filesystem until the sweeper lets go of it */
    struct watch exit_watch, status_watch;
    struct conn *asker; /* NULL, or who waits for the present state to end */
};

/* ---- the table ---- */

static struct cell **bucket_of(struct keeper *k, const char *id)
{
    uint32_t h = 2166136261u;
    for (const char *p = id; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return &k->cells[h % CELL_BUCKETS];
}

static struct cell *find(struct keeper *k, const char *id)
{
    struct cell *c = *bucket_of(k, id);
    while (c && strcmp(c->id, id) != 0)
        c = c->next;
    return c;
}

static struct cell *add(struct keeper *k, const char *id)
{
    struct cell *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->k = k;
    (void)snprintf(c->id, sizeof(c->id), "%s", id);
    c->pidfd = c->status_fd = c->root_fd = c->exit_watch.fd = c->status_watch.fd = -1;
    struct cell **b = bucket_of(k, id);
    c->next = *b;
    *b = c;
    return c;
}

static void forget(struct cell *c)
{
    struct cell **at = bucket_of(c->k, c->id);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    loop_remove(c->k->loop, &c->exit_watch);
    loop_remove(c->k->loop, &c->status_watch);
    fd_close_all(&c->pidfd, 1);
    fd_close_all(&c->status_fd, 1);
    fd_close_all(&c->root_fd, 1);
    loop_later(c->k->loop, c);
}

static void answer_asker(struct cell *c, int r, const struct err *err)
{
    struct conn *asker = take_ptr(c->asker);
    if (asker)
        conn_result(asker, r, err);
}

/* ---- the run directory ---- */

static int open_run_dir(struct keeper *k, const char *id, struct err *err)
{
    if ((mkdirat(k->cells_dir, id, 0700) < 0 && errno != EEXIST) ||
        fchmodat(k->cells_dir, id, 0711, 0) < 0)
        return err_set(err, errno, "cannot make the run directory of '%s'", id);
    int fd = openat(k->cells_dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_set(err, errno, "cannot open the run directory of '%s'", id) : fd;
}

static void remove_run_dir(struct keeper *k, const char *id)
{
    char path[ID_SIZE + 16];
    (void)snprintf(path, sizeof(path), "%s/init.sock", id);
    (void)unlinkat(k->cells_dir, path, 0);
    (void)snprintf(path, sizeof(path), "%s/record", id);
    (void)unlinkat(k->cells_dir, path, 0);
    (void)unlinkat(k->cells_dir, id, AT_REMOVEDIR);
}

/* Bound and listening from here, so that a client can connect before init has come up. By way of
 * the open directory: a socket's path has room for 107 bytes, and the run directory may be long. */
static int make_init_socket(struct keeper *k, const char *id, int run_dir, int *ret_fd,
                            struct err *err)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/init.sock", run_dir);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)unlinkat(run_dir, "init.sock", 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
        fchownat(run_dir, "init.sock", k->client_uid, (gid_t)-1, 0) < 0 ||
        fchmodat(run_dir, "init.sock", 0600, 0) < 0 || listen(fd, INIT_BACKLOG) < 0)
        return err_set(err, errno, "cannot make the socket of '%s'", id);
    *ret_fd = take_fd(fd);
    return 0;
}

/* ---- ending ---- */

/* Why the child could not become warren-init: 1 and its words, or 0 if it left none. */
static int read_report(struct cell *c, struct err *err)
{
    if (c->status_fd < 0 || read(c->status_fd, err, sizeof(*err)) != (ssize_t)sizeof(*err))
        return 0;
    err->what = NULL; /* the child's pointers mean nothing here */
    err->msg[sizeof(err->msg) - 1] = '\0';
    if (err->code <= 0)
        err->code = EIO;
    log_error("a cell could not be built: %s err=%s sandbox=%s", err->msg, strerror(err->code),
              c->id);
    return 1;
}

/* The last process is gone. */
static void bury(struct cell *c)
{
    struct keeper *k = c->k;
    siginfo_t si;
    if (c->pidfd >= 0)
        (void)waitid(P_PIDFD, (id_t)c->pidfd, &si, WEXITED | WNOHANG); /* not ours: no matter */
    loop_remove(k->loop, &c->exit_watch);
    loop_remove(k->loop, &c->status_watch);
    uidrange_give_back(k->uids, c->record.uid_base);
    remove_run_dir(k, c->id);
    struct err err = ERR_INIT;
    c->last.cpu_us = cgroup_cpu_us(k->cgroups, c->id); /* nobody in it can add to this any more */
    int r = c->delete_storage ? storage_box_trash(k->storage, c->id, &err) : 0;
    sweeper_sweep(&k->sweeper, take_fd(c->root_fd));
    struct conn *asker = take_ptr(c->asker);
    if (asker)
        conn_result_usage(asker, r, &err, &c->last);
    if (cgroup_remove(k->cgroups, c->id) == 0) {
        forget(c);
        return;
    }
    c->state = CELL_LINGERING;
    k->lingering++;
    loop_want_tick(k->loop, true);
}

static void on_exit_event(struct watch *w, uint32_t events)
{
    struct cell *c = container_of(w, struct cell, exit_watch);
    struct err err = ERR_INIT;
    if (c->state == CELL_RUNNING) {
        log_warn("its first process died sandbox=%s", c->id);
        c->last.cpu_us = cgroup_cpu_us(c->k->cgroups, c->id);
        c->last.disk_bytes = storage_box_used(c->k->storage, c->id);
        server_notify_exit(c->k, c->id, &c->last);
    } else if (c->state == CELL_STARTING) {
        if (read_report(c, &err) == 0)
            (void)err_set(&err, ECHILD, "the sandbox's first process died while starting");
        answer_asker(c, -err.code, &err);
    }
    bury(c);
}

static void kill_cell(struct cell *c)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)c->record.pid);
    if (c->root_fd < 0)
        c->root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    c->last.memory_bytes = cgroup_memory_bytes(c->k->cgroups, c->id);
    c->last.disk_bytes = storage_box_used(c->k->storage, c->id);
    if (c->paused) /* v1's freezer keeps even a killed process */
        (void)cells_pause(c->k, c->id, false, NULL);
    c->state = CELL_ENDING;
    (void)pidfd_send_signal(c->pidfd, SIGKILL, NULL, 0); /* takes its whole pid namespace along */
}

void cells_end(struct conn *conn)
{
    struct keeper *k = conn->k;
    bool delete = conn->req.op == KEEPER_DELETE;
    struct cell *c = find(k, conn->req.id);

    if (c && c->state == CELL_LINGERING)
        c = NULL;
    if (!c) {
        struct err err = ERR_INIT;
        int r = delete ? storage_box_trash(k->storage, conn->req.id, &err) : 0;
        if (delete)
            sweeper_sweep(&k->sweeper, -1);
        conn_result(conn, r, &err);
        return;
    }
    struct err err = ERR_INIT;
    (void)err_name(&err, ECANCELED, "superseded", "another operation took its place");
    answer_asker(c, -ECANCELED, &err);
    c->delete_storage |= delete;
    conn_keep(conn, &c->asker);
    if (c->state != CELL_ENDING)
        kill_cell(c);
}

void cells_tick(struct keeper *k)
{
    for (size_t b = 0; k->lingering && b < CELL_BUCKETS; b++)
        for (struct cell *c = k->cells[b], *next; c; c = next) {
            next = c->next;
            if (c->state != CELL_LINGERING)
                continue;
            if (cgroup_remove(k->cgroups, c->id) < 0 && ++c->tries < LINGER_TRIES)
                continue;
            k->lingering--;
            forget(c);
        }
    loop_want_tick(k->loop, k->lingering > 0);
}

/* ---- making ---- */

/* warren-init was started, or the child says why not. */
static void on_status(struct watch *w, uint32_t events)
{
    struct cell *c = container_of(w, struct cell, status_watch);
    struct err err = ERR_INIT;
    loop_remove(c->k->loop, &c->status_watch);
    if (c->state != CELL_STARTING)
        return;
    if (read_report(c, &err)) {
        answer_asker(c, -err.code, &err);
        kill_cell(c);
        return;
    }
    if (fd_wait(c->pidfd, POLLIN, 0) > 0)
        return; /* it died without a word: the exit event tells */
    c->state = CELL_RUNNING;
    fd_close_all(&c->status_fd, 1);
    c->status_fd = -1;
    answer_asker(c, 0, NULL);
}

/* The rest of what the cell needs, made while its child builds the inside. */
static int provide(struct cell *c, const struct keeper_limits *l, struct cgroup_fds *fds,
                   struct ns_cell *cell, struct ns_spec *spec, struct err *err)
{
    const struct cgroup_limits limits = { l->memory_bytes, l->cpu_millis, l->pids };
    _cleanup_fd_ int box = -1;
    int r = cgroup_make_limits(c->k->cgroups, c->id, &limits, fds, err);
    if (r == 0)
        r = storage_box(c->k->storage, c->id, l->disk_bytes, &box, err);
    spec->box_fd = box;
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
    run_dir = open_run_dir(k, c->id, err);
    r = run_dir < 0 ? run_dir : make_init_socket(k, c->id, run_dir, &sock, err);
    if (r < 0)
        goto undo_run_dir;
    r = cgroup_make(k->cgroups, c->id, c->record.uid_base, &fds, err);
    if (r < 0)
        goto undo_run_dir;
    /* Half of the memory, so that a full /dev/shm leaves room for programs to empty it again. */
    uint64_t shm = req->limits.memory_bytes ? req->limits.memory_bytes / 2 : SHM_BYTES;
    struct ns_spec spec = { c->id, image, -1, c->record.uid_base, &fds, sock, shm };
    r = launch(c, &spec, &req->limits, &fds, run_dir, err);
    if (r == 0)
        return 0;
    (void)cgroup_remove(k->cgroups, c->id);
undo_run_dir:
    remove_run_dir(k, c->id);
    uidrange_give_back(k->uids, c->record.uid_base);
    return r;
}

void cells_make(struct conn *conn)
{
    struct keeper *k = conn->k;
    struct err err = ERR_INIT;
    struct cell *c = find(k, conn->req.id);

    if (c && c->state == CELL_LINGERING) {
        k->lingering--;
        forget(c); /* the new one takes over its groups */
        c = NULL;
    }
    if (c && c->state != CELL_ENDING) {
        conn_result(conn, err_name(&err, EEXIST, "cell_exists", "it runs already"), &err);
        return;
    }
    if (c) {
        conn_result(conn, err_name(&err, EBUSY, "sandbox_busy", "it is ending"), &err);
        return;
    }
    c = add(k, conn->req.id);
    if (!c) {
        conn_result(conn, err_set(&err, ENOMEM, "out of memory"), &err);
        return;
    }
    c->exit_watch.fn = on_exit_event;
    c->status_watch.fn = on_status;
    int r = build(c, &conn->req, &err);
    if (r < 0) {
        forget(c);
        conn_result(conn, r, &err);
        return;
    }
    conn_keep(conn, &c->asker);
}

/* ---- the short ones ---- */

void cells_limits(struct conn *conn)
{
    struct err err = ERR_INIT;
    const struct keeper_limits *l = &conn->req.limits;
    const struct cgroup_limits limits = { l->memory_bytes, l->cpu_millis, l->pids };
    struct cell *c = find(conn->k, conn->req.id);
    int r = 0;
    if (!c || c->state != CELL_RUNNING)
        r = err_name(&err, ESRCH, "sandbox_not_running", "it does not run");
    if (r == 0)
        r = cgroup_limit(conn->k->cgroups, c->id, &limits, &err);
    if (r == 0 && l->disk_bytes)
        r = storage_box_limit(conn->k->storage, c->id, l->disk_bytes, &err);
    conn_result(conn, r, &err);
}

void cells_freeze(struct conn *conn)
{
    struct err err = ERR_INIT;
    struct cell *c = find(conn->k, conn->req.id);
    int r = c && c->state == CELL_RUNNING
                ? cgroup_freeze(conn->k->cgroups, c->id, conn->req.op == KEEPER_FREEZE, &err)
                : err_name(&err, ESRCH, "sandbox_not_running", "it does not run");
    conn_result(conn, r, &err);
}

int cells_pause(struct keeper *k, const char *id, bool on, struct err *err)
{
    struct cell *c = find(k, id);
    if (!c || c->state != CELL_RUNNING || c->paused == on)
        return 0;
    int r = cgroup_freeze(k->cgroups, id, on, err);
    if (r >= 0)
        c->paused = on;
    return r;
}

pid_t cells_pid(struct keeper *k, const char *id)
{
    struct cell *c = find(k, id);
    return c && c->state == CELL_RUNNING ? c->record.pid : -ESRCH;
}

int cells_pidfd(struct keeper *k, const char *id)
{
    struct cell *c = find(k, id);
    return c && c->state == CELL_RUNNING ? c->pidfd : -ESRCH;
}

void cells_stat(struct conn *conn)
{
    struct keeper_reply reply = { 0 };
    struct cgroup_usage u = { 0 };
    struct cell *c = find(conn->k, conn->req.id);
    if (c && c->state == CELL_RUNNING)
        (void)cgroup_usage(conn->k->cgroups, c->id, &u, NULL);
    reply.running = c && c->state == CELL_RUNNING;
    reply.usage = (struct keeper_usage){
        .memory_bytes = u.memory_bytes,
        .memory_peak_bytes = u.memory_peak_bytes,
        .cpu_us = u.cpu_us,
        .oom_kills = u.oom_kills,
        .pids = u.pids,
        .disk_bytes = storage_box_used(conn->k->storage, conn->req.id),
    };
    conn_answer(conn, &reply);
}

static int list_stored(const char *name, void *arg)
{
    struct conn *conn = arg;
    if (id_valid(name) && !find(conn->k, name)) {
        struct keeper_reply reply = { 0 };
        (void)snprintf(reply.id, sizeof(reply.id), "%s", name);
        conn_send_more(conn, &reply);
    }
    return 0;
}

void cells_list(struct conn *conn)
{
    for (size_t b = 0; b < CELL_BUCKETS; b++)
        for (struct cell *c = conn->k->cells[b]; c; c = c->next) {
            struct keeper_reply reply = { .running = c->state == CELL_RUNNING };
            if (c->state == CELL_LINGERING)
                continue;
            (void)snprintf(reply.id, sizeof(reply.id), "%s", c->id);
            (void)snprintf(reply.image, sizeof(reply.image), "%s", c->record.image);
            conn_send_more(conn, &reply);
        }
    int r = storage_each(conn->k->storage, STORAGE_BOXES, list_stored, conn);
    struct err err = ERR_INIT;
    if (r < 0)
        (void)err_set(&err, -r, "cannot list the stored sandboxes");
    conn_result(conn, r, &err);
}

/* ---- a new keeper's first look around ---- */

static void adopt_one(struct keeper *k, const char *id)
{
    struct record rec;
    _cleanup_fd_ int dir =
        openat(k->cells_dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int pidfd = dir < 0 ? -errno : record_read(dir, &rec);
    if (pidfd >= 0)
        pidfd = record_open_pid(&rec);
    struct cell *c = pidfd >= 0 ? add(k, id) : NULL;
    if (!c) {
        remove_run_dir(k, id);
        if (pidfd >= 0)
            (void)close(pidfd);
        return;
    }
    c->record = rec;
    c->pidfd = pidfd;
    c->state = CELL_RUNNING;
    c->exit_watch.fn = on_exit_event;
    c->status_watch.fn = on_status;
    (void)uidrange_adopt(k->uids, rec.uid_base);
    (void)cgroup_freeze(k->cgroups, id, false, NULL); /* a diff that the former keeper's end cut */
    if (fchownat(dir, "init.sock", k->client_uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
        log_warn("its socket may still belong to another user sandbox=%s", id);
    if (loop_add(k->loop, &c->exit_watch, pidfd, EPOLLIN) < 0)
        log_error("cannot watch a running cell sandbox=%s", id);
    log_info("adopted sandbox=%s pid=%d", id, (int)rec.pid);
}

static void remove_stale_group(const char *id, void *arg)
{
    struct keeper *k = arg;
    if (find(k, id))
        return;
    /* A child that was never released may still be leaving: its group goes only after it. */
    (void)cgroup_kill(k->cgroups, id);
    for (int i = 0; cgroup_remove(k->cgroups, id) < 0 && i < STALE_TRIES; i++)
        (void)poll(NULL, 0, 10);
}

int cells_adopt(struct keeper *k, struct err *err)
{
    int fd = openat(k->cells_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return err_set(err, errno, "cannot list the cells");
    for (struct dirent *e; (e = readdir(d));)
        if (id_valid(e->d_name))
            adopt_one(k, e->d_name);
    (void)closedir(d);
    (void)cgroup_each(k->cgroups, remove_stale_group, k);
    return 0;
}

int cells_kill_all(struct keeper *k)
{
    int left = 0;
    for (size_t b = 0; b < CELL_BUCKETS; b++)
        for (struct cell *c = k->cells[b], *next; c; c = next) {
            next = c->next;
            kill_cell(c);
            if (fd_wait(c->pidfd, POLLIN, 10000) <= 0)
                left++;
            else
                bury(c);
        }
    for (int i = 0; k->lingering && i < LINGER_TRIES; i++) {
        (void)poll(NULL, 0, 10);
        cells_tick(k);
    }
    return left || k->lingering ? -EBUSY : 0;
}

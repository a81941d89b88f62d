/* Buckets: filesystems that warren-bucket serves, one for each place where a cell sees one. The
 * keeper makes the filesystem, hands its device over and keeps nothing that could wait for it: only the
 * job that puts it into the cell looks inside. The program outlives the keeper, and ends with the cell: who is
 * at work in a filesystem whose server does not answer can only be killed after the server. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "keeper/attach.h"
#include "keeper/keeper.h"
#include "keeper/record.h"
#include "keeper/storage.h"
#include "kernel/cgroup.h"
#include "kernel/mount.h"
#include "kernel/uidrange.h"
#include "wire/bucket.h"

#define LOG_MODULE "buckets"
#define MOUNT_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define END_MS 5000
#define SPOOL_BYTES (8ull * 1024 * 1024 * 1024) /* files that are being written, of one server */
#define GROUP_TRIES 250 /* ticks before a group that does not get empty is left to the next start */

/* Of each: s3fs, the relay, and the pages of what is being written. */
static const struct cgroup_limits limits = { .memory_bytes = 256ull * 1024 * 1024,
                                             .cpu_millis = 1000,
                                             .pids = 192 };

/* Where one is seen; kept beside its record. */
struct bucket_place {
    char cell[ID_SIZE];
    char volume[ID_SIZE];
    char path[KEEPER_PATH_SIZE];
};

struct bucket {
    struct keeper *k;
    struct bucket *next;
    char id[ID_SIZE]; /* the name of its directory */
    struct bucket_place place;
    struct record record; /* its range's first id is the program's user */
    int pidfd;
    struct watch watch;
    bool ended;     /* its group alone is left */
    unsigned tries; /* to remove that */
};

static struct bucket *find(struct keeper *k, const struct bucket_place *at)
{
    for (struct bucket *b = k->buckets; b; b = b->next)
        if (!b->ended && strcmp(b->place.cell, at->cell) == 0 &&
            strcmp(b->place.path, at->path) == 0)
            return b;
    return NULL;
}

static void forget_dir(struct keeper *k, const char *id)
{
    char path[ID_SIZE + 16];
    (void)snprintf(path, sizeof(path), "%s/record", id);
    (void)unlinkat(k->buckets_dir, path, 0);
    (void)snprintf(path, sizeof(path), "%s/place", id);
    (void)unlinkat(k->buckets_dir, path, 0);
    (void)unlinkat(k->buckets_dir, id, AT_REMOVEDIR);
}

/* The last step; false: s3fs is still on its way out. */
static bool leave(struct bucket *b)
{
    struct bucket **at = &b->k->buckets;
    if (cgroup_remove(b->k->cgroups, b->id) < 0 && ++b->tries < GROUP_TRIES)
        return false;
    while (*at && *at != b)
        at = &(*at)->next;
    if (*at)
        *at = b->next;
    if (b->record.uid_base)
        uidrange_give_back(b->k->uids, b->record.uid_base);
    forget_dir(b->k, b->id);
    (void)storage_spool_trash(b->k->storage, b->id, NULL);
    sweeper_sweep(&b->k->sweeper, -1);
    loop_later(b->k->loop, b);
    return true;
}

static void end(struct bucket *b)
{
    loop_remove(b->k->loop, &b->watch);
    fd_close_all(&b->pidfd, 1);
    b->pidfd = -1;
    b->ended = true;
    (void)cgroup_kill(b->k->cgroups, b->id);
    if (leave(b))
        return;
    b->k->lingering++;
    loop_want_tick(b->k->loop, true);
}

void buckets_tick(struct keeper *k)
{
    for (struct bucket *b = k->buckets, *next; b; b = next) {
        next = b->next;
        if (b->ended && leave(b))
            k->lingering--;
    }
}

static void on_exit_event(struct watch *w, uint32_t events)
{
    struct bucket *b = container_of(w, struct bucket, watch);
    siginfo_t si;
    (void)waitid(P_PIDFD, (id_t)b->pidfd, &si, WEXITED | WNOHANG); /* not ours: no matter */
    if (cells_pid(b->k, b->place.cell) > 0) {
        log_warn("a bucket's server ended sandbox=%s volume=%s", b->place.cell, b->place.volume);
        server_notify_bucket(b->k, b->place.cell, b->place.volume);
    }
    end(b);
}

static struct bucket *add(struct keeper *k, const char *id, const struct bucket_place *place)
{
    struct bucket *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    *b = (struct bucket){ .k = k,
                          .place = *place,
                          .record = { .image = KEEPER_IMAGE_NONE },
                          .pidfd = -1,
                          .watch = { -1, on_exit_event } };
    memcpy(b->id, id, ID_SIZE);
    b->next = k->buckets;
    k->buckets = b;
    return b;
}

void buckets_end(struct keeper *k, const char *cell)
{
    for (struct bucket *b = k->buckets; b; b = b->next)
        if (b->pidfd >= 0 && strcmp(b->place.cell, cell) == 0)
            (void)pidfd_send_signal(b->pidfd, SIGKILL, NULL, 0);
}

void buckets_kill_all(struct keeper *k)
{
    for (struct bucket *b = k->buckets, *next; b; b = next) {
        next = b->next;
        if (b->ended)
            continue;
        (void)pidfd_send_signal(b->pidfd, SIGKILL, NULL, 0);
        (void)fd_wait(b->pidfd, POLLIN, END_MS);
        end(b);
    }
}

/* ---- starting one ---- */

static int make_filesystem(uint32_t uid, bool read_only, int *ret_fuse, int *ret_mount,
                           struct err *err)
{
    char fd_text[12], uid_text[12];
    _cleanup_fd_ int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0)
        return err_fail_as(err, errno, FAIL_BUCKETS_UNSUPPORTED, "this machine has no /dev/fuse");
    (void)snprintf(fd_text, sizeof(fd_text), "%d", fuse);
    (void)snprintf(uid_text, sizeof(uid_text), "%u", uid);
    const struct mount_option options[] = {
        { "source", "bucket" },  { "fd", fd_text },        { "rootmode", "40000" },
        { "user_id", uid_text }, { "group_id", uid_text }, { "allow_other", NULL },
        { "ro", NULL }
    }; /* no mount of it is otherwise */
    int r = mount_new("fuse", options, ARRAY_LEN(options) - !read_only,
                      MOUNT_FLAGS | (read_only ? MOUNT_ATTR_RDONLY : 0), ret_mount, err);
    if (r == 0)
        *ret_fuse = take_fd(fuse);
    return r;
}

static bool join(const struct cgroup_fds *group)
{
    bool ok =
        group->work_group < 0 || fd_write_file_at(group->work_group, "cgroup.procs", "0") == 0;
    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        ok = ok && (group->procs[c] < 0 || write(group->procs[c], "0", 1) == 1);
    return ok;
}

struct given {
    int report, fuse, config, spool;
};

static _Noreturn void become(int exe, const char *uid, const char *files_uid,
                             const struct given *given, const struct cgroup_fds *group)
{
    char *argv[] = { (char *)(uintptr_t) "warren-bucket", (char *)(uintptr_t)uid,
                     (char *)(uintptr_t)files_uid, NULL };
    char *no_environment[] = { NULL };
    int fds[] = { given->report, given->fuse, given->config, given->spool, exe };
    (void)setsid();
    if (!join(group) || fd_keep_only(fds, ARRAY_LEN(fds)) < 0)
        _exit(1);
    for (size_t i = 0; i < 4; i++)
        (void)fcntl(fds[i], F_SETFD, 0);
    (void)execveat(fds[4], "", argv, no_environment, AT_EMPTY_PATH);
    _exit(1);
}

static int write_down(struct bucket *b, struct err *err)
{
    int r = record_start_time(b->record.pid, &b->record.start_time);
    if (r < 0)
        return err_set(err, -r, "warren-bucket is gone already");
    if (mkdirat(b->k->buckets_dir, b->id, 0700) < 0)
        return err_set(err, errno, "cannot make a directory for a bucket");
    _cleanup_fd_ int dir = openat(b->k->buckets_dir, b->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fd =
        dir < 0 ? -1 : openat(dir, "place", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_full(fd, &b->place, sizeof(b->place)) < 0)
        return err_set(err, errno, "cannot write a bucket's place down");
    (void)snprintf(b->record.cgroup, sizeof(b->record.cgroup), "%s",
                   cgroup_host_name(b->k->cgroups));
    return record_write(dir, &b->record, err);
}

static int launch(struct bucket *b, int config, bool read_only, int *ret_mount, int *ret_report,
                  struct err *err)
{
    char uid[12], files_uid[12];
    int report[2];
    _cleanup_fd_ int fuse = -1, spool = -1;
    _cleanup_(cgroup_fds_close) struct cgroup_fds group = CGROUP_FDS_INIT;
    int r = uidrange_take(b->k->uids, &b->record.uid_base, err);
    if (r == 0)
        r = cgroup_make(b->k->cgroups, b->id, b->record.uid_base, &group, err);
    if (r == 0)
        r = cgroup_make_limits(b->k->cgroups, b->id, &limits, &group, err);
    if (r == 0)
        r = storage_spool(b->k->storage, b->id, SPOOL_BYTES, &spool, err);
    if (r == 0)
        r = make_filesystem(b->record.uid_base, read_only, &fuse, ret_mount, err);
    if (r < 0)
        return r;
    (void)snprintf(uid, sizeof(uid), "%u", b->record.uid_base);
    (void)snprintf(files_uid, sizeof(files_uid), "%u", cells_uid_base(b->k, b->place.cell));
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    const struct given given = { report[1], fuse, config, spool };
    b->record.pid = fork();
    if (b->record.pid == 0)
        become(b->k->bucket_exe, uid, files_uid, &given, &group);
    (void)close(report[1]);
    *ret_report = report[0];
    if (b->record.pid < 0)
        return err_set(err, errno, "cannot start warren-bucket");
    b->pidfd = pidfd_open(b->record.pid, 0);
    if (b->pidfd < 0)
        return err_set(err, errno, "cannot watch warren-bucket");
    r = write_down(b, err);
    if (r == 0)
        r = loop_add(b->k->loop, &b->watch, b->pidfd, EPOLLIN);
    return r;
}

/* As it was before the request. */
static void undo(struct bucket *b)
{
    siginfo_t si;
    if (b->pidfd >= 0) {
        (void)pidfd_send_signal(b->pidfd, SIGKILL, NULL, 0);
        (void)waitid(P_PIDFD, (id_t)b->pidfd, &si, WEXITED);
    }
    end(b);
}

static int begin(struct conn *conn, struct err *err)
{
    struct keeper *k = conn->k;
    const struct keeper_request *q = &conn->req;
    struct bucket_place place = { 0 };
    char id[ID_SIZE];
    _cleanup_fd_ int mount = -1, report = -1;
    if (cells_pid(k, q->id) < 0)
        return err_fail(err, FAIL_SANDBOX_NOT_RUNNING, "it does not run");
    if (k->bucket_exe < 0)
        return err_fail_as(err, ENOENT, FAIL_BUCKETS_UNSUPPORTED, "warren-bucket is not installed");
    memcpy(place.cell, q->id, ID_SIZE);
    memcpy(place.volume, q->volume, ID_SIZE);
    (void)snprintf(place.path, sizeof(place.path), "%s", q->path);
    if (find(k, &place))
        return 1;
    if (id_random(id) < 0)
        return err_set(err, EIO, "cannot make an id");
    struct bucket *b = add(k, id, &place);
    if (!b)
        return err_set(err, ENOMEM, "out of memory");
    int r = launch(b, conn->passed[0], q->read_only != 0, &mount, &report, err);
    const struct attach_server server = { b->pidfd, report };
    if (r == 0)
        r = attach_begin(conn, mount, &server, err);
    if (r < 0)
        undo(b);
    return r;
}

void buckets_attach(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = begin(conn, &err);
    if (r != 0)
        conn_result(conn, r > 0 ? 0 : r, &err);
}

/* ---- a new keeper's first look around ---- */

static void adopt_one(struct keeper *k, const char *id)
{
    struct record rec;
    struct bucket_place place = { 0 };
    _cleanup_fd_ int dir = openat(k->buckets_dir, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fd = dir < 0 ? -1 : openat(dir, "place", O_RDONLY | O_CLOEXEC);
    int pidfd =
        fd < 0 || fd_read_full(fd, &place, sizeof(place)) < 0 ? -ENOENT : record_read(dir, &rec);
    if (pidfd >= 0)
        pidfd = record_open_pid(&rec);
    struct bucket *b = pidfd >= 0 ? add(k, id, &place) : NULL;
    if (!b) { /* its group goes with those of no cell */
        forget_dir(k, id);
        fd_close_all(&pidfd, pidfd >= 0);
        return;
    }
    b->record = rec;
    cells_find_groups(k, id, &rec);
    b->pidfd = pidfd;
    (void)uidrange_adopt(k->uids, rec.uid_base);
    if (cells_pid(k, place.cell) < 0) /* its cell ended while no keeper was there */
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
    if (loop_add(k->loop, &b->watch, pidfd, EPOLLIN) < 0)
        log_error("cannot watch a bucket's server sandbox=%s", place.cell);
}

int buckets_open(struct keeper *k, const char *run_dir, struct err *err)
{
    char path[PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/buckets", run_dir);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s'", path);
    k->buckets_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return k->buckets_dir < 0 ? err_set(err, errno, "cannot open '%s'", path) : 0;
}

bool buckets_have(struct keeper *k, const char *id)
{
    for (const struct bucket *b = k->buckets; b; b = b->next)
        if (strcmp(b->id, id) == 0)
            return true;
    return false;
}

static int drop_spool(const char *name, void *arg)
{
    struct keeper *k = arg;
    if (!buckets_have(k, name))
        (void)storage_spool_trash(k->storage, name, NULL);
    return 0;
}

int buckets_adopt(struct keeper *k, struct err *err)
{
    int fd = openat(k->buckets_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return err_set(err, errno, "cannot list the buckets");
    for (struct dirent *e; (e = readdir(d));)
        if (id_valid(e->d_name))
            adopt_one(k, e->d_name);
    (void)closedir(d);
    return storage_each(k->storage, STORAGE_SPOOLS, drop_spool, k) < 0
               ? err_set(err, EIO, "cannot list the spools")
               : 0;
}

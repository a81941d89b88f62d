/* A cell's memory and files of one moment. CRIU is started first and made ready, so that the cell stands
 * still for as little as possible; when it is about to look at processes it stops and asks, and from
 * there:
 *
 *   init parks (first step), the work is frozen, init parks (second step), all of the cell is frozen
 *   CRIU attaches to every process, thaws, writes them down, freezes again
 *   the files are snapped while they still stand still
 *   init is thawed and brought back; then the keeper thaws the work
 *
 * The work's own freezer is off only while its cell's is on: no process of it moves in between. */
#include "base/hex.h"
#include "keeper/memory.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/criu.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "cell/ns_time.h"
#include "keeper/memory_images.h"
#include "keeper/memory_meta.h"
#include "keeper/park.h"
#include "keeper/record.h"
#include "keeper/storage.h"
#include "keeper/storage_memory.h"
#include "kernel/cgroup.h"
#include "kernel/criurpc.h"
#include "kernel/inject.h"
#include "kernel/netns.h"
#include "kernel/userns.h"

#define LOG_MODULE "memory"
#define STILL_WAIT_MS 5000 /* for a process that is busy in the kernel to stand still */
#define MOUNTINFO_MAX 262144
#define PIDS_TEXT_MAX 262144
#define STATUS_MAX 4096

struct story {
    struct keeper *k;
    struct memory_dump *d;
    const char *id;
    int run_dir, group; /* the cell's */
    int images, kept;   /* where CRIU writes, and where it is to lie: mostly the same */
    struct park_note note;
    struct parked parked;
    struct meta meta;
    bool at_rest, is_parked, snapped, committed;
    bool shm_left; /* /dev/shm was empty, and is not to be kept */
    bool shm_used; /* but then it was not */
    int64_t asked_us, rested_us, parked_us, written_us, snapped_us;
};

static void story_done(struct story *s)
{
    fd_close_all(&s->run_dir, 1);
    fd_close_all(&s->group, 1);
    if (s->images != s->kept)
        fd_close_all(&s->images, 1);
    fd_close_all(&s->kept, 1);
    parked_close(&s->parked);
    meta_done(&s->meta);
}

/* ---- standing still ---- */

static int wait_still(int group, struct err *err)
{
    char text[256];
    for (int64_t end = clock_mono_ms() + STILL_WAIT_MS;;) {
        if (fd_read_file_at(group, "cgroup.events", text, sizeof(text)) < 0)
            return err_set(err, errno, "cannot see whether the sandbox stands still");
        if (strstr(text, "frozen 1"))
            return 0;
        if (clock_mono_ms() >= end)
            return err_fail_as(err, ETIMEDOUT, FAIL_CANNOT_DUMP,
                               "a process of the sandbox is busy in the kernel and does not stop");
        (void)poll(NULL, 0, 1);
    }
}

static int freeze(int group, const char *file, bool on)
{
    return fd_write_file_at(group, file, on ? "1" : "0");
}

/* Most are: and a program to pack one, and one to unpack it, would take longer than all the rest. */
static bool shm_is_empty(const struct story *s)
{
    char path[48];
    struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH };
    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)s->d->pid);
    _cleanup_fd_ int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -1 : (int)syscall(SYS_openat2, root, "dev/shm", &how, sizeof(how));
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool empty = d != NULL;
    for (struct dirent *e; empty && (e = readdir(d));)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    if (d)
        (void)closedir(d);
    return empty;
}

/* Which processes are in which group below work: the names are init's ("p12"). */
static int note_family(struct story *s, int work, const char *name, struct err *err)
{
    uint32_t family = (uint32_t)strtoul(name + 1, NULL, 10);
    char path[64], status[STATUS_MAX];
    _cleanup_free_ char *pids = malloc(PIDS_TEXT_MAX);
    (void)snprintf(path, sizeof(path), "%.32s/cgroup.procs", name);
    if (!pids || fd_read_file_at(work, path, pids, PIDS_TEXT_MAX) < 0)
        return err_set(err, ENOMEM, "cannot list the processes of a group");
    char *save = NULL;
    for (char *p = strtok_r(pids, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
        (void)snprintf(path, sizeof(path), "/proc/%.16s/status", p);
        if (fd_read_file_at(AT_FDCWD, path, status, sizeof(status)) < 0)
            continue;
        char *ns = strstr(status, "\nNSpid:");
        char *last = ns ? strpbrk(ns + 1, "\n") : NULL;
        while (last && last > ns && last[-1] >= '0' && last[-1] <= '9')
            last--;
        if (!last || meta_add_member(&s->meta, family, (pid_t)strtol(last, NULL, 10)) < 0)
            return err_set(err, ENOMEM, "cannot note the processes of a group");
    }
    return 0;
}

static int note_families(struct story *s, struct err *err)
{
    _cleanup_fd_ int work = openat(s->group, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int copy = work < 0 ? -1 : openat(work, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    int r = d ? 0 : err_set(err, errno, "cannot list the groups of the sandbox");
    for (struct dirent *e; r == 0 && d && (e = readdir(d));)
        if (e->d_name[0] == 'p' && e->d_name[1] >= '0' && e->d_name[1] <= '9')
            r = note_family(s, work, e->d_name, err);
    if (d)
        (void)closedir(d);
    return r;
}

/* ---- CRIU's hooks ---- */

static int come_to_rest(struct story *s, struct err *err)
{
    _cleanup_fd_ int line = -1;
    s->asked_us = clock_mono_us();
    int r = park_ask(s->run_dir, &line, err);
    if (r == 0)
        r = s->d->rest(s->d->arg, err);
    if (r < 0)
        return r;
    s->at_rest = true;
    s->rested_us = clock_mono_us();
    _cleanup_fd_ int work = openat(s->group, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = wait_still(work, err);
    s->shm_used = r == 0 && s->shm_left && !shm_is_empty(s);
    if (s->shm_used)
        r = err_set(err, EAGAIN, "a file in /dev/shm came while it was looked at");
    if (r == 0)
        r = park_note_write(s->run_dir, &s->note);
    if (r < 0)
        return err->code ? r : err_set(err, -r, "cannot note that the sandbox is parked");
    s->is_parked = true; /* or about to be */
    r = park_go(line, s->note.name, &s->parked, err);
    if (r == 0)
        r = freeze(s->group, "cgroup.freeze", true);
    if (r == 0)
        r = wait_still(s->group, err);
    if (r == 0)
        r = note_families(s, err);
    if (r == 0)
        r = freeze(s->group, "work/cgroup.freeze", false);
    s->parked_us = clock_mono_us();
    return r < 0 && !err->code ? err_set(err, -r, "cannot freeze the sandbox") : r;
}

static int keep_meta(struct story *s, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(META_MAX);
    (void)snprintf(s->meta.name, sizeof(s->meta.name), "%s", s->note.name);
    (void)snprintf(s->meta.id, sizeof(s->meta.id), "%s", s->id);
    s->meta.kib = (uint32_t)(storage_memory_bytes(s->images) / 1024);
    int r = meta_print(&s->meta, &b);
    _cleanup_fd_ int fd =
        r < 0 ? -1 : openat(s->images, META_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (r == 0)
        r = fd < 0 ? -errno : fd_write_full(fd, b.data, b.len);
    return r < 0 ? err_set(err, -r, "cannot describe the memory") : 0;
}

/* Its init's program, with which alone its memory makes sense. */
static int keep_program(struct story *s, struct err *err)
{
    char path[48], chunk[65536];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)s->d->pid);
    _cleanup_fd_ int from = open(path, O_RDONLY | O_CLOEXEC),
                     to = openat(s->images, MEMORY_INIT_FILE,
                                 O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int r = from < 0 || to < 0 ? -errno : 0;
    for (ssize_t n; r == 0 && (n = read(from, chunk, sizeof(chunk))) != 0;)
        r = n < 0 ? -errno : fd_write_full(to, chunk, (size_t)n);
    return r < 0 ? err_set(err, -r, "cannot keep the program of the sandbox's init") : 0;
}

static int commit(struct story *s, struct err *err)
{
    s->d->bytes = storage_memory_bytes(s->kept);
    int r = storage_memory_commit(s->k->storage, s->d->req->point, err);
    s->committed = r == 0;
    return r;
}

/* CRIU's last question before processes go on, or end: whatever may still fail, a full disk above all, does so
 * here, where they go on if it does. */
static int keep_all(struct story *s, struct err *err)
{
    s->written_us = clock_mono_us();
    if (faccessat(s->images, "mm-1.img", F_OK, 0) < 0) /* it does not always tell */
        return err_set(err, EIO, "CRIU did not write all of it down");
    int r = keep_meta(s, err);
    if (r == 0)
        r = storage_point_put(s->k->storage, s->d->req->point, s->id, err);
    s->snapped = r == 0;
    s->snapped_us = clock_mono_us();
    return r == 0 && s->images == s->kept ? commit(s, err) : r;
}

/* CRIU reads limits of the cell's processes, to which the owner of their user namespace has the right;
 * so has root, but not in every container. */
static int own_namespace(struct story *s, struct err *err)
{
    uint32_t owner;
    int r = userns_owner(s->d->pid, &owner);
    if (r < 0)
        return err_set(err, -r, "cannot find the owner of its user namespace");
    return owner == 0 ? 0 : inject_euid(s->note.criu, owner, err);
}

static int on_hook(void *arg, const char *name, pid_t pid, struct err *err)
{
    if (strcmp(name, "pre-dump") == 0) {
        int r = own_namespace(arg, err);
        return r < 0 ? r : come_to_rest(arg, err);
    }
    return strcmp(name, "post-dump") == 0 ? keep_all(arg, err) : 0;
}

static void on_started(void *arg, pid_t pid)
{
    struct story *s = arg;
    s->note.criu = pid;
    (void)record_start_time(pid, &s->note.criu_start);
}

/* ---- before and after ---- */

static int read_mounts(struct story *s, struct err *err)
{
    char path[48];
    _cleanup_free_ char *text = malloc(MOUNTINFO_MAX);
    (void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)s->d->pid);
    if (!text || fd_read_file_at(AT_FDCWD, path, text, MOUNTINFO_MAX) < 0)
        return err_set(err, errno, "cannot read the sandbox's mounts");
    return meta_read_mounts(&s->meta, text, err);
}

/* Read the cell's boot id, and how long ago that was. Older cells show the host's. */
static int read_boot(struct story *s, struct err *err)
{
    char path[48], text[NS_BOOT_SIZE + 1] = "";
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC,
                            .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH };
    int64_t uptime_s = 0;
    if (!meta_has(&s->meta, META_BOOT))
        return 0;
    if (meta_has(&s->meta, META_STAT) && ns_time_uptime(s->d->pid, &uptime_s) == 0 && uptime_s > 0)
        s->meta.uptime_s = (uint32_t)uptime_s;
    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)s->d->pid);
    _cleanup_fd_ int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fd =
        root < 0 ? -1 : (int)syscall(SYS_openat2, root, &NS_BOOT_PATH[1], &how, sizeof(how));
    if (fd < 0 || fd_read_full(fd, text, NS_BOOT_SIZE) < 0)
        return err_set(err, EIO, "cannot read the sandbox's boot id");
    text[NS_BOOT_SIZE - 1] = '\0'; /* the end of its line */
    if (!ns_boot_valid(text))
        return err_set(err, EIO, "cannot read the sandbox's boot id");
    memcpy(s->meta.boot, text, NS_BOOT_SIZE);
    return 0;
}

/* Does a way lead to an address that is nowhere? */
static int find_way(void *arg, struct err *err)
{
    bool *found = arg;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
    *found = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0;
    return 0;
}

static int look_at_network(struct story *s, struct err *err)
{
    _cleanup_fd_ int pidfd = pidfd_open(s->d->pid, 0);
    return pidfd < 0 ? err_set(err, errno, "the sandbox's init is gone")
                     : netns_visit(pidfd, find_way, &s->meta.steered, err);
}

/* Of a request that is made again after a keeper's death. */
static int drop_earlier(struct story *s, struct err *err)
{
    int r = storage_memory_trash(s->k->storage, s->d->req->point, err);
    return r < 0 ? r : storage_point_trash(s->k->storage, s->d->req->point, err);
}

static int begin(struct story *s, struct err *err)
{
    unsigned char random[(PARK_NAME_SIZE - 1) / 2];
    int r = random_bytes(random, sizeof(random));
    if (r < 0)
        return err_set(err, -r, "cannot get random bytes");
    hex_encode(random, sizeof(random), s->note.name);
    s->run_dir = openat(s->k->cells_dir, s->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    s->group = cgroup_open(s->k->cgroups, s->id);
    if (s->run_dir < 0 || s->group < 0)
        return err_set(err, ENOENT, "cannot open the sandbox's groups");
    r = memory_own_mounts(err);
    if (r == 0)
        r = read_mounts(s, err);
    if (r == 0)
        r = read_boot(s, err);
    if (r == 0)
        r = look_at_network(s, err);
    s->shm_left = r == 0 && !s->d->keep_shm && shm_is_empty(s);
    if (s->shm_left && meta_add_shm(&s->meta) < 0)
        r = err_set(err, ENOMEM, "out of memory");
    if (r == 0)
        r = storage_box_flush(s->k->storage, s->id, err);
    if (r == 0)
        r = drop_earlier(s, err);
    if (r == 0)
        r = storage_memory_begin(s->k->storage, s->d->req->point, &s->kept, err);
    s->images = s->kept; /* one that ends does not wait */
    if (r == 0 && !(s->d->req->flags & KEEPER_POINT_END))
        r = memory_desk(s->k, s->id, s->kept, &s->images, err);
    if (r == 0)
        r = keep_program(s, err);
    return r;
}

/* Back to running; or with its init left where it is, all of it to be killed next. */
static int come_back(struct story *s, bool ended, struct err *err)
{
    if (!s->at_rest)
        return 0;
    (void)freeze(s->group, "work/cgroup.freeze", true);
    (void)freeze(s->group, "cgroup.freeze", false);
    if (ended || !s->is_parked)
        return 0;
    _cleanup_(cgroup_fds_close) struct cgroup_fds fds = CGROUP_FDS_INIT;
    int r = cgroup_reopen(s->k->cgroups, s->id, &fds, err);
    if (r == 0)
        r = park_return(s->d->pid, s->note.name, &s->parked, &fds, err);
    if (r == 0)
        park_note_remove(s->run_dir);
    return r;
}

static int place_of(const void *arg, size_t i, char *out, size_t size)
{
    const struct story *s = arg;
    return snprintf(out, size, "%s", s->meta.mounts[i].path) >= (int)size ? -ENAMETOOLONG : 0;
}

static int write_down(struct story *s, struct err *err)
{
    struct criu criu;
    const char **external = NULL;
    int r = memory_find_criu(&criu, err);
    if (r >= 0)
        r = meta_external(&s->meta, place_of, s, &external, err);
    if (r < 0)
        return r;
    /* CRIU compares what it sees of groups with what the cell's processes see. */
    char path[48], group[48];
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/cgroup", (int)s->d->pid);
    _cleanup_fd_ int view = open(path, O_RDONLY | O_CLOEXEC);
    if (view < 0) {
        meta_external_free(&s->meta, external);
        return err_set(err, errno, "cannot open the sandbox's cgroup namespace");
    }
    (void)snprintf(group, sizeof(group), "/proc/%d/fd/%d", (int)getpid(), s->group);
    const struct criurpc c = {
        .starter = s->k->starter.fd,
        .place = { .steps = { { STARTER_NAMESPACE, view } }, .n = 1 },
        .hook = on_hook,
        .arg = s,
        .images_fd = s->images,
        .work_fd = s->images,
        .pid = s->d->pid,
        .leave_running = !(s->d->req->flags & KEEPER_POINT_END),
        .freeze_cgroup = group,
        .external = external,
        .nexternal = s->meta.nmounts,
    };
    r = criurpc_dump(&c, on_started, err);
    meta_external_free(&s->meta, external);
    if (r < 0 && s->committed) { /* it died on its way out: nothing was left for it to write */
        log_warn("CRIU failed after its work err=\"%s\" sandbox=%s", err->msg, s->id);
        *err = (struct err)ERR_INIT;
        r = 0;
    }
    if (r < 0 && !err->failure)
        err->failure = FAIL_CANNOT_DUMP;
    return r;
}

static int dump_once(struct keeper *k, struct memory_dump *d, bool *ret_again, struct err *err)
{
    _cleanup_(story_done) struct story s = { .k = k,
                                             .d = d,
                                             .id = d->req->id,
                                             .run_dir = -1,
                                             .group = -1,
                                             .images = -1,
                                             .kept = -1,
                                             .parked = PARKED_INIT,
                                             .meta = META_INIT };
    struct err back = ERR_INIT;
    int r = begin(&s, err);
    if (r == 0)
        r = write_down(&s, err);
    int came = come_back(&s, r == 0 && (d->req->flags & KEEPER_POINT_END), &back);
    if (s.snapped)
        log_debug(
            "its memory was written down quiet_us=%lld park_us=%lld write_us=%lld snap_us=%lld "
            "back_us=%lld sandbox=%s",
            (long long)(s.rested_us - s.asked_us), (long long)(s.parked_us - s.rested_us),
            (long long)(s.written_us - s.parked_us), (long long)(s.snapped_us - s.written_us),
            (long long)(clock_mono_us() - s.snapped_us), s.id);
    d->adrift = came < 0;
    if (came < 0)
        log_error("%s err=%s sandbox=%s", back.msg, strerror(-came), s.id);
    if (r == 0 && came == 0 && !(d->req->flags & KEEPER_POINT_END))
        d->back(d->arg);
    if (r == 0 && !s.committed) {
        r = memory_desk_clear(s.images, s.kept, err);
        if (r == 0)
            r = commit(&s, err);
    }
    if (r < 0) {
        storage_memory_abort(k->storage, d->req->point);
        if (s.snapped)
            (void)storage_point_trash(k->storage, d->req->point, NULL);
    }
    *ret_again = s.shm_used;
    return r;
}

int memory_dump(struct keeper *k, struct memory_dump *d, struct err *err)
{
    bool again = false;
    int r = dump_once(k, d, &again, err);
    if (!again)
        return r;
    *err = (struct err)ERR_INIT;
    d->back(d->arg);
    d->keep_shm = true;
    return dump_once(k, d, &again, err);
}

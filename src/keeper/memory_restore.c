/* A cell from a checkpoint's memory. A stage is built in a mount namespace of this process's own: the new root, the
 * images with those changed that say who and where it is, the mounts that are the host's. CRIU is
 * started among the work of the new cell, so that what is brought back is counted there from its first
 * page, and everything is still stopped when each process is put into its group and the work is
 * frozen. Only then init goes on, alone, and is given its place in the world. */
#include "base/hex.h"
#include "keeper/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/criu.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "base/oom.h"
#include "cell/ns_attach.h"
#include "cell/ns_boot.h"
#include "cell/ns_show.h"
#include "cell/ns_size.h"
#include "keeper/memory_images.h"
#include "keeper/memory_meta.h"
#include "keeper/park.h"
#include "keeper/record.h"
#include "keeper/storage.h"
#include "keeper/storage_memory.h"
#include "kernel/cgroup.h"
#include "kernel/criurpc.h"
#include "kernel/inject.h"
#include "kernel/mount.h"
#include "kernel/netns.h"
#include "kernel/rtnl.h"
#include "kernel/tcpcut.h"
#include "kernel/userns.h"

#define LOG_MODULE "memory"
#define IDS_COUNT 65536u
#define MACHINE_ID_LEN 32
#define STAGE "own-dev" /* directories of the shared directory, our working directory */
#define ROOT "root"
#define STATUS_MAX 4096
#define PIDS_TEXT_MAX 262144

struct story {
    struct keeper *k;
    const struct memory_restore *m;
    int images, stage, changed, shown; /* directories */
    int userns, program;
    struct meta meta;
    struct park_note note;
    char at[PATH_MAX]; /* the shared directory */
};

static void story_done(struct story *s)
{
    const int fds[] = { s->images, s->stage, s->changed, s->shown, s->userns, s->program };
    fd_close_all(fds, ARRAY_LEN(fds));
    meta_done(&s->meta);
}

/* ---- the stage ---- */

/* A user namespace with the cell's ids, to show files by: any one with the same ids will do. */
static int make_userns(uint32_t base, int *ret_fd, struct err *err)
{
    char path[64], map[64];
    int pidfd = -1;
    struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_PIDFD,
                               .pidfd = (uint64_t)(uintptr_t)&pidfd,
                               .exit_signal = SIGCHLD };
    pid_t parent = getpid(), pid = userns_clone(&args, base);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it has the keeper's lock, too */
        while (getppid() == parent)
            (void)pause();
        _exit(0);
    }
    if (pid < 0)
        return err_set(err, -pid, "cannot make a user namespace");
    (void)snprintf(map, sizeof(map), "0 %u %u", base, IDS_COUNT);
    (void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
    int r = fd_write_file_at(AT_FDCWD, path, map);
    (void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
    if (r == 0)
        r = fd_write_file_at(AT_FDCWD, path, map);
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    int fd = r < 0 ? r : open(path, O_RDONLY | O_CLOEXEC);
    if (r == 0 && fd < 0)
        r = -errno;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    (void)close(pidfd);
    if (r < 0)
        return err_set(err, -r, "cannot make a user namespace");
    *ret_fd = fd;
    return 0;
}

/* A copy is another machine. One that says none, as images mostly do, is left alone; no link leads out. */
static void rename_machine(int root)
{
    unsigned char random[MACHINE_ID_LEN / 2];
    char text[MACHINE_ID_LEN + 1];
    struct open_how how = { .flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
    struct stat sb;
    _cleanup_fd_ int fd = (int)syscall(SYS_openat2, root, "etc/machine-id", &how, sizeof(how));
    if (fd < 0 || fstat(fd, &sb) < 0 || !S_ISREG(sb.st_mode) || sb.st_size < MACHINE_ID_LEN ||
        random_bytes(random, sizeof(random)) < 0)
        return;
    hex_encode(random, sizeof(random), text);
    (void)!pwrite(fd, text, MACHINE_ID_LEN, 0);
}

static int put_root(struct story *s, struct err *err)
{
    _cleanup_fd_ int image = -1, box = -1, lower = -1, upper = -1, root = -1;
    const struct keeper_request *q = s->m->req;
    int r = storage_image(s->k->storage, q->image, &image, err);
    if (r == 0)
        r = storage_box(s->k->storage, q->id, q->limits.disk_bytes, &box, err);
    if (r == 0)
        r = mount_clone(image, "", &lower, err);
    if (r == 0)
        r = mount_idmap(lower, s->userns, err);
    if (r == 0)
        r = mount_clone(box, "", &upper, err);
    if (r == 0)
        r = mount_idmap(upper, s->userns, err);
    if (r == 0)
        r = mount_overlay(lower, upper, ROOT, s->m->uid_base, &root, err);
    if (r == 0 && s->meta.id[0] && strcmp(s->meta.id, q->id) != 0)
        rename_machine(root);
    return r < 0 ? r : mount_place_at(root, AT_FDCWD, ROOT, err);
}

static int make_dir(int at, const char *name, int *ret_fd, struct err *err)
{
    if (mkdirat(at, name, 0755) < 0)
        return err_set(err, errno, "cannot make the stage's '%s'", name);
    *ret_fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0 ? err_set(err, errno, "cannot open the stage's '%s'", name) : 0;
}

/* The images as they were written, with the changed ones over them. */
static int show_images(struct story *s, struct err *err)
{
    char lower[PATH_MAX];
    _cleanup_fd_ int fs = -1, target = -1;
    (void)snprintf(lower, sizeof(lower), "/proc/self/fd/%d:/proc/self/fd/%d", s->changed,
                   s->images);
    const struct mount_option options[] = { { "lowerdir", lower } };
    int r = mount_new("overlay", options, ARRAY_LEN(options), MOUNT_ATTR_RDONLY, &fs, err);
    if (r == 0)
        r = make_dir(s->stage, "images", &target, err);
    if (r == 0)
        r = mount_place_at(fs, s->stage, "images", err);
    if (r < 0)
        return r;
    s->shown = openat(s->stage, "images", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return s->shown < 0 ? err_set(err, errno, "cannot open the stage's images") : 0;
}

static int put_volume(struct story *s, size_t i, const struct meta_mount *one, struct err *err)
{
    char name[32];
    _cleanup_fd_ int dir = -1, mount = -1, target = -1;
    (void)snprintf(name, sizeof(name), "volume%zu", i);
    int r = storage_volume(s->k->storage, one->volume, &dir, err);
    if (r == 0)
        r = ns_attach_show(s->userns, dir, one->read_only, &mount, err);
    if (r == 0)
        r = make_dir(s->stage, name, &target, err);
    return r < 0 ? r : mount_place_at(mount, s->stage, name, err);
}

/* Everything is opened again there: only what is of one's own namespace can be mounted. */
static int enter_mounts(struct story *s, struct err *err)
{
    if (!getcwd(s->at, sizeof(s->at)))
        return err_set(err, errno, "cannot find the shared device directory");
    int r = memory_own_mounts(err);
    return r < 0 ? r : storage_reopen(s->k->storage, err);
}

static int put_shm(struct story *s, struct err *err)
{
    char size[24], id[16];
    uint64_t memory = s->m->req->limits.memory_bytes;
    (void)snprintf(size, sizeof(size), "%llu",
                   (unsigned long long)(memory ? memory / 2 : NS_SHM_BYTES));
    (void)snprintf(id, sizeof(id), "%u", s->m->uid_base);
    const struct mount_option options[] = {
        { "mode", "1777" }, { "size", size }, { "uid", id }, { "gid", id }
    };
    _cleanup_fd_ int fs = -1, target = -1;
    int r = mount_new("tmpfs", options, ARRAY_LEN(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                      &fs, err);
    if (r == 0)
        r = make_dir(s->stage, "shm", &target, err);
    return r < 0 ? r : mount_place_at(fs, s->stage, "shm", err);
}

static int set_stage(struct story *s, struct err *err)
{
    static const struct mount_option options[] = { { "mode", "0755" }, { "size", "16m" } };
    _cleanup_fd_ int fs = -1;
    int r = make_userns(s->m->uid_base, &s->userns, err);
    if (r == 0)
        r = mount_new("tmpfs", options, ARRAY_LEN(options), 0, &fs, err);
    if (r == 0)
        r = mount_place_at(fs, AT_FDCWD, STAGE, err);
    if (r < 0)
        return r;
    s->stage = openat(AT_FDCWD, STAGE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = s->stage < 0 ? err_set(err, errno, "cannot open the stage") : 0;
    if (r == 0)
        r = make_dir(s->stage, "changed", &s->changed, err);
    if (r == 0)
        r = memory_images_change(s->images, s->changed, s->m->uid_base, s->m->req->id, err);
    if (r == 0)
        r = show_images(s, err);
    if (r == 0)
        r = put_root(s, err);
    const struct keeper_limits *l = &s->m->req->limits;
    for (size_t i = 0; r == 0 && i < s->meta.nmounts; i++)
        if (s->meta.mounts[i].kind == META_VOLUME)
            r = put_volume(s, i, &s->meta.mounts[i], err);
        else if (s->meta.mounts[i].kind == META_SHM)
            r = put_shm(s, err);
        else if (s->meta.mounts[i].kind == META_BOOT) /* a copy's is its own */
            r = ns_boot_put(s->k->ns, s->m->req->id,
                            strcmp(s->meta.id, s->m->req->id) == 0 ? s->meta.boot : "",
                            s->meta.uptime_s, ns_cpus_shown(l->cpu_millis), err);
    const struct cgroup_limits limits = { l->memory_bytes, l->cpu_millis, l->pids };
    return r < 0 ? r : ns_size_put(s->k->ns, s->m->req->id, &limits, err);
}

static int place_of(const void *arg, size_t i, char *out, size_t size)
{
    static const char shm[] = STAGE "/shm";
    static const char *const places[META_VOLUME] = {
        [META_DEV] = "dev",
        [META_EMPTY] = NS_SHOW_DIR "/" NS_SHOW_EMPTY,
        [META_NOTHING] = NS_SHOW_DIR "/" NS_SHOW_NOTHING,
        [META_SHOWN] = NS_SHOW_DIR,
        [META_BOOT] = NS_BOOT_SHOWN,
        [META_STAT] = NS_BOOT_DIR,
        [META_SIZE] = NS_BOOT_DIR,
        [META_SHM] = shm,
    };
    const struct story *s = arg;
    const struct meta_mount *one = &s->meta.mounts[i];
    int n = 0;
    switch (one->kind) {
    case META_VOLUME: n = snprintf(out, size, "%s/" STAGE "/volume%zu", s->at, i); break;
    case META_SHOWN:
        n = snprintf(out, size, "%s/%s/%s", s->at, places[one->kind], ns_show_name(one->path));
        break;
    case META_BOOT:
    case META_STAT:
        n = snprintf(out, size, "%s/%s/%s%s", s->at, places[one->kind], s->m->req->id,
                     one->kind == META_STAT ? NS_STAT_SUFFIX : "");
        break;
    case META_SIZE:
        n = snprintf(out, size, "%s/%s/%s%s", s->at, places[one->kind], s->m->req->id,
                     ns_size_suffix(one->path));
        break;
    case META_DEV:
    case META_EMPTY:
    case META_NOTHING:
    case META_SHM:
    case META_KINDS: n = snprintf(out, size, "%s/%s", s->at, places[one->kind]); break;
    }
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* ---- CRIU's hooks ---- */

static int loopback_up(void *arg, struct err *err)
{
    const bool *steered = arg;
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
        return err_set(err, errno, "cannot bring loopback up");
    return *steered ? rtnl_all_local(err) : 0;
}

static int cut_loose_ends(void *arg, struct err *err)
{
    int r = tcpcut_loose_ends(err);
    return r < 0 ? r : 0;
}

static int visit_net(pid_t pid, int (*fn)(void *arg, struct err *err), void *arg, struct err *err)
{
    _cleanup_fd_ int pidfd = pidfd_open(pid, 0);
    return pidfd < 0 ? err_set(err, errno, "it is gone") : netns_visit(pidfd, fn, arg, err);
}

/* Its number inside; 0: it is not inside. */
static pid_t inner_pid(pid_t pid)
{
    char path[48], status[STATUS_MAX];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (fd_read_file_at(AT_FDCWD, path, status, sizeof(status)) < 0)
        return 0;
    const char *at = strstr(status, "\nNSpid:\t"), *tab = at ? strchr(at + 8, '\t') : NULL;
    const char *end = at ? strchr(at + 1, '\n') : NULL;
    return tab && end && tab < end ? (pid_t)strtol(tab + 1, NULL, 10) : 0;
}

static int family_of(const struct meta *m, pid_t inner)
{
    for (size_t i = 0; i < m->nmembers; i++)
        if (m->members[i].pid == inner)
            return (int)m->members[i].family;
    return -1;
}

/* As root inside makes it, so that init may act in it. */
static int join_family(struct story *s, int family, const char *pid)
{
    char path[48];
    (void)snprintf(path, sizeof(path), "p%d", family);
    (void)setfsgid(s->m->uid_base);
    (void)setfsuid(s->m->uid_base);
    int r = mkdirat(s->m->fds->work_group, path, 0755) < 0 && errno != EEXIST ? -errno : 0;
    (void)setfsuid(0);
    (void)setfsgid(0);
    (void)snprintf(path, sizeof(path), "p%d/cgroup.procs", family);
    return r < 0 ? r : fd_write_file_at(s->m->fds->work_group, path, pid);
}

static int sort_out(struct story *s, struct err *err)
{
    _cleanup_free_ char *pids = malloc(PIDS_TEXT_MAX);
    char *save = NULL;
    int r = 0;
    if (!pids || fd_read_file_at(s->m->fds->work_group, "cgroup.procs", pids, PIDS_TEXT_MAX) < 0)
        return err_set(err, ENOMEM, "cannot list the processes");
    for (char *p = strtok_r(pids, "\n", &save); r >= 0 && p; p = strtok_r(NULL, "\n", &save)) {
        pid_t pid = (pid_t)strtol(p, NULL, 10), inner = inner_pid(pid);
        (void)oom_set(pid, OOM_SANDBOX); /* CRIU was ours, and what it brought back began as it */
        int family = family_of(&s->meta, inner);
        if (inner > 1 && family >= 0) {
            r = join_family(s, family, p);
        } else { /* init, a child that it has for itself, and CRIU: they are not frozen */
            r = fd_write_file_at(s->m->fds->init_group, "cgroup.procs", p);
            if (inner > 0)
                cgroup_leave_v1(s->k->cgroups, s->m->req->id, pid);
        }
    }
    if (r >= 0)
        r = fd_write_file_at(s->m->fds->work_group, "cgroup.freeze", "1");
    return r < 0 ? err_set(err, -r, "cannot sort the processes into groups") : 0;
}

/* CRIU has made the user namespace. It goes on as root, and so do those that it started meanwhile to act
 * for the ones inside: sysctls ask for root's id and not for rights. */
static int be_root_again(struct story *s, struct err *err)
{
    char path[64], children[STATUS_MAX], *save = NULL;
    int pid = (int)s->note.criu, r = inject_euid(pid, 0, err);
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    if (r < 0 || fd_read_file_at(AT_FDCWD, path, children, sizeof(children)) < 0)
        return r < 0 ? r : err_set(err, ECHILD, "cannot list CRIU's processes");
    for (char *p = strtok_r(children, " \n", &save); r >= 0 && p;
         p = strtok_r(NULL, " \n", &save)) {
        pid_t child = (pid_t)strtol(p, NULL, 10);
        if (inner_pid(child) == 0)
            r = inject_euid(child, 0, err);
    }
    return r;
}

static int on_hook(void *arg, const char *name, pid_t pid, struct err *err)
{
    struct story *s = arg;
    /* The user namespace that it makes next is the cell's own. */
    if (strcmp(name, "pre-restore") == 0)
        return inject_euid(s->note.criu, s->m->uid_base, err);
    if (strcmp(name, "setup-namespaces") == 0) {
        int r = be_root_again(s, err);
        if (r == 0)
            r = ns_show_net(pid, err);
        return r < 0 ? r : visit_net(pid, loopback_up, &s->meta.steered, err);
    }
    if (strcmp(name, "pre-resume") == 0)
        return sort_out(s, err);
    return 0;
}

static void on_started(void *arg, pid_t pid)
{
    struct story *s = arg;
    s->note.criu = pid;
    (void)record_start_time(pid, &s->note.criu_start);
    (void)park_note_write(s->m->run_dir, &s->note);
}

/* ---- the story ---- */

static int read_meta(struct story *s, struct err *err)
{
    _cleanup_free_ char *text = malloc(META_MAX);
    ssize_t n = text ? fd_read_file_at(s->images, META_FILE, text, META_MAX) : -ENOMEM;
    if (n < 0)
        return err_set(err, (int)-n, "cannot read the memory's description");
    int r = meta_parse(text, &s->meta, err);
    /* A power cut can cost a part of what was just written, and CRIU reads on for ever where pages end too early. */
    if (r == 0 && storage_memory_bytes(s->images) / 1024 < s->meta.kib)
        r = err_fail(err, FAIL_CANNOT_RESTORE, "a part of the memory is missing on disk");
    if (r == 0)
        (void)snprintf(s->note.name, sizeof(s->note.name), "%s", s->meta.name);
    return r;
}

/* The very program that was running: a newer one may be here by now. */
static int open_program(struct story *s, struct err *err)
{
    _cleanup_fd_ int fd = openat(s->images, MEMORY_INIT_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "the memory has no program of its init");
    return ns_host_program(s->k->ns, fd, &s->program, err);
}

/* Among the work of the cell to be, seen from its cgroup namespace. ret_fds are owned. */
static int find_place(const struct cgroup_fds *fds, struct starter_place *ret_place, int ret_fds[2],
                      struct err *err)
{
    ret_fds[0] = openat(fds->init_group, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    ret_fds[1] = openat(fds->work_group, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (ret_fds[0] < 0 || ret_fds[1] < 0)
        return err_set(err, errno, "cannot open the sandbox's groups");
    int r = starter_place_add(ret_place, STARTER_GROUP, ret_fds[0]);
    for (size_t i = 0; r == 0 && i < CGROUP_CONTROLLERS; i++)
        if (fds->procs[i] >= 0)
            r = starter_place_add(ret_place, STARTER_GROUP, fds->procs[i]);
    if (r == 0)
        r = starter_place_add(ret_place, fds->ns >= 0 ? STARTER_NAMESPACE : STARTER_CGROUP_NS,
                              fds->ns);
    if (r == 0)
        r = starter_place_add(ret_place, STARTER_GROUP, ret_fds[1]);
    return r < 0 ? err_set(err, -r, "the sandbox has too many groups") : 0;
}

static int bring_back(struct story *s, pid_t *ret_pid, struct err *err)
{
    struct criu criu;
    const char **external = NULL;
    char root[PATH_MAX + 8];
    struct starter_place place = { .n = 0 };
    int groups[2] = { -1, -1 }, r = memory_find_criu(&criu, err);
    if (r >= 0)
        r = find_place(s->m->fds, &place, groups, err);
    if (r >= 0)
        r = meta_external(&s->meta, place_of, s, &external, err);
    if (r < 0) {
        fd_close_all(groups, ARRAY_LEN(groups));
        return r;
    }
    (void)snprintf(root, sizeof(root), "%s/" ROOT, s->at);
    const struct criurpc c = {
        .starter = s->k->starter.fd,
        .place = place,
        .hook = on_hook,
        .arg = s,
        .images_fd = s->shown,
        .work_fd = s->stage,
        .root = root,
        .inherit_fd = s->program,
        .inherit_keys = { MEMORY_INIT_KEY, MEMORY_INIT_MAP },
        .external = external,
        .nexternal = s->meta.nmounts,
    };
    r = criurpc_restore(&c, on_started, ret_pid, err);
    meta_external_free(&s->meta, external);
    fd_close_all(groups, ARRAY_LEN(groups));
    if (r < 0 && !err->failure)
        err->failure = FAIL_CANNOT_RESTORE;
    return r;
}

int memory_restore(struct keeper *k, const struct memory_restore *m, struct err *err)
{
    _cleanup_(story_done) struct story s = { .k = k,
                                             .m = m,
                                             .images = -1,
                                             .stage = -1,
                                             .changed = -1,
                                             .shown = -1,
                                             .userns = -1,
                                             .program = -1,
                                             .meta = META_INIT };
    const struct parked gone = { .listener = m->listener };
    pid_t pid = 0;
    int r = enter_mounts(&s, err);
    if (r == 0)
        r = storage_memory(k->storage, m->req->point, &s.images, err);
    if (r == 0)
        r = read_meta(&s, err);
    if (r == 0)
        r = open_program(&s, err);
    if (r == 0)
        r = set_stage(&s, err);
    if (r == 0)
        r = bring_back(&s, &pid, err);
    if (r == 0)
        r = visit_net(pid, cut_loose_ends, NULL, err);
    if (r == 0)
        r = m->born(m->arg, pid, err);
    if (r == 0)
        r = park_return(pid, s.note.name, &gone, m->fds, err);
    if (r == 0)
        park_note_remove(m->run_dir);
    else if (pid > 0)
        (void)kill(pid, SIGKILL);
    return r;
}

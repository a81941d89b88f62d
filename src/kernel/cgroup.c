#include "kernel/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <mntent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

#define GROUP_MODE 0755
#define CPU_PERIOD_US 100000 /* the kernel's own default */
#define PATH_SIZE 256        /* "<id>/work/memory.max" and room */
#define BUSY_TRIES 20        /* milliseconds */
#define STAT_SIZE 4096       /* memory.stat, the longest file read here, is not among them */

static const char *const controller_names[CGROUP_CONTROLLERS] = { "memory", "cpu", "pids" };

struct cgroup_host {
    int unified;                /* our root group in the unified hierarchy, or -1 */
    int v1[CGROUP_CONTROLLERS]; /* our root group in a v1 hierarchy, or -1 */
    bool in_v2[CGROUP_CONTROLLERS];
    bool ns_bounds; /* the unified hierarchy's delegation ends at cgroup namespaces */
    int parents[CGROUP_CONTROLLERS + 1]; /* the hierarchies' own roots, unified last */
    char unified_options[256];           /* that the unified hierarchy is mounted with */
    char name[64];
};

static bool has_word(const char *list, const char *word, const char *separators)
{
    size_t n = strlen(word);
    for (const char *p = list; *p;) {
        size_t len = strcspn(p, separators);
        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len;
        p += strspn(p, separators);
    }
    return false;
}

/* Open (and with make: create) the directory `path` below dirfd. */
static int open_group(int dirfd, const char *path, bool make)
{
    if (make && mkdirat(dirfd, path, GROUP_MODE) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* ---- the host ---- */

static int find_mounts(struct cgroup_host *h, struct err *err)
{
    FILE *f = setmntent("/proc/self/mounts", "re");
    if (!f)
        return err_set(err, errno, "cannot read /proc/self/mounts");
    struct mntent m;
    char line[4096];
    while (getmntent_r(f, &m, line, (int)sizeof(line))) {
        if (strcmp(m.mnt_type, "cgroup2") == 0 && h->parents[CGROUP_CONTROLLERS] < 0) {
            h->parents[CGROUP_CONTROLLERS] = open_group(AT_FDCWD, m.mnt_dir, false);
            (void)snprintf(h->unified_options, sizeof(h->unified_options), "%s", m.mnt_opts);
        }
        if (strcmp(m.mnt_type, "cgroup") != 0)
            continue;
        for (int c = 0; c < CGROUP_CONTROLLERS; c++)
            if (h->parents[c] < 0 && has_word(m.mnt_opts, controller_names[c], ","))
                h->parents[c] = open_group(AT_FDCWD, m.mnt_dir, false);
    }
    (void)endmntent(f);
    return 0;
}

/* Hand the v2 controllers down to the children of `dirfd` ('+'), or no longer ('-'). A controller
 * that is not there is found missing when its limit is set, so failures need no word here. */
static void hand_down(const struct cgroup_host *h, int dirfd, char sign)
{
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "%c%s", sign, controller_names[c]);
        /* -EBUSY: whoever was in the group a moment ago is not quite gone yet. */
        for (int i = 0; h->in_v2[c] && i < BUSY_TRIES; i++) {
            if (fd_write_file_at(dirfd, "cgroup.subtree_control", text) != -EBUSY)
                break;
            (void)poll(NULL, 0, 1);
        }
    }
}

int cgroup_host_open(const char *name, struct cgroup_host **ret_host, struct err *err)
{
    _cleanup_(cgroup_host_freep) struct cgroup_host *h = calloc(1, sizeof(*h));
    if (!h)
        return err_set(err, ENOMEM, "cannot allocate the cgroup host");
    h->unified = -1;
    for (int c = 0; c <= CGROUP_CONTROLLERS; c++)
        h->parents[c] = -1;
    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        h->v1[c] = -1;
    if (snprintf(h->name, sizeof(h->name), "%s", name) >= (int)sizeof(h->name) || strchr(name, '/'))
        return err_set(err, EINVAL, "'%s' cannot name a control group", name);

    int r = find_mounts(h, err);
    if (r < 0)
        return r;

    int unified = h->parents[CGROUP_CONTROLLERS];
    if (unified >= 0) {
        h->ns_bounds = has_word(h->unified_options, "nsdelegate", ",");
        char list[STAT_SIZE];
        if (fd_read_file_at(unified, "cgroup.controllers", list, sizeof(list)) < 0)
            list[0] = '\0';
        for (int c = 0; c < CGROUP_CONTROLLERS; c++)
            h->in_v2[c] = has_word(list, controller_names[c], " \n");
        hand_down(h, unified, '+');
        h->unified = open_group(unified, name, true);
        if (h->unified < 0)
            return err_set(err, -h->unified, "cannot make control group '%s'", name);
        hand_down(h, h->unified, '+');
    }
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (h->in_v2[c] || h->parents[c] < 0)
            continue;
        h->v1[c] = open_group(h->parents[c], name, true);
        if (h->v1[c] < 0)
            return err_set(err, -h->v1[c], "cannot make %s group '%s'", controller_names[c], name);
    }
    *ret_host = take_ptr(h);
    return 0;
}

void cgroup_host_free(struct cgroup_host *h)
{
    if (!h)
        return;
    fd_close_all(h->v1, CGROUP_CONTROLLERS);
    fd_close_all(h->parents, CGROUP_CONTROLLERS + 1);
    fd_close_all(&h->unified, 1);
    free(h);
}

int cgroup_host_remove(struct cgroup_host *h)
{
    int r = 0;
    for (int c = 0; c <= CGROUP_CONTROLLERS; c++)
        if (h->parents[c] >= 0 && unlinkat(h->parents[c], h->name, AT_REMOVEDIR) < 0 &&
            errno != ENOENT)
            r = -errno;
    return r;
}

bool cgroup_host_has(const struct cgroup_host *h, enum cgroup_controller c)
{
    return h->in_v2[c] || h->v1[c] >= 0;
}

bool cgroup_host_is_v2(const struct cgroup_host *h, enum cgroup_controller c)
{
    return h->in_v2[c];
}

bool cgroup_host_has_unified(const struct cgroup_host *h)
{
    return h->unified >= 0;
}

/* ---- one cell's files ---- */

static int write_at(int dirfd, const char *id, const char *file, const char *text)
{
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/%s", id, file);
    if (n < 0 || n >= (int)sizeof(path))
        return -ENAMETOOLONG;
    return fd_write_file_at(dirfd, path, text);
}

static ssize_t read_at(int dirfd, const char *id, const char *file, char *out, size_t size)
{
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/%s", id, file);
    if (n < 0 || n >= (int)sizeof(path))
        return -ENAMETOOLONG;
    return fd_read_file_at(dirfd, path, out, size);
}

static uint64_t read_u64(int dirfd, const char *id, const char *file)
{
    char text[64];
    if (read_at(dirfd, id, file, text, sizeof(text)) < 0)
        return 0;
    return strtoull(text, NULL, 10);
}

/* The number behind `key` in a "key value" file; 0 where there is none. */
static uint64_t read_keyed(int dirfd, const char *id, const char *file, const char *key)
{
    char text[STAT_SIZE];
    if (read_at(dirfd, id, file, text, sizeof(text)) < 0)
        return 0;
    size_t n = strlen(key);
    for (char *line = text; line && *line;) {
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return strtoull(line + n + 1, NULL, 10);
        line = strchr(line, '\n');
        if (line)
            line++;
    }
    return 0;
}

static int limit_memory(struct cgroup_host *h, const char *id, uint64_t bytes)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%" PRIu64, bytes);
    if (h->in_v2[CGROUP_MEMORY]) {
        int r = write_at(h->unified, id, "work/memory.max", text);
        if (r == 0)
            (void)write_at(h->unified, id, "work/memory.swap.max", "0"); /* absent without swap */
        return r;
    }
    /* memory+swap must never be below memory: lift it out of the way, then lower both. */
    int dir = h->v1[CGROUP_MEMORY];
    (void)write_at(dir, id, "memory.memsw.limit_in_bytes", "-1");
    int r = write_at(dir, id, "memory.limit_in_bytes", text);
    if (r == 0)
        (void)write_at(dir, id, "memory.memsw.limit_in_bytes", text);
    return r;
}

static int limit_cpu(struct cgroup_host *h, const char *id, uint32_t millis)
{
    char text[64];
    uint64_t quota = (uint64_t)millis * CPU_PERIOD_US / 1000;
    if (quota < 1000)
        quota = 1000; /* the kernel's smallest */
    if (h->in_v2[CGROUP_CPU]) {
        (void)snprintf(text, sizeof(text), "%" PRIu64 " %d", quota, CPU_PERIOD_US);
        return write_at(h->unified, id, "work/cpu.max", text);
    }
    (void)snprintf(text, sizeof(text), "%" PRIu64, quota);
    return write_at(h->v1[CGROUP_CPU], id, "cpu.cfs_quota_us", text);
}

static int limit_pids(struct cgroup_host *h, const char *id, uint32_t pids)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%" PRIu32, pids);
    return h->in_v2[CGROUP_PIDS] ? write_at(h->unified, id, "work/pids.max", text)
                                 : write_at(h->v1[CGROUP_PIDS], id, "pids.max", text);
}

int cgroup_limit(struct cgroup_host *h, const char *id, const struct cgroup_limits *l,
                 struct err *err)
{
    int r;
    if (l->memory_bytes && cgroup_host_has(h, CGROUP_MEMORY)) {
        r = limit_memory(h, id, l->memory_bytes);
        if (r == -EBUSY)
            return err_name(err, EBUSY, "limit_below_use",
                            "the sandbox uses more memory than the new limit allows");
        if (r < 0)
            return err_set(err, -r, "cannot limit memory to %" PRIu64 " bytes", l->memory_bytes);
    }
    if (l->cpu_millis && cgroup_host_has(h, CGROUP_CPU)) {
        r = limit_cpu(h, id, l->cpu_millis);
        if (r < 0)
            return err_set(err, -r, "cannot limit cpu to %" PRIu32 " thousandths", l->cpu_millis);
    }
    if (l->pids && cgroup_host_has(h, CGROUP_PIDS)) {
        r = limit_pids(h, id, l->pids);
        if (r < 0)
            return err_set(err, -r, "cannot limit processes to %" PRIu32, l->pids);
    }
    return 0;
}

/* ---- a cell's life ---- */

void cgroup_fds_close(struct cgroup_fds *fds)
{
    fd_close_all(&fds->init_group, 1);
    fd_close_all(&fds->work_group, 1);
    fd_close_all(&fds->oom, 1);
    fd_close_all(fds->procs, CGROUP_CONTROLLERS);
    fd_close_all(&fds->ns, 1);
    *fds = (struct cgroup_fds)CGROUP_FDS_INIT;
}

/* Let root inside move its own processes within its own groups: the kernel asks for write access
 * to the cgroup.procs of both ends and of their common ancestor, and to the parent for a mkdir. */
static int delegate(int group, int work, uint32_t owner)
{
    if (fchownat(group, "cgroup.procs", owner, owner, 0) < 0 ||
        fchownat(work, "cgroup.procs", owner, owner, 0) < 0 || fchown(work, owner, owner) < 0)
        return -errno;
    return 0;
}

static _Noreturn void send_namespace(int sock)
{
    int fd = unshare(CLONE_NEWCGROUP) < 0 ? -1 : open("/proc/self/ns/cgroup", O_RDONLY | O_CLOEXEC);
    _exit(fd < 0 || fd_send_msg(sock, "n", 1, &fd, 1) < 0);
}

/* A cgroup namespace with `group` as its root. Where namespaces bound what is delegated
 * (nsdelegate, which systemd asks for), init can start a process in `work` only if the root of its
 * namespace lies above both of them. The kernel makes a namespace of where its maker is, and nobody
 * can be in a group that hands controllers down: so before it does, by a process that lives for just
 * this. */
static int make_namespace(int group, int *ret_fd)
{
    int sock[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
        return -errno;
    struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t)group };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        send_namespace(sock[1]);
    int r = pid < 0 ? -errno : 0;
    (void)close(sock[1]);
    char word;
    size_t nfds = 0;
    if (r == 0 && (fd_recv_msg(sock[0], &word, 1, ret_fd, 1, &nfds) != 1 || nfds != 1))
        r = -ECHILD;
    (void)close(sock[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

static int make_unified(struct cgroup_host *h, const char *id, uint32_t owner,
                        struct cgroup_fds *fds, struct err *err)
{
    _cleanup_fd_ int group = open_group(h->unified, id, true);
    if (group < 0)
        return err_set(err, -group, "cannot make control group '%s'", id);
    int r = h->ns_bounds ? make_namespace(group, &fds->ns) : 0;
    if (r == -EBUSY) { /* taken over from a cell whose last process is still leaving */
        hand_down(h, group, '-');
        r = make_namespace(group, &fds->ns);
    }
    if (r < 0)
        return err_set(err, -r, "cannot make a cgroup namespace for '%s'", id);
    hand_down(h, group, '+');
    fds->init_group = open_group(group, "init", true);
    if (fds->init_group < 0)
        return err_set(err, -fds->init_group, "cannot make control group '%s/init'", id);
    fds->work_group = open_group(group, "work", true);
    if (fds->work_group < 0)
        return err_set(err, -fds->work_group, "cannot make control group '%s/work'", id);
    r = delegate(group, fds->work_group, owner);
    if (r < 0)
        return err_set(err, -r, "cannot delegate control group '%s'", id);
    if (h->in_v2[CGROUP_MEMORY])
        fds->oom = openat(fds->work_group, "memory.events", O_RDONLY | O_CLOEXEC);
    return 0;
}

static int make_v1(struct cgroup_host *h, const char *id, struct cgroup_fds *fds, struct err *err)
{
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (h->v1[c] < 0)
            continue;
        _cleanup_fd_ int group = open_group(h->v1[c], id, true);
        if (group < 0)
            return err_set(err, -group, "cannot make %s group '%s'", controller_names[c], id);
        /* Not cgroup.procs: a lone thread that moves itself through `tasks` is spared the lock that
         * makes every cpu pass a barrier, some 10 ms. */
        fds->procs[c] = openat(group, "tasks", O_WRONLY | O_CLOEXEC);
        if (fds->procs[c] < 0)
            return err_set(err, errno, "cannot open %s group '%s'", controller_names[c], id);
        if (c == CGROUP_MEMORY)
            fds->oom = openat(group, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    }
    return 0;
}

int cgroup_make(struct cgroup_host *h, const char *id, uint32_t owner, struct cgroup_fds *ret_fds,
                struct err *err)
{
    struct cgroup_fds fds = CGROUP_FDS_INIT;
    int r = h->unified >= 0 ? make_unified(h, id, owner, &fds, err) : 0;
    if (r < 0) {
        cgroup_fds_close(&fds);
        (void)cgroup_remove(h, id);
        return r;
    }
    *ret_fds = fds;
    return 0;
}

int cgroup_make_limits(struct cgroup_host *h, const char *id, const struct cgroup_limits *limits,
                       struct cgroup_fds *fds, struct err *err)
{
    int r = make_v1(h, id, fds, err);
    return r < 0 ? r : cgroup_limit(h, id, limits, err);
}

int cgroup_freeze(struct cgroup_host *h, const char *id, bool on, struct err *err)
{
    if (h->unified < 0)
        return err_name(err, ENOSYS, "unsupported", "freezing needs a unified cgroup hierarchy");
    int r = write_at(h->unified, id, "work/cgroup.freeze", on ? "1" : "0");
    return r < 0 ? err_set(err, -r, "cannot %s '%s'", on ? "freeze" : "thaw", id) : 0;
}

int cgroup_kill(struct cgroup_host *h, const char *id)
{
    if (h->unified < 0)
        return -ENOSYS;
    int r = write_at(h->unified, id, "cgroup.kill", "1");
    return r == -ENOENT ? -ENOSYS : r;
}

uint64_t cgroup_cpu_us(struct cgroup_host *h, const char *id)
{
    return h->unified >= 0 ? read_keyed(h->unified, id, "work/cpu.stat", "usage_usec") : 0;
}

uint64_t cgroup_memory_bytes(struct cgroup_host *h, const char *id)
{
    if (h->in_v2[CGROUP_MEMORY])
        return read_u64(h->unified, id, "work/memory.current");
    return h->v1[CGROUP_MEMORY] >= 0 ? read_u64(h->v1[CGROUP_MEMORY], id, "memory.usage_in_bytes")
                                     : 0;
}

int cgroup_usage(struct cgroup_host *h, const char *id, struct cgroup_usage *ret_usage,
                 struct err *err)
{
    struct cgroup_usage u = { 0 };
    if (h->unified >= 0 && faccessat(h->unified, id, F_OK, 0) < 0)
        return err_set(err, ENOENT, "no control group '%s'", id);
    if (h->unified >= 0)
        u.cpu_us = read_keyed(h->unified, id, "work/cpu.stat", "usage_usec");
    if (h->in_v2[CGROUP_MEMORY]) {
        u.memory_bytes = read_u64(h->unified, id, "work/memory.current");
        u.memory_peak_bytes = read_u64(h->unified, id, "work/memory.peak");
        u.oom_kills = read_keyed(h->unified, id, "work/memory.events", "oom_kill");
    } else if (h->v1[CGROUP_MEMORY] >= 0) {
        int dir = h->v1[CGROUP_MEMORY];
        u.memory_bytes = read_u64(dir, id, "memory.usage_in_bytes");
        u.memory_peak_bytes = read_u64(dir, id, "memory.max_usage_in_bytes");
        u.oom_kills = read_keyed(dir, id, "memory.oom_control", "oom_kill");
    }
    if (h->in_v2[CGROUP_PIDS])
        u.pids = (uint32_t)read_u64(h->unified, id, "work/pids.current");
    else if (h->v1[CGROUP_PIDS] >= 0)
        u.pids = (uint32_t)read_u64(h->v1[CGROUP_PIDS], id, "pids.current");
    *ret_usage = u;
    return 0;
}

/* Remove `path` below dirfd and the groups in it, which init made one level deep; deeper ones
 * can't be: the hierarchy is not mounted inside. */
static int remove_tree(int dirfd, const char *path, int depth)
{
    if (unlinkat(dirfd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != EBUSY && errno != ENOTEMPTY)
        return -errno;
    int r = -EBUSY;
    int fd = depth > 0 ? open_group(dirfd, path, false) : -EBUSY;
    if (fd < 0)
        return r;
    DIR *d = fdopendir(fd);
    if (!d) {
        (void)close(fd);
        return r;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            (void)remove_tree(fd, e->d_name, depth - 1);
    (void)closedir(d);
    return unlinkat(dirfd, path, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

int cgroup_remove(struct cgroup_host *h, const char *id)
{
    int r = 0;
    if (h->unified >= 0)
        r = remove_tree(h->unified, id, 2);
    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        if (h->v1[c] >= 0 && unlinkat(h->v1[c], id, AT_REMOVEDIR) < 0 && errno != ENOENT)
            r = -errno;
    return r;
}

int cgroup_each(struct cgroup_host *h, void (*fn)(const char *id, void *arg), void *arg)
{
    for (int i = 0; i <= CGROUP_CONTROLLERS; i++) {
        int root = i == CGROUP_CONTROLLERS ? h->unified : h->v1[i];
        if (root < 0)
            continue;
        int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        if (!d)
            return -errno;
        for (struct dirent *e; (e = readdir(d));)
            if (e->d_type == DT_DIR && e->d_name[0] != '.')
                fn(e->d_name, arg);
        (void)closedir(d);
    }
    return 0;
}

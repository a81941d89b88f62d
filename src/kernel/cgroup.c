#include "kernel/cgroup_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define FROZEN_LOOK_US 200
#define CPU_PERIOD_US 100000 /* the kernel's own default */
#define PATH_SIZE 256        /* "<id>/cell/work/memory.max" and room */
#define V1_SOCKETS_PART 4    /* of the memory limit, on top of it: v1 counts sockets apart */
/* Pid 1 holds at most 32 MiB of requests, 32 MiB of output and 64 MiB of answers (src/init/). */
#define INIT_MEMORY_BYTES "268435456"
#define INIT_CPU_MILLIS_MIN 500 /* init must answer in time in the smallest sandbox, too */

/* ---- one cell's files ---- */

static int path_of(const struct cgroup_host *h, int dirfd, const char *id, const char *file,
                   char out[PATH_SIZE])
{
    const char *level = dirfd == h->unified && h->ns_bounds ? CGROUP_BOUNDED "/" : "";
    int n = snprintf(out, PATH_SIZE, "%s/%s%s", id, level, file);
    return n < 0 || n >= PATH_SIZE ? -ENAMETOOLONG : 0;
}

static int write_at(const struct cgroup_host *h, int dirfd, const char *id, const char *file,
                    const char *text)
{
    char path[PATH_SIZE];
    int r = path_of(h, dirfd, id, file, path);
    return r < 0 ? r : fd_write_file_at(dirfd, path, text);
}

static ssize_t read_at(const struct cgroup_host *h, int dirfd, const char *id, const char *file,
                       char *out, size_t size)
{
    char path[PATH_SIZE];
    int r = path_of(h, dirfd, id, file, path);
    return r < 0 ? r : fd_read_file_at(dirfd, path, out, size);
}

static uint64_t read_u64(const struct cgroup_host *h, int dirfd, const char *id, const char *file)
{
    char text[64];
    if (read_at(h, dirfd, id, file, text, sizeof(text)) < 0)
        return 0;
    return strtoull(text, NULL, 10);
}

/* The number behind `key` in a "key value" file; 0 where there is none. */
static uint64_t read_keyed(const struct cgroup_host *h, int dirfd, const char *id, const char *file,
                           const char *key)
{
    char text[CGROUP_STAT_SIZE];
    if (read_at(h, dirfd, id, file, text, sizeof(text)) < 0)
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
        int r = write_at(h, h->unified, id, "work/memory.max", text);
        if (r == 0)
            (void)write_at(h, h->unified, id, "work/memory.swap.max",
                           "0"); /* absent without swap */
        return r;
    }
    /* memory+swap must never be below memory: lift it out of the way, then lower both. */
    int dir = h->v1[CGROUP_MEMORY];
    (void)write_at(h, dir, id, "memory.memsw.limit_in_bytes", "-1");
    int r = write_at(h, dir, id, "memory.limit_in_bytes", text);
    if (r < 0)
        return r;
    (void)write_at(h, dir, id, "memory.memsw.limit_in_bytes", text);
    /* Without a limit here nobody counts the buffers of TCP and UDP. Sockets over it get small
     * windows and lose datagrams; no process is killed. -EBUSY: more is in use; it drains or
     * stays. */
    (void)snprintf(text, sizeof(text), "%" PRIu64, bytes / V1_SOCKETS_PART);
    r = write_at(h, dir, id, "memory.kmem.tcp.limit_in_bytes", text);
    return r == -ENOENT || r == -EBUSY ? 0 : r;
}

int cgroup_init_name(const char *id, char out[CGROUP_INIT_NAME_SIZE])
{
    int n = snprintf(out, CGROUP_INIT_NAME_SIZE, "%s" CGROUP_INIT_SUFFIX, id);
    return n < 0 || n >= CGROUP_INIT_NAME_SIZE ? -ENAMETOOLONG : 0;
}

/* Write a file of pid 1's group. Cells of an older keeper have no such group. */
static int write_init(struct cgroup_host *h, const char *id, enum cgroup_controller c,
                      const char *v2_file, const char *v1_file, const char *text)
{
    char name[CGROUP_INIT_NAME_SIZE];
    int r = cgroup_init_name(id, name);
    if (r == 0 && h->in_v2[c])
        r = write_at(h, h->unified, id, v2_file, text);
    else if (r == 0 && h->v1[c] >= 0)
        r = write_at(h, h->v1[c], name, v1_file, text);
    return r == -ENOENT ? 0 : r;
}

int cgroup_limit_init_memory(struct cgroup_host *h, const char *id)
{
    return write_init(h, id, CGROUP_MEMORY, "init/memory.max", "memory.limit_in_bytes",
                      INIT_MEMORY_BYTES);
}

static int limit_init_cpu(struct cgroup_host *h, const char *id, uint32_t millis)
{
    char quota[32], text[64];
    if (millis < INIT_CPU_MILLIS_MIN)
        millis = INIT_CPU_MILLIS_MIN;
    (void)snprintf(quota, sizeof(quota), "%" PRIu64, (uint64_t)millis * CPU_PERIOD_US / 1000);
    (void)snprintf(text, sizeof(text), "%s %d", quota, CPU_PERIOD_US);
    return write_init(h, id, CGROUP_CPU, "init/cpu.max", "cpu.cfs_quota_us",
                      h->in_v2[CGROUP_CPU] ? text : quota);
}

static int limit_cpu(struct cgroup_host *h, const char *id, uint32_t millis)
{
    char text[64];
    uint64_t quota = (uint64_t)millis * CPU_PERIOD_US / 1000;
    if (quota < 1000)
        quota = 1000; /* the kernel's smallest */
    if (h->in_v2[CGROUP_CPU]) {
        (void)snprintf(text, sizeof(text), "%" PRIu64 " %d", quota, CPU_PERIOD_US);
        return write_at(h, h->unified, id, "work/cpu.max", text);
    }
    (void)snprintf(text, sizeof(text), "%" PRIu64, quota);
    return write_at(h, h->v1[CGROUP_CPU], id, "cpu.cfs_quota_us", text);
}

static int limit_pids(struct cgroup_host *h, const char *id, uint32_t pids)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%" PRIu32, pids);
    return h->in_v2[CGROUP_PIDS] ? write_at(h, h->unified, id, "work/pids.max", text)
                                 : write_at(h, h->v1[CGROUP_PIDS], id, "pids.max", text);
}

int cgroup_limit(struct cgroup_host *h, const char *id, const struct cgroup_limits *l,
                 struct err *err)
{
    h = cgroup_home(h, id);
    int r;
    if (l->memory_bytes && cgroup_host_has(h, CGROUP_MEMORY)) {
        r = limit_memory(h, id, l->memory_bytes);
        if (r == -EBUSY)
            return err_fail(err, FAIL_LIMIT_BELOW_USE,
                            "the sandbox uses more memory than the new limit allows");
        if (r < 0)
            return err_set(err, -r, "cannot limit memory to %" PRIu64 " bytes", l->memory_bytes);
    }
    if (l->cpu_millis && cgroup_host_has(h, CGROUP_CPU)) {
        r = limit_cpu(h, id, l->cpu_millis);
        if (r == 0)
            r = limit_init_cpu(h, id, l->cpu_millis);
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

int cgroup_open(struct cgroup_host *h, const char *id)
{
    h = cgroup_home(h, id);
    char path[PATH_SIZE];
    if (h->unified < 0)
        return -ENOSYS;
    int r = path_of(h, h->unified, id, ".", path);
    return r < 0 ? r : cgroup_open_group(h->unified, path, false);
}

void cgroup_leave_v1(struct cgroup_host *h, const char *id, pid_t pid)
{
    char text[16], name[CGROUP_INIT_NAME_SIZE];
    (void)snprintf(text, sizeof(text), "%d", (int)pid);
    if (cgroup_init_name(id, name) < 0)
        return;
    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        if (h->v1[c] >= 0 && write_at(h, h->v1[c], name, "cgroup.procs", text) < 0)
            (void)fd_write_file_at(h->v1[c], "cgroup.procs", text);
}

int cgroup_freeze(struct cgroup_host *h, const char *id, bool on, struct err *err)
{
    h = cgroup_home(h, id);
    if (h->unified < 0)
        return err_fail(err, FAIL_UNSUPPORTED, "freezing needs a unified cgroup hierarchy");
    int r = write_at(h, h->unified, id, "work/cgroup.freeze", on ? "1" : "0");
    return r < 0 ? err_set(err, -r, "cannot %s '%s'", on ? "freeze" : "thaw", id) : 0;
}

int cgroup_wait_frozen(struct cgroup_host *h, const char *id, int timeout_ms)
{
    h = cgroup_home(h, id);
    char text[128];
    int64_t until = clock_mono_ms() + timeout_ms;
    for (;;) {
        ssize_t n = read_at(h, h->unified, id, "work/cgroup.events", text, sizeof(text));
        if (n < 0)
            return (int)n;
        if (strstr(text, "frozen 1"))
            return 0;
        if (clock_mono_ms() >= until)
            return -ETIMEDOUT;
        (void)usleep(FROZEN_LOOK_US);
    }
}

int cgroup_kill(struct cgroup_host *h, const char *id)
{
    h = cgroup_home(h, id);
    if (h->unified < 0)
        return -ENOSYS;
    int r = write_at(h, h->unified, id, "cgroup.kill", "1");
    return r == -ENOENT ? -ENOSYS : r;
}

uint64_t cgroup_cpu_us(struct cgroup_host *h, const char *id)
{
    h = cgroup_home(h, id);
    return h->unified >= 0 ? read_keyed(h, h->unified, id, "work/cpu.stat", "usage_usec") : 0;
}

/* Including sockets' buffers, as v2 counts it. */
static uint64_t memory_v1(struct cgroup_host *h, const char *id)
{
    return read_u64(h, h->v1[CGROUP_MEMORY], id, "memory.usage_in_bytes") +
           read_u64(h, h->v1[CGROUP_MEMORY], id, "memory.kmem.tcp.usage_in_bytes");
}

uint64_t cgroup_memory_bytes(struct cgroup_host *h, const char *id)
{
    h = cgroup_home(h, id);
    if (h->in_v2[CGROUP_MEMORY])
        return read_u64(h, h->unified, id, "work/memory.current");
    return h->v1[CGROUP_MEMORY] >= 0 ? memory_v1(h, id) : 0;
}

uint64_t cgroup_cache_bytes(struct cgroup_host *h, const char *id)
{
    h = cgroup_home(h, id);
    if (h->in_v2[CGROUP_MEMORY])
        return read_keyed(h, h->unified, id, "work/memory.stat", "inactive_file") +
               read_keyed(h, h->unified, id, "work/memory.stat", "active_file");
    int dir = h->v1[CGROUP_MEMORY];
    return dir < 0 ? 0
                   : read_keyed(h, dir, id, "memory.stat", "total_inactive_file") +
                         read_keyed(h, dir, id, "memory.stat", "total_active_file");
}

int cgroup_usage(struct cgroup_host *h, const char *id, struct cgroup_usage *ret_usage,
                 struct err *err)
{
    h = cgroup_home(h, id);
    struct cgroup_usage u = { 0 };
    if (h->unified >= 0 && faccessat(h->unified, id, F_OK, 0) < 0)
        return err_set(err, ENOENT, "no control group '%s'", id);
    if (h->unified >= 0)
        u.cpu_us = read_keyed(h, h->unified, id, "work/cpu.stat", "usage_usec");
    if (h->in_v2[CGROUP_MEMORY]) {
        u.memory_bytes = read_u64(h, h->unified, id, "work/memory.current");
        u.memory_peak_bytes = read_u64(h, h->unified, id, "work/memory.peak");
        u.oom_kills = read_keyed(h, h->unified, id, "work/memory.events", "oom_kill");
    } else if (h->v1[CGROUP_MEMORY] >= 0) {
        int dir = h->v1[CGROUP_MEMORY];
        u.memory_bytes = memory_v1(h, id);
        u.memory_peak_bytes = read_u64(h, dir, id, "memory.max_usage_in_bytes");
        u.oom_kills = read_keyed(h, dir, id, "memory.oom_control", "oom_kill");
    }
    if (h->in_v2[CGROUP_PIDS])
        u.pids = (uint32_t)read_u64(h, h->unified, id, "work/pids.current");
    else if (h->v1[CGROUP_PIDS] >= 0)
        u.pids = (uint32_t)read_u64(h, h->v1[CGROUP_PIDS], id, "pids.current");
    *ret_usage = u;
    return 0;
}

/* Remove `path` below dirfd and the groups in it: those of init and work, and in the latter what init made;
 * deeper ones can't be: the hierarchy is not mounted inside. */
static int remove_tree(int dirfd, const char *path, int depth)
{
    if (unlinkat(dirfd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != EBUSY && errno != ENOTEMPTY)
        return -errno;
    int r = -EBUSY;
    int fd = depth > 0 ? cgroup_open_group(dirfd, path, false) : -EBUSY;
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

int cgroup_remove(struct cgroup_host *own, const char *id)
{
    struct cgroup_host *h = cgroup_home(own, id);
    int r = 0;
    if (h->unified >= 0)
        r = remove_tree(h->unified, id, h->ns_bounds ? 3 : 2);
    char init[CGROUP_INIT_NAME_SIZE];
    int named = cgroup_init_name(id, init);
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (h->v1[c] < 0)
            continue;
        /* Remove pid 1's group first: the next keeper finds cells by the other. */
        if (named == 0 && unlinkat(h->v1[c], init, AT_REMOVEDIR) < 0 && errno != ENOENT)
            r = -errno;
        else if (unlinkat(h->v1[c], id, AT_REMOVEDIR) < 0 && errno != ENOENT)
            r = -errno;
    }
    if (r == 0 && h != own)
        cgroup_drop_root(h); /* if no other cell is in it */
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
            if (e->d_type == DT_DIR &&
                !strchr(e->d_name, '.')) /* skip pid 1's groups, which go with their cell's */
                fn(e->d_name, arg);
        (void)closedir(d);
    }
    return 0;
}

#include "cell/ns_size.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/ns_boot.h"
#include "cell/ns_private.h"

#define TEXT_SIZE 2048     /* a meminfo has some 900 bytes */
#define VALUE_SIZE 48      /* two numbers and a blank */
#define STAT_TAIL_SIZE 256 /* of /proc/stat: what follows the processors' lines */
#define BOOTED "\nbtime "
#define CPU_PERIOD_US 100000 /* as in kernel/cgroup.c */

enum file { CONTROLLERS, CPU_MAX, CURRENT, HIGH, MEMORY_MAX, SWAP_MAX, PIDS_MAX, FILES };
static const char *const names[FILES] = {
    [CONTROLLERS] = "cgroup.controllers",
    [CPU_MAX] = "cpu.max",
    [CURRENT] = "memory.current",
    [HIGH] = "memory.high",
    [MEMORY_MAX] = "memory.max",
    [SWAP_MAX] = "memory.swap.max",
    [PIDS_MAX] = "pids.max",
};

const char *ns_size_suffix(const char *path)
{
    return strcmp(path, NS_MEMINFO_PATH) == 0   ? NS_MEMINFO_SUFFIX
           : strcmp(path, NS_CGROUP_PATH) == 0  ? NS_CGROUP_SUFFIX
           : strcmp(path, NS_CPUINFO_PATH) == 0 ? NS_CPUINFO_SUFFIX
           : strcmp(path, NS_ONLINE_PATH) == 0  ? NS_ONLINE_SUFFIX
                                                : NULL;
}

/* ---- what they say ---- */

/* A limit above the host's memory limits nothing. */
static uint64_t total_bytes(uint64_t limit)
{
    static uint64_t host; /* asked once: the kernel adds up all its zones */
    struct sysinfo si;
    if (!host && sysinfo(&si) == 0)
        host = (uint64_t)si.totalram * si.mem_unit;
    return limit && limit < host ? limit : host;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The lines that free, top and vmstat add up, in the kernel's order. The width makes a later text as long as this one, so that
 * a reader never meets the end of another. */
static void print_meminfo(uint64_t total, uint64_t used, uint64_t cache, char out[TEXT_SIZE])
{
    used = least(used, total);
    cache = least(cache, used);
    const uint64_t anon = used - cache;
    const struct {
        const char *name;
        uint64_t bytes;
    } lines[] = {
        { "MemTotal:", total },
        { "MemFree:", total - used },
        { "MemAvailable:", total - anon },
        { "Buffers:", 0 },
        { "Cached:", cache },
        { "SwapCached:", 0 },
        { "Active:", anon },
        { "Inactive:", cache },
        { "Active(anon):", anon },
        { "Inactive(anon):", 0 },
        { "Active(file):", 0 },
        { "Inactive(file):", cache },
        { "Unevictable:", 0 },
        { "Mlocked:", 0 },
        { "SwapTotal:", 0 },
        { "SwapFree:", 0 },
        { "Dirty:", 0 },
        { "Writeback:", 0 },
        { "AnonPages:", anon },
        { "Mapped:", 0 },
        { "Shmem:", 0 },
        { "KReclaimable:", 0 },
        { "Slab:", 0 },
        { "SReclaimable:", 0 },
        { "SUnreclaim:", 0 },
        { "KernelStack:", 0 },
        { "PageTables:", 0 },
        { "CommitLimit:", total },
        { "Committed_AS:", anon },
    };
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(lines) && n < TEXT_SIZE; i++)
        n += (size_t)snprintf(out + n, TEXT_SIZE - n, "%-15s %8" PRIu64 " kB\n", lines[i].name,
                              lines[i].bytes / 1024);
}

static void print_number(uint64_t n, char out[VALUE_SIZE])
{
    if (n)
        (void)snprintf(out, VALUE_SIZE, "%" PRIu64 "\n", n);
    else
        (void)snprintf(out, VALUE_SIZE, "max\n");
}

static void print_cpu_max(uint32_t millis, char out[VALUE_SIZE])
{
    if (millis)
        (void)snprintf(out, VALUE_SIZE, "%" PRIu64 " %d\n", (uint64_t)millis * CPU_PERIOD_US / 1000,
                       CPU_PERIOD_US);
    else
        (void)snprintf(out, VALUE_SIZE, "max %d\n", CPU_PERIOD_US);
}

/* ---- a new cell's ---- */

static int make_file(int dir, const char *name, const char *text)
{
    (void)unlinkat(dir, name, 0);
    _cleanup_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    return fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
}

static int make_group(int boots, const char *name, const struct cgroup_limits *l)
{
    char memory[VALUE_SIZE], cpu[VALUE_SIZE], pids[VALUE_SIZE];
    if (mkdirat(boots, name, 0555) < 0 && errno != EEXIST)
        return -errno;
    _cleanup_fd_ int dir = openat(boots, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    print_number(l->memory_bytes, memory);
    print_number(l->pids, pids);
    print_cpu_max(l->cpu_millis, cpu);
    const char *const texts[FILES] = {
        [CONTROLLERS] = "cpu memory pids\n",
        [CPU_MAX] = cpu,
        [CURRENT] = "0\n",
        [HIGH] = "max\n",
        [MEMORY_MAX] = memory,
        [SWAP_MAX] = "0\n",
        [PIDS_MAX] = pids,
    };
    int r = dir < 0 ? -errno : 0;
    for (size_t i = 0; r >= 0 && i < FILES; i++)
        r = make_file(dir, names[i], texts[i]);
    return r;
}

/* The files of what `print` says of so many processors. */
static int make_cpus(int boots, const char *name, unsigned cpus,
                     int (*print)(unsigned cpus, struct buf *b))
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(NS_CPUS_TEXT_MAX);
    int r = print(cpus, &b);
    return r < 0 ? r : make_file(boots, name, b.data);
}

int ns_size_put(const struct ns_host *h, const char *id, const struct cgroup_limits *l,
                struct err *err)
{
    char name[NS_PATH_SIZE], text[TEXT_SIZE];
    print_meminfo(total_bytes(l->memory_bytes), 0, 0, text);
    (void)snprintf(name, sizeof(name), "%s" NS_MEMINFO_SUFFIX, id);
    int r = make_file(h->boots, name, text);
    (void)snprintf(name, sizeof(name), "%s" NS_CGROUP_SUFFIX, id);
    if (r >= 0)
        r = make_group(h->boots, name, l);
    const unsigned cpus = ns_cpus_shown(l->cpu_millis);
    (void)snprintf(name, sizeof(name), "%s" NS_CPUINFO_SUFFIX, id);
    if (r >= 0)
        r = make_cpus(h->boots, name, cpus, ns_cpus_print_info);
    (void)snprintf(name, sizeof(name), "%s" NS_ONLINE_SUFFIX, id);
    if (r >= 0)
        r = make_cpus(h->boots, name, cpus, ns_cpus_print_online);
    return r < 0 ? err_set(err, -r, "cannot make what '%s' sees of its limits", id) : 0;
}

void ns_size_drop(const struct ns_host *h, const char *id)
{
    static const char *const suffixes[] = { NS_MEMINFO_SUFFIX, NS_CPUINFO_SUFFIX,
                                            NS_ONLINE_SUFFIX };
    char name[NS_PATH_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        (void)snprintf(name, sizeof(name), "%s%s", id, suffixes[i]);
        (void)unlinkat(h->boots, name, 0);
    }
    for (size_t i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof(name), "%s" NS_CGROUP_SUFFIX "/%s", id, names[i]);
        (void)unlinkat(h->boots, name, 0);
    }
    (void)snprintf(name, sizeof(name), "%s" NS_CGROUP_SUFFIX, id);
    (void)unlinkat(h->boots, name, AT_REMOVEDIR);
}

/* ---- a running cell's ---- */

/* By way of the cell: a new keeper has another filesystem for new cells. No link leads out, and a file that
 * is not on a tmpfs is the kernel's own. */
static int open_inside(int root, const char *path, int flags)
{
    struct open_how how = { .flags = (uint64_t)flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                            .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH };
    struct statfs fs;
    _cleanup_fd_ int fd = (int)syscall(SYS_openat2, root, path + 1, &how, sizeof(how));
    if (fd < 0)
        return -errno;
    return fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC ? -ENOENT : take_fd(fd);
}

static int open_root(pid_t pid)
{
    char path[48];
    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int rewrite(int root, const char *path, const char *text)
{
    _cleanup_fd_ int fd = open_inside(root, path, O_WRONLY);
    if (fd == -ENOENT || fd == -EROFS) /* as older cells have it */
        return 0;
    if (fd < 0)
        return fd;
    if (pwrite(fd, text, strlen(text), 0) < 0 || ftruncate(fd, (off_t)strlen(text)) < 0)
        return -errno;
    return 0;
}

static uint64_t read_number(int root, const char *path)
{
    char text[VALUE_SIZE] = "";
    _cleanup_fd_ int fd = open_inside(root, path, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        return 0;
    return strtoull(text, NULL, 10); /* "max": 0 */
}

int ns_size_use(pid_t pid, uint64_t used_bytes, uint64_t cache_bytes)
{
    char text[TEXT_SIZE], number[VALUE_SIZE];
    _cleanup_fd_ int root = open_root(pid);
    if (root < 0)
        return root;
    uint64_t limit = read_number(root, NS_CGROUP_PATH "/memory.max");
    (void)snprintf(number, sizeof(number), "%" PRIu64 "\n", used_bytes);
    print_meminfo(total_bytes(limit), used_bytes, cache_bytes, text);
    int r = rewrite(root, NS_CGROUP_PATH "/memory.current", number);
    return r < 0 ? r : rewrite(root, NS_MEMINFO_PATH, text);
}

/* The time of the boot stays as it was written: it is in the last lines. */
static int rewrite_stat(int root, unsigned cpus, struct buf *b)
{
    char tail[STAT_TAIL_SIZE] = "";
    struct stat sb;
    _cleanup_fd_ int fd = open_inside(root, NS_STAT_PATH, O_RDONLY);
    if (fd < 0 || fstat(fd, &sb) < 0)
        return 0;
    off_t from = sb.st_size > STAT_TAIL_SIZE ? sb.st_size - STAT_TAIL_SIZE : 0;
    if (pread(fd, tail, sizeof(tail) - 1, from) < 0)
        return -errno;
    const char *at = strstr(tail, BOOTED);
    if (!at)
        return 0;
    buf_clear(b);
    int r = ns_cpus_print_stat(cpus, strtoll(at + strlen(BOOTED), NULL, 10), b);
    return r < 0 ? r : rewrite(root, NS_STAT_PATH, b->data);
}

static int rewrite_cpus(int root, unsigned cpus)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(NS_CPUS_TEXT_MAX);
    int r = ns_cpus_print_info(cpus, &b);
    if (r >= 0)
        r = rewrite(root, NS_CPUINFO_PATH, b.data);
    buf_clear(&b);
    if (r >= 0)
        r = ns_cpus_print_online(cpus, &b);
    if (r >= 0)
        r = rewrite(root, NS_ONLINE_PATH, b.data);
    return r < 0 ? r : rewrite_stat(root, cpus, &b);
}

int ns_size_limit(pid_t pid, const struct cgroup_limits *l)
{
    char text[VALUE_SIZE];
    _cleanup_fd_ int root = open_root(pid);
    int r = root < 0 ? root : 0;
    if (r == 0 && l->memory_bytes) {
        print_number(l->memory_bytes, text);
        r = rewrite(root, NS_CGROUP_PATH "/memory.max", text);
    }
    if (r == 0 && l->cpu_millis) {
        print_cpu_max(l->cpu_millis, text);
        r = rewrite(root, NS_CGROUP_PATH "/cpu.max", text);
        if (r == 0)
            r = rewrite_cpus(root, ns_cpus_shown(l->cpu_millis));
    }
    if (r == 0 && l->pids) {
        print_number(l->pids, text);
        r = rewrite(root, NS_CGROUP_PATH "/pids.max", text);
    }
    return r;
}

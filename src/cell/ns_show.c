#include "cell/ns_show.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define TEXT_MAX (64 * 1024) /* /proc/vmstat has 5 KiB */
#define DEPTH_MAX 5          /* cpu/cpu0/cache/index0/size */

/* In the order in which a cell has them. */
static const struct {
    const char *path, *name;
} stand_ins[] = {
    { "/proc/cgroups", "cgroups" },
    { "/proc/cmdline", "cmdline" },
    { "/proc/loadavg", "loadavg" },
    { "/proc/partitions", "partitions" },
    { "/proc/swaps", "swaps" },
    { "/proc/vmstat", "vmstat" },
    { "/proc/sys/fs", "fs" },
    { "/proc/sys/kernel/pty", "pty" },
    { "/sys", NS_SHOW_SYS },
    { "/sys/class", NS_SHOW_SYS "/class" },     /* older cells have a sysfs, */
    { "/sys/devices", NS_SHOW_SYS "/devices" }, /* and these on it */
};

const char *ns_show_name(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(stand_ins); i++)
        if (strcmp(path, stand_ins[i].path) == 0)
            return stand_ins[i].name;
    return NULL;
}

static int write_file(int dir, const char *name, const char *text)
{
    _cleanup_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    return fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
}

/* ---- counters ---- */

/* Every number becomes 0; the last one stays where `keep_last` says so. */
static void zero_numbers(char *text, bool keep_last)
{
    char *to = text, *end = text + strlen(text);
    while (keep_last && end > text && !isdigit((unsigned char)end[-1]))
        end--;
    while (keep_last && end > text && isdigit((unsigned char)end[-1]))
        end--;
    for (const char *p = text; *p;) {
        if (p >= end || !isdigit((unsigned char)*p)) {
            *to++ = *p++;
            continue;
        }
        *to++ = '0';
        while (isdigit((unsigned char)*p))
            p++;
    }
    *to = '\0';
}

/* Of "name N" lines: the same names, and zeros. */
static void zero_values(char *text)
{
    char *to = text;
    for (char *p = text; *p;) {
        size_t name = strcspn(p, " \n"), line = strcspn(p, "\n");
        bool has_value = p[name] == ' ', ends = p[line] == '\n';
        memmove(to, p, name);
        to += name;
        if (has_value) { /* never longer than what stood there */
            memcpy(to, " 0\n", 3);
            to += 3;
        }
        p += line + ends;
    }
    *to = '\0';
}

/* Of /proc/cgroups: how many groups there are tells how many sandboxes there are. */
static void one_group_each(char *text, size_t size)
{
    char out[TEXT_MAX], name[64];
    unsigned hierarchy, count, enabled;
    size_t n = 0;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line && n < sizeof(out) - 1;
         line = strtok_r(NULL, "\n", &save))
        n += (size_t)(sscanf(line, "%63s %u %u %u", name, &hierarchy, &count, &enabled) == 4
                          ? snprintf(out + n, sizeof(out) - n, "%s\t%u\t1\t%u\n", name, hierarchy,
                                     enabled)
                          : snprintf(out + n, sizeof(out) - n, "%s\n", line));
    (void)snprintf(text, size, "%s", n < sizeof(out) ? out : "");
}

/* ---- trees ---- */

static bool is_numbered(const char *name, const char *word)
{
    size_t n = strlen(word);
    return strncmp(name, word, n) == 0 && isdigit((unsigned char)name[n]);
}

/* The directories below the processor's, the memory nodes', an interface's and /proc/sys/fs that hold settings and shapes. Others hold
 * counters (cpuidle, thermal_throttle), or another filesystem (binfmt_misc). */
static bool is_shape(const char *name)
{
    static const char *const dirs[] = { "topology", "cache",     "vulnerabilities", "smt",
                                        "epoll",    "fanotify",  "inotify",         "mqueue",
                                        "verity",   "statistics" };
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (strcmp(name, dirs[i]) == 0)
            return true;
    return is_numbered(name, "cpu") || is_numbered(name, "index") || is_numbered(name, "node");
}

static bool is_left_out(const char *name)
{
    static const char *const files[] = { "uevent",  "meminfo", "numastat", "vmstat",
                                         "compact", "reclaim", "modalias" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (strcmp(name, files[i]) == 0)
            return true;
    return strncmp(name, "crash_", strlen("crash_")) == 0;
}

static bool is_counter(const char *name)
{
    static const char *const files[] = { "aio-nr",      "dentry-state", "file-nr",   "inode-nr",
                                         "inode-state", "nr",           "multicast", "collisions" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (strcmp(name, files[i]) == 0)
            return true;
    return strncmp(name, "rx_", 3) == 0 ||
           (strncmp(name, "tx_", 3) == 0 && strcmp(name, "tx_queue_len") != 0);
}

static int copy_file(int from, int to, const char *name)
{
    char text[4096];
    if (fd_read_file_at(from, name, text, sizeof(text)) < 0)
        return 0; /* write-only, or not for this machine */
    if (is_counter(name))
        zero_numbers(text, strcmp(name, "file-nr") == 0);
    return write_file(to, name, text);
}

static int copy_tree(int from_dir, const char *from_name, int to_dir, const char *to_name,
                     int depth);

static int copy_entry(int from, int to, const char *name, int depth)
{
    struct stat sb;
    if (fstatat(from, name, &sb, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISDIR(sb.st_mode))
        return is_shape(name) && depth > 0 ? copy_tree(from, name, to, name, depth - 1) : 0;
    return S_ISREG(sb.st_mode) && sb.st_mode & 0444 && !is_left_out(name)
               ? copy_file(from, to, name)
               : 0;
}

static int copy_tree(int from_dir, const char *from_name, int to_dir, const char *to_name,
                     int depth)
{
    if (mkdirat(to_dir, to_name, 0555) < 0)
        return -errno;
    int from = openat(from_dir, from_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_fd_ int to = openat(to_dir, to_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = from < 0 ? NULL : fdopendir(from);
    int r = to < 0 ? -errno : 0;
    if (!d && from >= 0)
        (void)close(from);
    for (struct dirent *e; d && r == 0 && (e = readdir(d));)
        if (e->d_name[0] != '.')
            r = copy_entry(from, to, e->d_name, depth);
    if (d)
        (void)closedir(d);
    return r;
}

/* ---- all of it ---- */

static int put_files(int dir)
{
    char text[TEXT_MAX];
    int r = write_file(dir, "cmdline", "ro\n"); /* what the host was started with is its own */
    if (r == 0)
        r = write_file(dir, "loadavg", "0.00 0.00 0.00 1/1 1\n");
    if (r == 0)
        r = write_file(dir, "partitions", "major minor  #blocks  name\n\n");
    if (r == 0)
        r = write_file(dir, "swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
    if (r == 0 && fd_read_file_at(AT_FDCWD, "/proc/vmstat", text, sizeof(text)) >= 0) {
        zero_values(text);
        r = write_file(dir, "vmstat", text);
    }
    if (r == 0 && fd_read_file_at(AT_FDCWD, "/proc/cgroups", text, sizeof(text)) >= 0) {
        one_group_each(text, sizeof(text));
        r = write_file(dir, "cgroups", text);
    }
    return r;
}

/* /sys as a cell sees it: the names of the host's top, the processors, the memory nodes and loopback; all else is
 * empty. */
static int put_sys(int dir)
{
    static const char *const dirs[] = { "",
                                        "/block",
                                        "/bus",
                                        "/class",
                                        "/class/net",
                                        "/dev",
                                        "/devices",
                                        "/devices/system",
                                        "/devices/virtual",
                                        "/devices/virtual/net",
                                        "/firmware",
                                        "/fs",
                                        "/fs/cgroup",
                                        "/hypervisor",
                                        "/kernel",
                                        "/module",
                                        "/power" };
    char path[64];
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++) {
        (void)snprintf(path, sizeof(path), NS_SHOW_SYS "%s", dirs[i]);
        r = mkdirat(dir, path, 0555) < 0 ? -errno : 0;
    }
    if (r == 0)
        r = copy_tree(AT_FDCWD, "/sys/devices/system/cpu", dir, NS_SHOW_SYS "/devices/system/cpu",
                      DEPTH_MAX);
    if (r == 0)
        r = copy_tree(AT_FDCWD, "/sys/devices/system/node", dir, NS_SHOW_SYS "/devices/system/node",
                      1);
    if (r == 0)
        r = copy_tree(AT_FDCWD, "/sys/devices/virtual/net/lo", dir,
                      NS_SHOW_SYS "/devices/virtual/net/lo", 1);
    if (r == 0 && symlinkat("../../devices/virtual/net/lo", dir, NS_SHOW_SYS "/class/net/lo") < 0)
        r = -errno;
    return r;
}

static int put_trees(int dir)
{
    int r = put_sys(dir);
    if (r == 0)
        r = copy_tree(AT_FDCWD, "/proc/sys/fs", dir, "fs", 1);
    return r < 0 ? r : copy_tree(AT_FDCWD, "/proc/sys/kernel/pty", dir, "pty", 0);
}

int ns_show_fill(int dir, struct err *err)
{
    int r = write_file(dir, NS_SHOW_NOTHING, "");
    if (r == 0 && mkdirat(dir, NS_SHOW_EMPTY, 0555) < 0)
        r = -errno;
    if (r == 0)
        r = put_files(dir);
    if (r == 0)
        r = put_trees(dir);
    return r < 0 ? err_set(err, -r, "cannot make what cells see of /proc and /sys") : 0;
}

int ns_show_net(pid_t pid, struct err *err)
{
    static const char *const files[] = { "sockstat", "softnet_stat", "protocols", "stat/rt_cache" };
    char path[64];
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, files[i]);
        /* The host's root owns it: no capability inside reaches a file of an id without a name there.
         * Some kernels lack one of them. */
        if ((chmod(path, 0) < 0 || chown(path, 0, 0) < 0) && errno != ENOENT)
            return err_set(err, errno, "cannot close '%s' to the sandbox", path);
    }
    return 0;
}

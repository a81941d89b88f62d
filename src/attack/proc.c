/* Files of /proc and /sys that must not be writable, or must not tell. */
#include "attack/attempt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Addresses give the kernel away, names do not: zeros are fine. */
static void run_zeros(const struct attempt *self, struct outcome *o)
{
    static char text[65536];
    long n = slurp(self->path, text, sizeof(text));
    if (n <= 0) {
        held(o, "%s: %s", self->path, n < 0 ? strerror((int)-n) : "empty");
        return;
    }
    const char *at = strstr(text, self->text ? self->text : "");
    for (const char *p = at ? at : text; *p && p; p = strchr(p, '\n'), p = p ? p + 1 : "")
        if (strspn(p, " 0-") < strspn(p, " 0123456789abcdef-")) {
            broke(o, "%s shows an address: %.40s", self->path, p);
            return;
        }
    held(o, "%s shows zeros", self->path);
}

static void run_modules(const struct attempt *self, struct outcome *o)
{
    static char text[65536];
    long n = slurp("/proc/modules", text, sizeof(text));
    const char *at = n > 0 ? strstr(text, " 0x") : NULL;
    if (at && strspn(at + 3, "0") < 16)
        broke(o, "/proc/modules shows where a module is: %.19s", at);
    held(o, "no address of a module");
}

static void run_empty_dir(const struct attempt *self, struct outcome *o)
{
    DIR *dir = opendir(self->path);
    struct dirent *e;
    if (!dir) {
        held(o, "%s: %s", self->path, strerror(errno));
        return;
    }
    while ((e = readdir(dir)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            broke(o, "%s shows %s", self->path, e->d_name);
    (void)closedir(dir);
    held(o, "%s is empty", self->path);
}

/* v1's release_agent runs a program on the host, and v2's parent groups would lift limits. */
static void run_cgroups(const struct attempt *self, struct outcome *o)
{
    static const char *const places[] = { "/sys/fs/cgroup" };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        tree_unwritable(o, places[i]);
}

static void run_release_agent(const struct attempt *self, struct outcome *o)
{
    static const char *const dirs[] = { "",         "/memory", "/cpu",     "/pids",
                                        "/devices", "/rdma",   "/systemd", "/unified" };
    static const char *const files[] = { "release_agent", "notify_on_release", "cgroup.procs",
                                         "devices.allow" };
    char path[256];
    for (size_t d = 0; d < sizeof(dirs) / sizeof(dirs[0]); d++)
        for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
            (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", dirs[d], files[f]);
            unwritable(o, path);
        }
}

/* /proc must show processes of this pid namespace alone, so that no other root can be entered. */
static void run_roots(const struct attempt *self, struct outcome *o)
{
    char path[300], link[256];
    struct dirent *e;
    DIR *dir = opendir("/proc");
    while (dir && (e = readdir(dir))) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%s/root", e->d_name);
        ssize_t n = readlink(path, link, sizeof(link) - 1);
        if (n > 0) {
            link[n] = '\0';
            if (strcmp(link, "/") != 0)
                broke(o, "%s is %s", path, link);
        }
    }
    if (dir)
        (void)closedir(dir);
    held(o, "every root that shows is this one");
}

static void run_cgroup_paths(const struct attempt *self, struct outcome *o)
{
    char text[4096], *line = text;
    if (slurp("/proc/self/cgroup", text, sizeof(text)) <= 0) {
        held(o, "nothing");
        return;
    }
    for (char *next; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? (*next = '\0', next + 1) : line + strlen(line);
        const char *path = strrchr(line, ':');
        if (path && strstr(path, "warren"))
            broke(o, "the host's group shows: %s", path + 1);
    }
    held(o, "only groups of its own namespace");
}

#define SILENT(name_, path_)                                                            \
    {                                                                                   \
        .name = "read-" name_, .title = "read " path_, .run = run_silent, .path = path_ \
    }
#define SHUT(name_, path_)                                                                    \
    {                                                                                         \
        .name = "write-" name_, .title = "write " path_, .run = run_unwritable, .path = path_ \
    }
#define TREE(name_, path_)                                                               \
    {                                                                                    \
        .name = "write-" name_, .title = "write anything below " path_, .run = run_tree, \
        .path = path_, .flags = ATTEMPT_SLOW                                             \
    }
#define EMPTY(name_, path_)                                                                \
    {                                                                                      \
        .name = "list-" name_, .title = "list " path_, .run = run_empty_dir, .path = path_ \
    }

/* clang-format off */
static const struct attempt proc[] = {
    TREE("proc-sys", "/proc/sys"), TREE("proc-irq", "/proc/irq"), TREE("proc-bus", "/proc/bus"),
    TREE("proc-fs", "/proc/fs"), TREE("sys", "/sys"),
    SHUT("sysrq", "/proc/sysrq-trigger"), SHUT("core-pattern", "/proc/sys/kernel/core_pattern"),
    SHUT("modprobe", "/proc/sys/kernel/modprobe"), SHUT("hotplug", "/proc/sys/kernel/hotplug"),
    SHUT("uevent-helper", "/sys/kernel/uevent_helper"), SHUT("binfmt", "/proc/sys/fs/binfmt_misc/register"),
    SHUT("kcore", "/proc/kcore"), SHUT("mtrr", "/proc/mtrr"), SHUT("timer-list", "/proc/timer_list"),
    SILENT("kcore", "/proc/kcore"), SILENT("keys", "/proc/keys"), SILENT("timer-list", "/proc/timer_list"),
    SILENT("sched-debug", "/proc/sched_debug"), SILENT("kmsg", "/proc/kmsg"), SILENT("config", "/proc/config.gz"),
    SILENT("kpagecount", "/proc/kpagecount"), SILENT("kpageflags", "/proc/kpageflags"),
    SILENT("vmallocinfo", "/proc/vmallocinfo"), SILENT("latency-stats", "/proc/latency_stats"),
    SILENT("slabinfo", "/proc/slabinfo"), SILENT("key-users", "/proc/key-users"),
    { .name = "read-iomem", .title = "where devices are", .run = run_zeros, .path = "/proc/iomem" },
    { .name = "read-ioports", .title = "which ports devices have", .run = run_zeros, .path = "/proc/ioports" },
    { .name = "read-kallsyms", .title = "where the kernel is", .run = run_zeros, .path = "/proc/kallsyms" },
    { .name = "read-modules", .title = "where modules are", .run = run_modules },
    EMPTY("firmware", "/sys/firmware"), EMPTY("scsi", "/proc/scsi"), EMPTY("acpi", "/proc/acpi"),
    EMPTY("powercap", "/sys/devices/virtual/powercap"), EMPTY("debug", "/sys/kernel/debug"),
    EMPTY("tracing", "/sys/kernel/tracing"), EMPTY("bpf", "/sys/fs/bpf"),
    { .name = "cgroup-release-agent", .title = "have the host run a program", .run = run_release_agent },
    { .name = "cgroup-files", .title = "lift a limit", .run = run_cgroups },
    { .name = "cgroup-paths", .title = "the host's names of groups", .run = run_cgroup_paths },
    { .name = "other-roots", .title = "/proc/PID/root of others", .run = run_roots },
};
/* clang-format on */

const struct group group_proc = { "proc", proc, sizeof(proc) / sizeof(proc[0]) };

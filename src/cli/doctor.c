#include "cli/doctor_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define FILE_TEXT_MAX (64 * 1024) /* /proc/filesystems and the like; mountinfo may be cut */
#define APT "apt-get install "

void finding_say(struct finding *f, enum finding_mark mark, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(f->detail, sizeof(f->detail), fmt, ap);
    va_end(ap);
    f->mark = mark;
}

void finding_fix(struct finding *f, const char *text)
{
    (void)snprintf(f->fix, sizeof(f->fix), "%s", text);
}

const char *doctor_read(const char *path, char *out, size_t size)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    while (fd >= 0 && len < size - 1) {
        ssize_t n = read(fd, out + len, size - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    out[len] = '\0';
    return out;
}

bool doctor_has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += len) {
        bool starts = p == text || strchr(" \t\n,", p[-1]);
        bool ends = !p[len] || strchr(" \t\n,", p[len]);
        if (starts && ends)
            return true;
    }
    return false;
}

unsigned kernel_release(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    if (end == text || *end != '.' || major > 1000)
        return 0;
    unsigned long minor = strtoul(end + 1, NULL, 10);
    return KERNEL((unsigned)major, (unsigned)(minor < 999 ? minor : 999));
}

static unsigned kernel(void)
{
    struct utsname u;
    return uname(&u) < 0 ? 0 : kernel_release(u.release);
}

static void look_kernel(struct finding *f)
{
    struct utsname u;
    if (uname(&u) < 0)
        u.release[0] = '\0';
    if (kernel() >= KERNEL(5, 19)) {
        finding_say(f, FINDING_OK, "%.60s", u.release);
        return;
    }
    finding_say(f, FINDING_FAIL, "%.60s is older than 5.19", u.release);
    finding_fix(f,
                "use a newer kernel: Debian 12 has 6.1; on Ubuntu 22.04, linux-generic-hwe-22.04");
}

static void look_rights(struct finding *f)
{
    if (geteuid() == 0) {
        finding_say(f, FINDING_OK, "running as root: every check is complete");
        return;
    }
    finding_say(f, FINDING_WARN, "running as uid %u: some checks see less", (unsigned)geteuid());
    finding_fix(f, "the daemon is started by root; `sudo warren doctor` sees all");
}

static void look_namespaces(struct finding *f)
{
    static const char *const kinds[] = { "user", "mnt", "pid", "ipc", "uts", "net", "cgroup" };
    char path[64], text[64];
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        (void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
        if (access(path, F_OK) < 0) {
            finding_say(f, FINDING_FAIL, "this kernel has no %s namespaces", kinds[i]);
            finding_fix(f, "use a kernel with all namespaces built in, as distributions' own have");
            return;
        }
        (void)snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", kinds[i]);
        doctor_read(path, text, sizeof(text));
        if (*text && strtoull(text, NULL, 10) == 0) {
            finding_say(f, FINDING_FAIL, "%s namespaces are switched off", kinds[i]);
            (void)snprintf(f->fix, sizeof(f->fix), "sysctl -w user.max_%s_namespaces=65536",
                           kinds[i]);
            return;
        }
    }
    doctor_read("/proc/sys/user/max_user_namespaces", text, sizeof(text));
    text[strcspn(text, "\n")] = '\0';
    finding_say(f, FINDING_OK, "user mount pid ipc uts net cgroup; up to %.20s user namespaces",
                *text ? text : "any number of");
}

/* Where the unified hierarchy is mounted; NULL: nowhere. */
static const char *cgroup2_root(void)
{
    static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    struct statfs fs;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (statfs(places[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
            return places[i];
    return NULL;
}

int doctor_controller(const char *name)
{
    char path[128], text[1024], v1[256];
    const char *root = cgroup2_root();
    if (root) {
        (void)snprintf(path, sizeof(path), "%s/cgroup.controllers", root);
        if (doctor_has_word(doctor_read(path, text, sizeof(text)), name))
            return 2;
    }
    (void)snprintf(v1, sizeof(v1), "/sys/fs/cgroup/%s", name);
    return access(v1, F_OK) == 0 ? 1 : 0;
}

static void look_cgroup(struct finding *f)
{
    static const char *const needed[] = { "memory", "cpu", "pids" };
    int versions[ARRAY_LEN(needed)], ones = 0;
    for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
        versions[i] = doctor_controller(needed[i]);
        ones += versions[i] == 1;
        if (versions[i] == 0) {
            finding_say(f, FINDING_FAIL, "there is no %s controller, so no limit on it", needed[i]);
            if (strcmp(needed[i], "memory") == 0)
                finding_fix(f, "boot with cgroup_enable=memory");
            else
                finding_fix(f, "mount the cgroup2 filesystem on /sys/fs/cgroup, as systemd does");
            return;
        }
    }
    if (ones == 0)
        finding_say(f, FINDING_OK, "v2 at %s: memory cpu pids", cgroup2_root());
    else
        finding_say(f, FINDING_OK, "%s: memory cpu pids in v1",
                    cgroup2_root() ? "hybrid" : "v1 only");
}

static void look_io(struct finding *f)
{
    int io = doctor_controller("io"), blkio = doctor_controller("blkio");
    if (io || blkio) {
        finding_say(f, FINDING_OK, "%s", io ? "io, in v2" : "blkio, in v1");
        return;
    }
    finding_say(f, FINDING_WARN, "no io controller: sandboxes' disk traffic is not accounted");
    finding_fix(f, "use cgroup v2: boot with systemd.unified_cgroup_hierarchy=1");
}

static void look_freezer(struct finding *f)
{
    bool v1 = access("/sys/fs/cgroup/freezer", F_OK) == 0;
    if (v1 || (cgroup2_root() && kernel() >= KERNEL(5, 2))) {
        finding_say(f, FINDING_OK, "%s", cgroup2_root() ? "cgroup.freeze" : "v1 freezer");
        return;
    }
    finding_say(f, FINDING_WARN, "no freezer: sandboxes cannot be paused");
    finding_fix(f, "mount the cgroup2 filesystem, as systemd does");
}

static void look_kill(struct finding *f)
{
    if (cgroup2_root() && kernel() >= KERNEL(5, 14)) {
        finding_say(f, FINDING_OK, "cgroup.kill ends a whole sandbox at once");
        return;
    }
    finding_say(f, FINDING_WARN,
                "no cgroup.kill: ending a sandbox with many processes takes longer");
    finding_fix(f, cgroup2_root() ? "use kernel 5.14 or newer"
                                  : "mount the cgroup2 filesystem as well");
}

/* A filesystem type that is there now, or comes with its module. */
static bool filesystem(const char *name, bool *ret_module)
{
    static char text[FILE_TEXT_MAX];
    struct utsname u;
    char path[256];
    *ret_module = false;
    if (doctor_has_word(doctor_read("/proc/filesystems", text, sizeof(text)), name))
        return true;
    if (uname(&u) < 0)
        return false;
    static const char *const suffixes[] = { "", ".xz", ".zst", ".gz" };
    const char *dir = strcmp(name, "overlay") == 0 ? "overlayfs" : name;
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        int n = snprintf(path, sizeof(path), "/lib/modules/%s/kernel/fs/%s/%s.ko%s", u.release, dir,
                         name, suffixes[i]);
        if (n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0)
            return *ret_module = true;
    }
    return false;
}

static void look_filesystem(struct finding *f, const char *name, const char *why)
{
    bool module;
    if (filesystem(name, &module)) {
        finding_say(f, FINDING_OK, module ? "there, as a module that is not loaded yet" : "there");
        if (module)
            (void)snprintf(f->fix, sizeof(f->fix), "loads by itself; or: modprobe %s", name);
        return;
    }
    finding_say(f, FINDING_FAIL, "this kernel has no %s: %s", name, why);
    (void)snprintf(f->fix, sizeof(f->fix), "modprobe %s; or use a distribution's own kernel", name);
}

static void look_overlay(struct finding *f)
{
    look_filesystem(f, "overlay", "sandboxes share their image through it");
}

static void look_btrfs(struct finding *f)
{
    look_filesystem(f, "btrfs", "sandboxes' files are stored on it");
}

static void look_loop(struct finding *f)
{
    if (access("/dev/loop-control", F_OK) == 0) {
        finding_say(f, FINDING_OK, "/dev/loop-control");
        return;
    }
    finding_say(f, FINDING_FAIL,
                "there is no /dev/loop-control to mount the storage's image file with");
    finding_fix(f, "modprobe loop; in a container, pass /dev/loop-control and the loop devices in");
}

static void look_idmap(struct finding *f)
{
    if (kernel() >= KERNEL(5, 19)) {
        finding_say(f, FINDING_OK, "id-mapped mounts, also below overlay");
        return;
    }
    finding_say(f, FINDING_FAIL,
                kernel() >= KERNEL(5, 12) ? "id-mapped mounts, but not below overlay"
                                          : "no id-mapped mounts");
    finding_fix(f, "use kernel 5.19 or newer");
}

static void look_seccomp(struct finding *f)
{
    char text[512];
    doctor_read("/proc/sys/kernel/seccomp/actions_avail", text, sizeof(text));
    if (doctor_has_word(text, "errno")) {
        finding_say(f, FINDING_OK, "filters");
        return;
    }
    finding_say(f, FINDING_FAIL, "this kernel has no seccomp filters");
    finding_fix(f, "use a kernel with CONFIG_SECCOMP_FILTER, as distributions' own have");
}

static void look_kvm(struct finding *f)
{
    if (access("/dev/kvm", F_OK) == 0)
        finding_say(f, FINDING_OK,
                    "/dev/kvm: hardware virtualisation is there (sandboxes do not need it)");
    else
        finding_say(f, FINDING_OK, "none (sandboxes do not need it)");
}

static void look_user(struct finding *f)
{
    if (getpwnam("warren")) {
        finding_say(f, FINDING_OK, "warren");
        return;
    }
    finding_say(f, FINDING_WARN, "there is no user 'warren': the daemon runs as nobody");
    finding_fix(f, "useradd --system --home-dir /var/lib/warren --shell /usr/sbin/nologin warren");
}

static bool program(const char *name)
{
    static const char *const places[] = { "/usr/sbin", "/usr/bin",       "/sbin",
                                          "/bin",      "/usr/local/bin", "/usr/local/sbin" };
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", places[i], name);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

static void look_mkfs(struct finding *f)
{
    if (program("mkfs.btrfs")) {
        finding_say(f, FINDING_OK, "mkfs.btrfs");
        return;
    }
    finding_say(f, FINDING_FAIL, "there is no mkfs.btrfs to make the storage with");
    finding_fix(f, APT "btrfs-progs");
}

static void look_mmdebstrap(struct finding *f)
{
    if (program("mmdebstrap")) {
        finding_say(f, FINDING_OK, "mmdebstrap");
        return;
    }
    finding_say(f, FINDING_WARN, "there is no mmdebstrap to make the base image with");
    finding_fix(f, APT "mmdebstrap; or import a root filesystem: warren image import");
}

static void look_buckets(struct finding *f)
{
    if (access("/dev/fuse", F_OK) < 0) {
        finding_say(f, FINDING_WARN, "no /dev/fuse: volumes that are buckets cannot be used");
        finding_fix(f, "modprobe fuse");
    } else if (!program("s3fs")) {
        finding_say(f, FINDING_WARN, "no s3fs: volumes that are buckets cannot be used");
        finding_fix(f, APT "s3fs");
    } else {
        finding_say(f, FINDING_OK, "s3fs, /dev/fuse");
    }
}

const struct check doctor_checks[] = {
    { "kernel", look_kernel },
    { "rights", look_rights },
    { "namespaces", look_namespaces },
    { "cgroups", look_cgroup },
    { "cgroup io", look_io },
    { "freezer", look_freezer },
    { "cgroup.kill", look_kill },
    { "overlay", look_overlay },
    { "btrfs", look_btrfs },
    { "loop devices", look_loop },
    { "id mapping", look_idmap },
    { "seccomp", look_seccomp },
    { "kvm", look_kvm },
    { "user", look_user },
    { "storage maker", look_mkfs },
    { "image maker", look_mmdebstrap },
    { "buckets", look_buckets },
};
const size_t doctor_checks_n = ARRAY_LEN(doctor_checks);

/* Capabilities, user ids and set-id programs. */
#include "attack/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SHARE_OF_IDS 65536

/* Capabilities that container engines leave out by default. */
static const struct {
    int bit;
    const char *name;
} dangerous[] = {
    { 2, "dac_read_search" },
    { 9, "linux_immutable" },
    { 11, "net_broadcast" },
    { 12, "net_admin" },
    { 14, "ipc_lock" },
    { 15, "ipc_owner" },
    { 16, "sys_module" },
    { 17, "sys_rawio" },
    { 19, "sys_ptrace" },
    { 20, "sys_pacct" },
    { 21, "sys_admin" },
    { 22, "sys_boot" },
    { 23, "sys_nice" },
    { 24, "sys_resource" },
    { 25, "sys_time" },
    { 26, "sys_tty_config" },
    { 28, "lease" },
    { 30, "audit_control" },
    { 32, "mac_override" },
    { 33, "mac_admin" },
    { 34, "syslog" },
    { 35, "wake_alarm" },
    { 36, "block_suspend" },
    { 37, "audit_read" },
    { 38, "perfmon" },
    { 39, "bpf" },
    { 40, "checkpoint_restore" },
};

static uint64_t caps(const char *which)
{
    char text[8192], name[16];
    (void)slurp("/proc/self/status", text, sizeof(text));
    (void)snprintf(name, sizeof(name), "\n%s:", which);
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 16) : ~0ULL;
}

static void run_caps(const struct attempt *self, struct outcome *o)
{
    uint64_t bits = caps(self->path);
    for (size_t i = 0; i < sizeof(dangerous) / sizeof(dangerous[0]); i++)
        if (bits >> dangerous[i].bit & 1)
            broke(o, "%s has %s", self->path, dangerous[i].name);
    held(o, "%s: %llx", self->path, (unsigned long long)bits);
}

static void run_no_caps(const struct attempt *self, struct outcome *o)
{
    if (caps(self->path) != 0)
        broke(o, "%s is not empty", self->path);
    held(o, "%s is empty", self->path);
}

/* Taking a capability back that was dropped: capset must not give what the bounding set lacks. */
static void run_capset(const struct attempt *self, struct outcome *o)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct all[2];
    memset(all, 0xff, sizeof(all));
    failed(o, syscall(SYS_capset, &head, all), "capset of everything");
}

static void run_ambient(const struct attempt *self, struct outcome *o)
{
    failed(o, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0),
           "ambient sys_admin");
    failed(o, prctl(PR_CAPBSET_DROP, 63, 0, 0, 0), "an unknown capability");
}

/* Root inside must not be root, nor any low id, outside. */
static void run_uid_map(const struct attempt *self, struct outcome *o)
{
    char text[256];
    unsigned long inside = 0, outside = 0, count = 0;
    if (slurp(self->path, text, sizeof(text)) <= 0 ||
        sscanf(text, "%lu %lu %lu", &inside, &outside, &count) != 3)
        broke(o, "%s cannot be read: it is the host's own", self->path);
    else if (outside < SHARE_OF_IDS)
        broke(o, "id %lu inside is %lu outside", inside, outside);
    else if (strchr(text, '\n') && strchr(text, '\n')[1])
        broke(o, "more than one range of ids");
    held(o, "%lu ids from %lu on", count, outside);
}

static void run_chown_out(const struct attempt *self, struct outcome *o)
{
    int fd = open("/tmp/attack-own", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    static const unsigned ids[] = { 65536, 100000, 0x7fffffff, 0xfffffffe };
    for (size_t i = 0; fd >= 0 && i < sizeof(ids) / sizeof(ids[0]); i++)
        failed(o, fchown(fd, ids[i], ids[i]), "chown to an id outside of the range");
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        failed(o, syscall(SYS_setresuid, ids[i], ids[i], ids[i]),
               "becoming an id outside of the range");
    if (fd >= 0)
        (void)close(fd);
}

/* A file capability must grant no more than the bounding set. */
static void run_file_caps(const struct attempt *self, struct outcome *o)
{
    struct vfs_cap_data cap = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE };
    cap.data[0].permitted = 1u << CAP_SYS_ADMIN;
    int fd = open("/tmp/attack-caps", O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    if (fd < 0 || fsetxattr(fd, "security.capability", &cap, sizeof(cap), 0) < 0) {
        held(o, "a file capability: %s", strerror(errno));
        return;
    }
    (void)close(fd);
    if (caps("CapBnd") >> CAP_SYS_ADMIN & 1)
        broke(o, "the file gives sys_admin: the bounding set has it");
    held(o, "the file says sys_admin, the bounding set does not");
}

static void run_trusted(const struct attempt *self, struct outcome *o)
{
    int fd = open("/tmp/attack-xattr", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    failed(o, fd < 0 ? -1 : fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0),
           "overlay's own mark");
    if (fd >= 0)
        (void)close(fd);
}

static void run_immutable(const struct attempt *self, struct outcome *o)
{
    int fd = open("/tmp/attack-flags", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    long flags = 0x10; /* immutable: nobody could delete the sandbox's files */
    failed(o, fd < 0 ? -1 : syscall(SYS_ioctl, fd, 0x40086602UL, &flags), "the immutable flag");
    if (fd >= 0)
        (void)close(fd);
}

static void run_realtime(const struct attempt *self, struct outcome *o)
{
    int priority = 1;
    failed(o, syscall(SYS_sched_setscheduler, 0, self->args[0], &priority), "a realtime scheduler");
}

static void run_nice(const struct attempt *self, struct outcome *o)
{
    failed(o, setpriority(PRIO_PROCESS, 0, -20), "nice -20");
}

static void run_rlimit(const struct attempt *self, struct outcome *o)
{
    uint64_t now[2], more[2];
    if (syscall(SYS_prlimit64, 0, self->args[0], NULL, now) < 0 || now[1] == ~0ULL) {
        not_here(o, "no hard limit");
        return;
    }
    more[0] = more[1] = now[1] + 1;
    failed(o, syscall(SYS_prlimit64, 0, self->args[0], more, NULL), "raising a hard limit");
}

static void run_seccomp_mode(const struct attempt *self, struct outcome *o)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
        broke(o, "no filter is installed");
    held(o, "a filter is installed");
}

#define CAPS(name_, set_)                                                                   \
    {                                                                                       \
        .name = "caps-" name_, .title = "dangerous capabilities in " set_, .run = run_caps, \
        .path = set_                                                                        \
    }

/* clang-format off */
static const struct attempt identity[] = {
    CAPS("bounding", "CapBnd"), CAPS("permitted", "CapPrm"), CAPS("effective", "CapEff"),
    { .name = "caps-inheritable", .title = "inheritable capabilities", .run = run_no_caps, .path = "CapInh" },
    { .name = "caps-ambient", .title = "ambient capabilities", .run = run_no_caps, .path = "CapAmb" },
    { .name = "capset", .title = "take all capabilities back", .run = run_capset },
    { .name = "ambient-raise", .title = "raise an ambient capability", .run = run_ambient },
    { .name = "file-capability", .title = "a program with sys_admin", .run = run_file_caps },
    { .name = "uid-map", .title = "root inside is root outside", .run = run_uid_map, .path = "/proc/self/uid_map" },
    { .name = "gid-map", .title = "group 0 inside is group 0 outside", .run = run_uid_map, .path = "/proc/self/gid_map" },
    { .name = "chown-out", .title = "ids outside of the range", .run = run_chown_out },
    { .name = "trusted-xattr", .title = "overlay's marks", .run = run_trusted },
    { .name = "immutable-flag", .title = "files that nobody can delete", .run = run_immutable },
    { .name = "sched-fifo", .title = "realtime, first in first out", .run = run_realtime, .args = { 1 } },
    { .name = "sched-rr", .title = "realtime, round robin", .run = run_realtime, .args = { 2 } },
    { .name = "nice-up", .title = "nice -20", .run = run_nice },
    { .name = "rlimit-nofile", .title = "more descriptors than allowed", .run = run_rlimit, .args = { RLIMIT_NOFILE } },
    { .name = "rlimit-memlock", .title = "more locked memory than allowed", .run = run_rlimit, .args = { RLIMIT_MEMLOCK } },
    { .name = "seccomp-on", .title = "no filter at all", .run = run_seccomp_mode },
};
/* clang-format on */

const struct group group_identity = { "identity", identity,
                                      sizeof(identity) / sizeof(identity[0]) };

/* New mounts, remounts, and ways out of a root directory. */
#include "attack/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AT_RECURSIVE 0x8000
#define TREE_CLONE 1
#define DEEP 64 /* deeper than any root */

static void run_mount(const struct attempt *self, struct outcome *o)
{
    (void)mkdir("/tmp/attack-mount", 0700);
    refused(o, syscall(SYS_mount, "none", "/tmp/attack-mount", self->path, 0, self->text), "mount");
}

static void run_fsopen(const struct attempt *self, struct outcome *o)
{
    refused(o, syscall(SYS_fsopen, self->path, 0), "fsopen");
}

/* Try to make each mount writable: every one must refuse. */
static void run_remount(const struct attempt *self, struct outcome *o)
{
    char line[4096], path[2048];
    unsigned n = 0;
    FILE *f = fopen("/proc/self/mounts", "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%*s %2047s", path) == 1) {
            refused(o, syscall(SYS_mount, "none", path, "none", MS_REMOUNT | MS_BIND, ""), path);
            n++;
        }
    if (f)
        (void)fclose(f);
    if (n == 0)
        broke(o, "no mount was found to try");
    held(o, "none of %u mounts can be made writable", n);
}

static void run_setattr(const struct attempt *self, struct outcome *o)
{
    uint64_t attr[4] = { 0, 1 /* MOUNT_ATTR_RDONLY, to be cleared */, 0, 0 };
    refused(o, syscall(SYS_mount_setattr, AT_FDCWD, "/proc/sys", AT_RECURSIVE, attr, sizeof(attr)),
            "mount_setattr");
}

/* The classic: a directory kept open across chroot is above the new root. */
static void run_chroot(const struct attempt *self, struct outcome *o)
{
    struct stat before, after;
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &before) < 0 || mkdir("/tmp/attack-root", 0700) < 0 ||
        chroot("/tmp/attack-root") < 0) {
        held(o, "chroot: %s", strerror(errno));
        return;
    }
    (void)!fchdir(fd);
    for (int i = 0; i < DEEP; i++)
        (void)!chdir("..");
    if (chroot(".") < 0 || stat("/", &after) < 0)
        held(o, "chroot: %s", strerror(errno));
    else if (before.st_dev != after.st_dev || before.st_ino != after.st_ino)
        broke(o, "a chroot within a chroot led above the sandbox's root");
    else
        held(o, "a chroot within a chroot ends at the sandbox's root");
    if (stat("/lost+found", &after) == 0 && stat("/pool", &after) == 0)
        broke(o, "the pool shows");
}

static void run_dotdot(const struct attempt *self, struct outcome *o)
{
    struct stat top, above;
    (void)!chdir("/");
    for (int i = 0; i < DEEP; i++)
        (void)!chdir("..");
    if (stat("/", &top) < 0 || stat(".", &above) < 0)
        held(o, "%s", strerror(errno));
    else if (top.st_ino != above.st_ino || top.st_dev != above.st_dev)
        broke(o, "'..' led above the root");
    else
        held(o, "'..' of the root is the root");
}

/* Masks must not come off. */
static void run_umount(const struct attempt *self, struct outcome *o)
{
    refused(o, syscall(SYS_umount2, self->path, MNT_DETACH), "umount");
}

#define MOUNT(fs_)                                                                 \
    {                                                                              \
        .name = "mount-" fs_, .title = "mount " fs_, .run = run_mount, .path = fs_ \
    }
#define OPEN(fs_)                                                                               \
    {                                                                                           \
        .name = "fsopen-" fs_, .title = fs_ " by the new calls", .run = run_fsopen, .path = fs_ \
    }
#define CALL(name_, title_, ...)                                     \
    {                                                                \
        .name = name_, .title = title_, .run = run_call, __VA_ARGS__ \
    }

/* clang-format off */
static const struct attempt mounts[] = {
    MOUNT("proc"), MOUNT("sysfs"), MOUNT("tmpfs"), MOUNT("cgroup"), MOUNT("cgroup2"), MOUNT("overlay"),
    MOUNT("fuse"), MOUNT("debugfs"), MOUNT("tracefs"), MOUNT("binfmt_misc"), MOUNT("devpts"),
    MOUNT("mqueue"), MOUNT("bpf"), MOUNT("securityfs"), MOUNT("btrfs"), MOUNT("devtmpfs"),
    OPEN("tmpfs"), OPEN("proc"), OPEN("fuse"),
    { .name = "mount-bind", .title = "bind one directory over another", .run = run_call, .nr = SYS_mount,
      .args = { (long)(void *)"/", (long)(void *)"/tmp", 0, MS_BIND, 0 } },
    { .name = "mount-move", .title = "move a mount", .run = run_call, .nr = SYS_mount,
      .args = { (long)(void *)"/proc", (long)(void *)"/tmp", 0, MS_MOVE, 0 } },
    { .name = "mount-propagation", .title = "make mounts shared with the host", .run = run_call, .nr = SYS_mount,
      .args = { 0, (long)(void *)"/", 0, MS_SHARED | MS_REC, 0 } },
    { .name = "remount-rw", .title = "make each mount writable", .run = run_remount },
    { .name = "mount-setattr", .title = "make /proc/sys writable by mount_setattr", .run = run_setattr },
    CALL("open-tree", "copy a tree of mounts", .nr = SYS_open_tree, .args = { AT_FDCWD, (long)(void *)"/", TREE_CLONE }),
    CALL("move-mount", "move a mount by the new call", .nr = SYS_move_mount,
         .args = { AT_FDCWD, (long)(void *)"/proc", AT_FDCWD, (long)(void *)"/tmp", 0 }),
    CALL("fspick", "reconfigure the root's file system", .nr = SYS_fspick, .args = { AT_FDCWD, (long)(void *)"/", 0 }),
    CALL("fsmount", "make a mount of a context", .nr = SYS_fsmount, .args = { 0, 0, 0 }),
    CALL("pivot-root", "another root", .nr = SYS_pivot_root, .args = { (long)(void *)"/", (long)(void *)"/tmp" }),
    { .name = "umount-proc-sys", .title = "take the cover off /proc/sys", .run = run_umount, .path = "/proc/sys" },
    { .name = "umount-kcore", .title = "take the cover off /proc/kcore", .run = run_umount, .path = "/proc/kcore" },
    { .name = "umount-proc", .title = "take /proc off", .run = run_umount, .path = "/proc" },
    { .name = "chroot-in-chroot", .title = "leave by a chroot within a chroot", .run = run_chroot },
    { .name = "dotdot-above-root", .title = "leave by ..", .run = run_dotdot },
};
/* clang-format on */

const struct group group_mounts = { "mounts", mounts, sizeof(mounts) / sizeof(mounts[0]) };

/* A volume and the btrfs pool below it: btrfs's own requests, devices and set-id programs. */
#include "attack/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* path: the directory to open. */
static int open_top(const struct attempt *self, struct outcome *o)
{
    int fd = open(self->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        not_here(o, "%s: %s", self->path, strerror(errno));
    return fd;
}

static void run_subvolume(const struct attempt *self, struct outcome *o)
{
    struct btrfs_ioctl_vol_args args = { .name = "attack-subvolume" };
    int fd = open_top(self, o);
    if (fd < 0)
        return;
    long r = ioctl(fd, BTRFS_IOC_SUBVOL_CREATE, &args);
    failed(o, r, "a subvolume of one's own");
    if (r == 0)
        (void)ioctl(fd, BTRFS_IOC_SNAP_DESTROY, &args);
    (void)close(fd);
}

static void run_snapshot(const struct attempt *self, struct outcome *o)
{
    int fd = open_top(self, o);
    if (fd < 0)
        return;
    struct btrfs_ioctl_vol_args_v2 args = { .fd = fd, .name = "attack-snapshot" };
    long r = ioctl(fd, BTRFS_IOC_SNAP_CREATE_V2, &args);
    failed(o, r, "a snapshot of the volume");
    if (r == 0) {
        struct btrfs_ioctl_vol_args gone = { .name = "attack-snapshot" };
        (void)ioctl(fd, BTRFS_IOC_SNAP_DESTROY, &gone);
    }
    (void)close(fd);
}

/* Set the flags to their present value. */
static void run_setflags(const struct attempt *self, struct outcome *o)
{
    __u64 flags = 0;
    int fd = open_top(self, o);
    if (fd < 0)
        return;
    failed(o,
           ioctl(fd, BTRFS_IOC_SUBVOL_GETFLAGS, &flags) < 0
               ? -1
               : ioctl(fd, BTRFS_IOC_SUBVOL_SETFLAGS, &flags),
           "the subvolume's flags");
    (void)close(fd);
}

/* Requests that would tell of the pool's devices, size and trees. */
static void run_pool(const struct attempt *self, struct outcome *o)
{
    static union {
        struct btrfs_ioctl_fs_info_args info;
        struct btrfs_ioctl_dev_info_args dev;
        struct btrfs_ioctl_space_args space;
        struct btrfs_ioctl_search_args search;
        struct btrfs_ioctl_ino_lookup_args lookup;
        struct btrfs_ioctl_get_subvol_info_args subvolume;
        char room[8192];
    } u;
    int fd = open_top(self, o);
    if (fd < 0)
        return;
    if (self->args[0] == (long)BTRFS_IOC_SPACE_INFO)
        u.space.space_slots = 0;
    if (self->args[0] == (long)BTRFS_IOC_DEV_INFO)
        u.dev.devid = 1;
    failed(o, ioctl(fd, (int)(unsigned)self->args[0], &u), self->title);
    (void)close(fd);
}

static void run_flags(const struct attempt *self, struct outcome *o)
{
    struct statvfs st;
    if (statvfs(self->path, &st) < 0)
        not_here(o, "%s: %s", self->path, strerror(errno));
    else if (!(st.f_flag & ST_NOSUID) || !(st.f_flag & ST_NODEV))
        broke(o, "set-id programs or devices count on the volume");
    else
        held(o, "nosuid, nodev");
}

static void run_device(const struct attempt *self, struct outcome *o)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/attack-null", self->path);
    if (mknod(path, S_IFCHR | 0666, makedev(1, 3)) < 0) {
        held(o, "mknod: %s", strerror(errno));
        return;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    failed(o, fd, "a device on the volume");
    (void)unlink(path);
}

/* args: the request. The title says what it asks for. */
#define POOL(name_, title_, request_)                                                      \
    {                                                                                      \
        .name = "pool-" name_, .title = title_, .run = run_pool, .path = "/tmp", .args = { \
            (long)(request_)                                                               \
        }                                                                                  \
    }
#define POOL_BY_VOLUME(name_, title_, request_)                                         \
    {                                                                                   \
        .name = "volume-" name_, .title = title_, .run = run_pool, .path = VOLUME_PATH, \
        .args = { (long)(request_) }, .flags = ATTEMPT_VOLUME                           \
    }
#define ON_VOLUME(name_, title_, run_)                                              \
    {                                                                               \
        .name = "volume-" name_, .title = title_, .run = run_, .path = VOLUME_PATH, \
        .flags = ATTEMPT_VOLUME                                                     \
    }

/* clang-format off */
static const struct attempt volume[] = {
    ON_VOLUME("subvolume", "a subvolume that no quota counts", run_subvolume),
    ON_VOLUME("snapshot", "a snapshot that no quota counts", run_snapshot),
    ON_VOLUME("read-only-flag", "make the volume one that cannot be deleted", run_setflags),
    ON_VOLUME("mount-flags", "set-id programs and devices on a volume", run_flags),
    ON_VOLUME("device", "a device on a volume", run_device),
    POOL_BY_VOLUME("pool-info", "the pool's devices", BTRFS_IOC_FS_INFO),
    POOL_BY_VOLUME("device-info", "a device of the pool and its size", BTRFS_IOC_DEV_INFO),
    POOL_BY_VOLUME("space-info", "how full the pool is", BTRFS_IOC_SPACE_INFO),
    POOL_BY_VOLUME("tree-search", "the pool's trees", BTRFS_IOC_TREE_SEARCH),
    POOL_BY_VOLUME("inode-lookup", "names by inode numbers", BTRFS_IOC_INO_LOOKUP),
    POOL_BY_VOLUME("subvolume-info", "the volume's place in the pool", BTRFS_IOC_GET_SUBVOL_INFO),
    POOL("info", "the pool's devices, from the root", BTRFS_IOC_FS_INFO),
    POOL("space-info", "how full the pool is, from the root", BTRFS_IOC_SPACE_INFO),
};
/* clang-format on */

const struct group group_volume = { "volumes", volume, sizeof(volume) / sizeof(volume[0]) };

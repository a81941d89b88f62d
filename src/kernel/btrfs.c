#include "kernel/btrfs.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#define QUOTA_ENABLE_SIMPLE \
    4 /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA: newer than Debian 12's headers */

bool btrfs_is(int dirfd)
{
    struct statfs s;
    return fstatfs(dirfd, &s) == 0 && s.f_type == BTRFS_SUPER_MAGIC;
}

static int set_name(char *out, size_t size, const char *name)
{
    size_t n = strlen(name);
    if (n >= size)
        return -ENAMETOOLONG;
    memcpy(out, name, n + 1);
    return 0;
}

int btrfs_subvol_create(int dirfd, const char *name, struct err *err)
{
    struct btrfs_ioctl_vol_args args = { 0 };
    int r = set_name(args.name, sizeof(args.name), name);
    if (r == 0 && ioctl(dirfd, BTRFS_IOC_SUBVOL_CREATE, &args) < 0)
        r = -errno;
    return r < 0 ? err_set(err, -r, "cannot create subvolume '%s'", name) : 0;
}

int btrfs_subvol_snapshot(int dirfd, const char *name, int source_fd, struct err *err)
{
    struct btrfs_ioctl_vol_args_v2 args = { .fd = source_fd };
    int r = set_name(args.name, sizeof(args.name), name);
    if (r == 0 && ioctl(dirfd, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0)
        r = -errno;
    return r < 0 ? err_set(err, -r, "cannot make snapshot '%s'", name) : 0;
}

int btrfs_subvol_delete(int dirfd, const char *name, struct err *err)
{
    struct btrfs_ioctl_vol_args args = { 0 };
    int r = set_name(args.name, sizeof(args.name), name);
    if (r == 0 && ioctl(dirfd, BTRFS_IOC_SNAP_DESTROY, &args) < 0)
        r = -errno;
    return r < 0 ? err_set(err, -r, "cannot delete subvolume '%s'", name) : 0;
}

int btrfs_subvol_set_readonly(int subvol_fd, bool on, struct err *err)
{
    uint64_t flags = on ? BTRFS_SUBVOL_RDONLY : 0;
    if (ioctl(subvol_fd, BTRFS_IOC_SUBVOL_SETFLAGS, &flags) < 0)
        return err_set(err, errno, "cannot make a subvolume %s", on ? "read-only" : "writable");
    return 0;
}

int btrfs_quota_enable(int dirfd, bool *ret_simple, struct err *err)
{
    struct btrfs_ioctl_quota_ctl_args args = { .cmd = QUOTA_ENABLE_SIMPLE };
    if (ioctl(dirfd, BTRFS_IOC_QUOTA_CTL, &args) == 0 || errno == EEXIST) {
        *ret_simple = true;
        return 0;
    }
    args.cmd = BTRFS_QUOTA_CTL_ENABLE;
    if (ioctl(dirfd, BTRFS_IOC_QUOTA_CTL, &args) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot enable btrfs quotas");
    *ret_simple = false;
    return 0;
}

int btrfs_quota_limit(int subvol_fd, uint64_t bytes, struct err *err)
{
    struct btrfs_ioctl_qgroup_limit_args args = {
        .lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes },
    };
    if (ioctl(subvol_fd, BTRFS_IOC_QGROUP_LIMIT, &args) < 0)
        return err_set(err, errno, "cannot limit a subvolume to %llu bytes",
                       (unsigned long long)bytes);
    return 0;
}

/* At level 0 a group's number is its subvolume's. */
int btrfs_quota_entry(int subvol_fd, uint64_t *ret_entry)
{
    struct btrfs_ioctl_ino_lookup_args args = { .objectid = BTRFS_FIRST_FREE_OBJECTID };
    if (ioctl(subvol_fd, BTRFS_IOC_INO_LOOKUP, &args) < 0)
        return -errno;
    *ret_entry = args.treeid;
    return 0;
}

int btrfs_quota_strike(int dirfd, uint64_t entry)
{
    struct btrfs_ioctl_qgroup_create_args args = { .create = 0, .qgroupid = entry };
    return ioctl(dirfd, BTRFS_IOC_QGROUP_CREATE, &args) < 0 ? -errno : 0;
}

int btrfs_quota_used(int subvol_fd, uint64_t *ret_bytes)
{
    uint64_t id = 0;
    int r = btrfs_quota_entry(subvol_fd, &id);
    if (r < 0)
        return r;
    struct btrfs_ioctl_search_args args = {
        .key = { .tree_id = BTRFS_QUOTA_TREE_OBJECTID,
                 .min_objectid = 0,
                 .max_objectid = 0,
                 .min_type = BTRFS_QGROUP_INFO_KEY,
                 .max_type = BTRFS_QGROUP_INFO_KEY,
                 .min_offset = id,
                 .max_offset = id,
                 .max_transid = UINT64_MAX,
                 .nr_items = 1 },
    };
    if (ioctl(subvol_fd, BTRFS_IOC_TREE_SEARCH, &args) < 0)
        return -errno;
    struct btrfs_ioctl_search_header head;
    struct btrfs_qgroup_info_item info;
    memcpy(&head, args.buf, sizeof(head));
    if (args.key.nr_items == 0 || head.len < sizeof(info))
        return -ENODATA;
    memcpy(&info, args.buf + sizeof(head), sizeof(info));
    *ret_bytes = le64toh(info.rfer);
    return 0;
}

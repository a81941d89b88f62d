#include "kernel/btrfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"

#define GROUP_LEVEL (1ull << 48) /* a group's number has its level in the upper 16 bits */
#define QUOTA_ENABLE_SIMPLE \
    4                   /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA: newer than Debian 12's headers */
#define U64_TEXT_MAX 21 /* 20 digits and the newline */
#define QUOTA_IS_SIMPLE (1u << 3) /* BTRFS_QGROUP_STATUS_FLAG_SIMPLE_MODE */

bool btrfs_is(int dirfd)
{
    struct statfs s;
    return fstatfs(dirfd, &s) == 0 && s.f_type == BTRFS_SUPER_MAGIC;
}

int btrfs_reclaim(int dirfd)
{
    return ioctl(dirfd, BTRFS_IOC_SYNC) < 0 ? -errno : 0;
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

int btrfs_subvol_snapshot(int dirfd, const char *name, int source_fd, bool read_only,
                          struct err *err)
{
    struct btrfs_ioctl_vol_args_v2 args = { .fd = source_fd,
                                            .flags = read_only ? BTRFS_SUBVOL_RDONLY : 0 };
    int r = set_name(args.name, sizeof(args.name), name);
    if (r == 0 && ioctl(dirfd, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0)
        r = -errno;
    return r < 0 ? err_set(err, -r, "cannot make snapshot '%s'", name) : 0;
}

int btrfs_subvol_snapshot_in(int dirfd, const char *name, int source_fd, bool read_only,
                             uint64_t group, struct err *err)
{
    uint64_t room[sizeof(struct btrfs_qgroup_inherit) / sizeof(uint64_t) + 1] = { 0 };
    struct btrfs_qgroup_inherit *inherit = (struct btrfs_qgroup_inherit *)room;
    inherit->num_qgroups = 1;
    inherit->qgroups[0] = btrfs_group_entry(group);
    struct btrfs_ioctl_vol_args_v2 args = {
        .fd = source_fd,
        .flags = BTRFS_SUBVOL_QGROUP_INHERIT | (read_only ? BTRFS_SUBVOL_RDONLY : 0),
        .size = sizeof(room),
        .qgroup_inherit = inherit,
    };
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

/* The root tree has an item for each subvolume inside another: (outer, ROOT_REF, inner). */
int btrfs_subvol_nested(int dirfd, uint64_t outer, uint64_t after, uint64_t *ret_inner)
{
    struct btrfs_ioctl_search_args args = {
        .key = { .tree_id = BTRFS_ROOT_TREE_OBJECTID,
                 .min_objectid = outer,
                 .max_objectid = outer,
                 .min_type = BTRFS_ROOT_REF_KEY,
                 .max_type = BTRFS_ROOT_REF_KEY,
                 .min_offset = after + 1,
                 .max_offset = UINT64_MAX,
                 .max_transid = UINT64_MAX,
                 .nr_items = 1 },
    };
    struct btrfs_ioctl_search_header head;
    if (ioctl(dirfd, BTRFS_IOC_TREE_SEARCH, &args) < 0)
        return -errno;
    if (args.key.nr_items == 0)
        return -ENOENT;
    memcpy(&head, args.buf, sizeof(head));
    *ret_inner = head.offset;
    return 0;
}

/* By number, since the path to it may be longer than PATH_MAX. */
static int delete_by_number(int dirfd, uint64_t number)
{
    struct btrfs_ioctl_vol_args_v2 args = { .flags = BTRFS_SUBVOL_SPEC_BY_ID, .subvolid = number };
    return ioctl(dirfd, BTRFS_IOC_SNAP_DESTROY_V2, &args) < 0 ? -errno : 0;
}

int btrfs_subvol_delete_nested(int dirfd, uint64_t outer, void (*gone)(uint64_t inner, void *arg),
                               void *arg, struct err *err)
{
    for (uint64_t at = outer, inner;;) {
        int r = btrfs_subvol_nested(dirfd, at, 0, &inner);
        if (r == 0) {
            at = inner;
            continue;
        }
        if (r == -ENOENT && at == outer)
            return 0;
        if (r == -ENOENT)
            r = delete_by_number(dirfd, at);
        if (r < 0)
            return err_set(err, -r, "cannot delete a subvolume inside of another");
        if (gone)
            gone(at, arg);
        at = outer;
    }
}

int btrfs_subvol_set_readonly(int subvol_fd, bool on, struct err *err)
{
    uint64_t flags = on ? BTRFS_SUBVOL_RDONLY : 0;
    if (ioctl(subvol_fd, BTRFS_IOC_SUBVOL_SETFLAGS, &flags) < 0)
        return err_set(err, errno, "cannot make a subvolume %s", on ? "read-only" : "writable");
    return 0;
}

int btrfs_quota_limit_by(int dirfd, uint64_t entry, uint64_t bytes, struct err *err)
{
    struct btrfs_ioctl_qgroup_limit_args args = {
        .qgroupid = entry,
        .lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes },
    };
    if (ioctl(dirfd, BTRFS_IOC_QGROUP_LIMIT, &args) < 0)
        return err_set(err, errno, "cannot limit a subvolume to %llu bytes",
                       (unsigned long long)bytes);
    return 0;
}

int btrfs_quota_limit(int subvol_fd, uint64_t bytes, struct err *err)
{
    return btrfs_quota_limit_by(subvol_fd, 0, bytes, err); /* 0: its own */
}

int btrfs_quota_limit_own(int subvol_fd, uint64_t bytes, uint64_t own, struct err *err)
{
    struct btrfs_ioctl_qgroup_limit_args args = {
        .lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER | BTRFS_QGROUP_LIMIT_MAX_EXCL,
                 .max_rfer = bytes,
                 .max_excl = own },
    };
    if (ioctl(subvol_fd, BTRFS_IOC_QGROUP_LIMIT, &args) < 0)
        return err_set(err, errno, "cannot limit a subvolume to %llu bytes",
                       (unsigned long long)bytes);
    return 0;
}

bool btrfs_subvol_changed_since(int subvol_fd, int copy_fd)
{
    struct btrfs_ioctl_get_subvol_info_args now = { 0 }, then = { 0 };
    if (ioctl(subvol_fd, BTRFS_IOC_GET_SUBVOL_INFO, &now) < 0 ||
        ioctl(copy_fd, BTRFS_IOC_GET_SUBVOL_INFO, &then) < 0)
        return true;
    return now.ctransid > then.otransid;
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

/* An item of the quota tree; -ENODATA if there is none. */
static int quota_item(int dirfd, uint32_t type, uint64_t entry, void *ret_item, size_t size)
{
    struct btrfs_ioctl_search_args args = {
        .key = { .tree_id = BTRFS_QUOTA_TREE_OBJECTID,
                 .min_objectid = 0,
                 .max_objectid = 0,
                 .min_type = type,
                 .max_type = type,
                 .min_offset = entry,
                 .max_offset = entry,
                 .max_transid = UINT64_MAX,
                 .nr_items = 1 },
    };
    if (ioctl(dirfd, BTRFS_IOC_TREE_SEARCH, &args) < 0)
        return -errno;
    struct btrfs_ioctl_search_header head;
    memcpy(&head, args.buf, sizeof(head));
    if (args.key.nr_items == 0 || head.len < size)
        return -ENODATA;
    memcpy(ret_item, args.buf + sizeof(head), size);
    return 0;
}

static int used_by(int dirfd, uint64_t entry, bool own, uint64_t *ret_bytes)
{
    struct btrfs_qgroup_info_item info;
    int r = quota_item(dirfd, BTRFS_QGROUP_INFO_KEY, entry, &info, sizeof(info));
    if (r == 0)
        *ret_bytes = le64toh(own ? info.excl : info.rfer);
    return r;
}

int btrfs_quota_used(int subvol_fd, uint64_t *ret_bytes)
{
    uint64_t entry = 0;
    int r = btrfs_quota_entry(subvol_fd, &entry);
    return r < 0 ? r : used_by(subvol_fd, entry, false, ret_bytes);
}

int btrfs_quota_own(int subvol_fd, uint64_t *ret_bytes)
{
    uint64_t entry = 0;
    int r = btrfs_quota_entry(subvol_fd, &entry);
    return r < 0 ? r : used_by(subvol_fd, entry, true, ret_bytes);
}

/* A number in the kernel's memory, of a subvolume's entry. */
static int number_now(const struct btrfs_ioctl_fs_info_args *fs, uint64_t entry, const char *what,
                      uint64_t *ret_number)
{
    char path[128], text[U64_TEXT_MAX + 1];
    const uint8_t *u = fs->fsid;
    (void)snprintf(path, sizeof(path),
                   "/sys/fs/btrfs/%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
                   "%02x%02x%02x%02x%02x%02x/qgroups/0_%llu/%s",
                   u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
                   u[13], u[14], u[15], (unsigned long long)entry, what);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    *ret_number = strtoull(text, NULL, 10);
    return 0;
}

int btrfs_quota_own_now(int subvol_fd, uint64_t *ret_bytes)
{
    struct btrfs_ioctl_fs_info_args fs = { 0 };
    uint64_t entry = 0, own = 0, coming = 0;
    int r = btrfs_quota_entry(subvol_fd, &entry);
    if (r == 0 && ioctl(subvol_fd, BTRFS_IOC_FS_INFO, &fs) < 0)
        r = -errno;
    if (r == 0) /* in this order: what has arrived in between counts twice, not never */
        r = number_now(&fs, entry, "rsv_data", &coming);
    if (r == 0)
        r = number_now(&fs, entry, "exclusive", &own);
    if (r == 0)
        *ret_bytes = own + coming;
    return r;
}

static int limits_of(int dirfd, uint64_t entry, uint64_t *ret_bytes, uint64_t *ret_own)
{
    struct btrfs_qgroup_limit_item limit;
    int r = quota_item(dirfd, BTRFS_QGROUP_LIMIT_KEY, entry, &limit, sizeof(limit));
    if (r < 0)
        return r;
    uint64_t flags = le64toh(limit.flags);
    *ret_bytes = flags & BTRFS_QGROUP_LIMIT_MAX_RFER ? le64toh(limit.max_rfer) : UINT64_MAX;
    *ret_own = flags & BTRFS_QGROUP_LIMIT_MAX_EXCL ? le64toh(limit.max_excl) : UINT64_MAX;
    return 0;
}

int btrfs_quota_limits(int subvol_fd, uint64_t *ret_bytes, uint64_t *ret_own)
{
    uint64_t entry = 0;
    int r = btrfs_quota_entry(subvol_fd, &entry);
    return r < 0 ? r : limits_of(subvol_fd, entry, ret_bytes, ret_own);
}

static int quota_flags(int dirfd, uint64_t *ret_flags)
{
    struct btrfs_qgroup_status_item status;
    int r = quota_item(dirfd, BTRFS_QGROUP_STATUS_KEY, 0, &status,
                       offsetof(struct btrfs_qgroup_status_item, rescan));
    if (r == 0)
        *ret_flags = le64toh(status.flags);
    return r;
}

int btrfs_quota_enable(int dirfd, bool *ret_simple, struct err *err)
{
    struct btrfs_ioctl_quota_ctl_args args = { .cmd = QUOTA_ENABLE_SIMPLE };
    if (ioctl(dirfd, BTRFS_IOC_QUOTA_CTL, &args) < 0 && errno != EEXIST) {
        args.cmd = BTRFS_QUOTA_CTL_ENABLE;
        if (ioctl(dirfd, BTRFS_IOC_QUOTA_CTL, &args) < 0 && errno != EEXIST)
            return err_set(err, errno, "cannot enable btrfs quotas");
    }
    /* Those that were enabled before, by an older kernel, stay as they are, and both calls succeed. */
    uint64_t flags = 0;
    int r = quota_flags(dirfd, &flags);
    if (r < 0)
        return err_set(err, -r, "cannot see which btrfs quotas there are");
    *ret_simple = flags & QUOTA_IS_SIMPLE;
    return 0;
}

int btrfs_quota_mend(int dirfd)
{
    struct btrfs_ioctl_quota_rescan_args args = { 0 };
    uint64_t flags = 0;
    int r = quota_flags(dirfd, &flags);
    if (r < 0)
        return r;
    if (!(flags & BTRFS_QGROUP_STATUS_FLAG_INCONSISTENT) || flags & BTRFS_QGROUP_STATUS_FLAG_RESCAN)
        return 0;
    if (ioctl(dirfd, BTRFS_IOC_QUOTA_RESCAN, &args) < 0)
        return errno == EINPROGRESS ? 0 : -errno;
    return 1;
}

uint64_t btrfs_group_entry(uint64_t group)
{
    return GROUP_LEVEL | (group & (GROUP_LEVEL - 1));
}

int btrfs_group_make(int dirfd, uint64_t group, struct err *err)
{
    struct btrfs_ioctl_qgroup_create_args args = { .create = 1,
                                                   .qgroupid = btrfs_group_entry(group) };
    if (ioctl(dirfd, BTRFS_IOC_QGROUP_CREATE, &args) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make a group of subvolumes");
    return 0;
}

int btrfs_group_add_entry(int dirfd, uint64_t entry, uint64_t group, struct err *err)
{
    struct btrfs_ioctl_qgroup_assign_args args = { .assign = 1,
                                                   .src = entry,
                                                   .dst = btrfs_group_entry(group) };
    if (ioctl(dirfd, BTRFS_IOC_QGROUP_ASSIGN, &args) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot add a subvolume to a group");
    return 0;
}

int btrfs_group_add(int subvol_fd, uint64_t group, struct err *err)
{
    uint64_t entry = 0;
    int r = btrfs_quota_entry(subvol_fd, &entry);
    if (r < 0)
        return err_set(err, -r, "cannot add a subvolume to a group");
    return btrfs_group_add_entry(subvol_fd, entry, group, err);
}

int btrfs_group_limit(int dirfd, uint64_t group, uint64_t bytes, struct err *err)
{
    struct btrfs_ioctl_qgroup_limit_args args = {
        .qgroupid = btrfs_group_entry(group),
        .lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes },
    };
    if (ioctl(dirfd, BTRFS_IOC_QGROUP_LIMIT, &args) < 0)
        return err_set(err, errno, "cannot limit a group of subvolumes to %llu bytes",
                       (unsigned long long)bytes);
    return 0;
}

int btrfs_quota_used_by(int dirfd, uint64_t entry, uint64_t *ret_bytes)
{
    return used_by(dirfd, entry, false, ret_bytes);
}

int btrfs_group_used(int dirfd, uint64_t group, uint64_t *ret_bytes)
{
    return used_by(dirfd, btrfs_group_entry(group), false, ret_bytes);
}

int btrfs_group_limits(int dirfd, uint64_t group, uint64_t *ret_bytes, uint64_t *ret_own)
{
    return limits_of(dirfd, btrfs_group_entry(group), ret_bytes, ret_own);
}

int btrfs_group_remove(int subvol_fd, uint64_t group)
{
    struct btrfs_ioctl_qgroup_assign_args args = { .dst = btrfs_group_entry(group) };
    int r = btrfs_quota_entry(subvol_fd, (uint64_t *)&args.src);
    return r < 0 ? r : ioctl(subvol_fd, BTRFS_IOC_QGROUP_ASSIGN, &args) < 0 ? -errno : 0;
}

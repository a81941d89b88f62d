/* The space of a btrfs: what is given to data and to metadata, and what is used of it. */
#include <errno.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "kernel/btrfs.h"

#define KINDS_MAX 64 /* of block groups: a type times a profile; a filesystem has four or five */
#define KIND_KEPT (1ull << 49) /* BTRFS_SPACE_INFO_GLOBAL_RSV: newer headers have it */

static void add_kind(struct btrfs_space *s, const struct btrfs_ioctl_space_info *kind)
{
    if (kind->flags & KIND_KEPT) {
        s->metadata_kept += kind->total_bytes;
    } else if (kind->flags & BTRFS_BLOCK_GROUP_DATA) {
        s->mixed = s->mixed || (kind->flags & BTRFS_BLOCK_GROUP_METADATA);
        s->data_size += kind->total_bytes;
        s->data_used += kind->used_bytes;
    } else if (kind->flags & BTRFS_BLOCK_GROUP_METADATA) {
        s->metadata_size += kind->total_bytes;
        s->metadata_used += kind->used_bytes;
    }
}

static int add_devices(int dirfd, struct btrfs_space *s)
{
    struct btrfs_ioctl_fs_info_args fs = { 0 };
    if (ioctl(dirfd, BTRFS_IOC_FS_INFO, &fs) < 0)
        return -errno;
    uint64_t seen = 0;
    for (uint64_t id = 1; id <= fs.max_id && seen < fs.num_devices; id++) {
        struct btrfs_ioctl_dev_info_args dev = { .devid = id };
        if (ioctl(dirfd, BTRFS_IOC_DEV_INFO, &dev) < 0)
            continue; /* one that was removed */
        seen++;
        s->unallocated += dev.total_bytes > dev.bytes_used ? dev.total_bytes - dev.bytes_used : 0;
    }
    return 0;
}

int btrfs_space(int dirfd, struct btrfs_space *ret_space)
{
    struct btrfs_space s = { 0 };
    _cleanup_free_ struct btrfs_ioctl_space_args *args =
        calloc(1, sizeof(*args) + KINDS_MAX * sizeof(args->spaces[0]));
    if (!args)
        return -ENOMEM;
    args->space_slots = KINDS_MAX;
    if (ioctl(dirfd, BTRFS_IOC_SPACE_INFO, args) < 0)
        return -errno;
    for (uint64_t i = 0; i < args->total_spaces && i < KINDS_MAX; i++)
        add_kind(&s, &args->spaces[i]);
    int r = add_devices(dirfd, &s);
    if (r < 0)
        return r;
    *ret_space = s;
    return 0;
}

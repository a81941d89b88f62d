/* btrfs - subvolumes, and how much one may hold.
 *
 * Plain ioctls: no library, no btrfs program on any path that a user waits for. Names are single
 * path components below an open directory. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

bool btrfs_is(int dirfd); /* is this directory on btrfs? */
int btrfs_subvol_create(int dirfd, const char *name, struct err *err);
/* A copy of a subvolume as it is at this moment, sharing its extents, with all that was written to
 * it; on disk when this returns. */
int btrfs_subvol_snapshot(int dirfd, const char *name, int source_fd, bool read_only,
                          struct err *err);
/* The same, counted in `group` (below) as well; for simple quotas. Full ones lose count by it, and since Linux 6.1
 * they then count nothing any more: no limit on the filesystem holds. */
int btrfs_subvol_snapshot_in(int dirfd, const char *name, int source_fd, bool read_only,
                             uint64_t group, struct err *err);
int btrfs_subvol_delete(int dirfd, const char *name, struct err *err); /* -ENOTEMPTY: see below */
/* Subvolumes inside another: the outer one cannot be deleted before them, and its limit does not
 * count them. btrfs_quota_entry gives a subvolume's number. */
int btrfs_subvol_nested(int dirfd, uint64_t outer, uint64_t after,
                        uint64_t *ret_inner); /* -ENOENT */
/* Delete all subvolumes inside `outer`, at any depth, the innermost first; calls gone (or NULL)
 * for each. */
int btrfs_subvol_delete_nested(int dirfd, uint64_t outer, void (*gone)(uint64_t inner, void *arg),
                               void *arg, struct err *err);
int btrfs_subvol_set_readonly(int subvol_fd, bool on, struct err *err);
/* Has what was deleted freed at once, which the kernel does every half a minute otherwise; all that is dirty is
 * written out for it. */
int btrfs_reclaim(int dirfd);
/* Whether a subvolume was written to since a copy of it was taken; what is only in the page cache
 * does not show. True also where that is not known. */
bool btrfs_subvol_changed_since(int subvol_fd, int copy_fd);

/* The space of the filesystem in bytes. Pieces of the disk are given to data or to metadata; where
 * both share theirs (`mixed`), all counts as data. */
struct btrfs_space {
    bool mixed;
    uint64_t data_size, data_used;
    uint64_t metadata_size, metadata_used;
    uint64_t metadata_kept; /* of metadata_size: the kernel keeps it for its own work */
    uint64_t unallocated;   /* given to neither yet */
};
int btrfs_space(int dirfd, struct btrfs_space *ret_space);

/* Account blocks per subvolume: simple quotas (Linux 6.7) where there are, else full ones.
 * *ret_simple says which. Fine to call again. */
int btrfs_quota_enable(int dirfd, bool *ret_simple, struct err *err);
int btrfs_quota_limit(int subvol_fd, uint64_t bytes, struct err *err);
/* The same, and of what nobody else has at most `own` bytes (full quotas). UINT64_MAX is no limit. */
int btrfs_quota_limit_own(int subvol_fd, uint64_t bytes, uint64_t own, struct err *err);
int btrfs_quota_limits(int subvol_fd, uint64_t *ret_bytes, uint64_t *ret_own);
int btrfs_quota_used(int subvol_fd, uint64_t *ret_bytes);
int btrfs_quota_own(int subvol_fd, uint64_t *ret_bytes); /* what nobody else has */
/* The same at this moment, with what is not written out yet: rather too much than too little. */
int btrfs_quota_own_now(int subvol_fd, uint64_t *ret_bytes);
/* Have full quotas counted anew if the kernel has lost count. 1: it has begun, and goes on in the background. */
int btrfs_quota_mend(int dirfd);
/* A subvolume's entry in the books, and striking it once the subvolume is gone, which simple quotas
 * do themselves and full ones may not. -EBUSY until the kernel has written it as empty. */
int btrfs_quota_entry(int subvol_fd, uint64_t *ret_entry);
int btrfs_quota_strike(int dirfd, uint64_t entry);
/* By such a number, of a subvolume that nobody has open. */
int btrfs_quota_used_by(int dirfd, uint64_t entry, uint64_t *ret_bytes);
int btrfs_quota_limit_by(int dirfd, uint64_t entry, uint64_t bytes, struct err *err);

/* A group of subvolumes under one limit: a block that several of them have counts once. It is a number
 * of the caller's, below 2^48. Making one that is there, and adding twice, is fine. */
int btrfs_group_make(int dirfd, uint64_t group, struct err *err);
int btrfs_group_add(int subvol_fd, uint64_t group, struct err *err);
int btrfs_group_add_entry(int dirfd, uint64_t entry, uint64_t group, struct err *err);
int btrfs_group_limit(int dirfd, uint64_t group, uint64_t bytes, struct err *err);
int btrfs_group_used(int dirfd, uint64_t group, uint64_t *ret_bytes);
int btrfs_group_limits(int dirfd, uint64_t group, uint64_t *ret_bytes, uint64_t *ret_own);
int btrfs_group_remove(int subvol_fd, uint64_t group); /* a subvolume from it */
uint64_t btrfs_group_entry(uint64_t group); /* for btrfs_quota_strike, when it is empty */

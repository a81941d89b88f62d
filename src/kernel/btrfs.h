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
/* A writable copy of a subvolume, sharing its extents. */
int btrfs_subvol_snapshot(int dirfd, const char *name, int source_fd, struct err *err);
int btrfs_subvol_delete(int dirfd, const char *name, struct err *err);
int btrfs_subvol_set_readonly(int subvol_fd, bool on, struct err *err);

/* Account blocks per subvolume: simple quotas (Linux 6.7) where there are, else full ones.
 * *ret_simple says which. Fine to call again. */
int btrfs_quota_enable(int dirfd, bool *ret_simple, struct err *err);
int btrfs_quota_limit(int subvol_fd, uint64_t bytes, struct err *err);
int btrfs_quota_used(int subvol_fd, uint64_t *ret_bytes);
/* A subvolume's entry in the books, and striking it once the subvolume is gone, which simple quotas
 * do themselves and full ones may not. -EBUSY until the kernel has written it as empty. */
int btrfs_quota_entry(int subvol_fd, uint64_t *ret_entry);
int btrfs_quota_strike(int dirfd, uint64_t entry);

/* Volumes and their checkpoints. What a volume and its checkpoints have in common counts once, and going back to a
 * checkpoint gives no room away. With simple quotas all subvolumes of a volume are a group under its limit; for full
 * ones see storage_kept.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/log.h"
#include "keeper/storage_private.h"
#include "kernel/btrfs.h"

#define LOG_MODULE "storage"

uint64_t storage_group(const char *id)
{
    uint64_t h = hash_text(id);
    return (h ^ h >> 48) & ((1ull << 48) - 1);
}

bool storage_group_entry(const struct storage *st, const char *name, uint64_t *ret_entry)
{
    static const char *const prefixes[] = { TRASH_VOLUME, TRASH_BOX };
    for (size_t i = 0; st->quota && i < ARRAY_LEN(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], n) != 0)
            continue;
        *ret_entry = btrfs_group_entry(storage_group(name + n));
        return true;
    }
    return false;
}

static int open_in(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int storage_volume(struct storage *st, const char *id, int *ret_fd, struct err *err)
{
    int fd = open_in(st->volumes, id);
    if (fd < 0)
        return err_fail_as(err, errno, FAIL_VOLUME_NOT_FOUND, "volume '%s' is not stored here", id);
    *ret_fd = fd;
    return 0;
}

static int limit(struct storage *st, const char *id, int fd, uint64_t disk_bytes, struct err *err)
{
    if (!st->quota)
        return 0;
    if (!st->simple_quota)
        return storage_kept_limit(st, id, fd, disk_bytes, err);
    int r = btrfs_group_make(st->pool, storage_group(id), err);
    if (r == 0)
        r = btrfs_group_add(fd, storage_group(id), err);
    if (r == 0) /* the one that it had before there were groups */
        r = btrfs_quota_limit(fd, UINT64_MAX, err);
    return r < 0 ? r
                 : btrfs_group_limit(st->pool, storage_group(id), storage_room(st, fd, disk_bytes),
                                     err);
}

/* A copy of a volume, or of a checkpoint of one, that counts for volume `id`. */
static int copy(struct storage *st, int dir, const char *name, int from, bool read_only,
                const char *id, struct err *err)
{
    if (!storage_counts_writers(st))
        return btrfs_subvol_snapshot(dir, name, from, read_only, err);
    int r = btrfs_group_make(st->pool, storage_group(id), err);
    return r < 0 ? r : btrfs_subvol_snapshot_in(dir, name, from, read_only, storage_group(id), err);
}

/* A volume that was acknowledged is there after a power cut. */
static int write_out(int fd, const char *id, struct err *err)
{
    return syncfs(fd) < 0 ? err_set(err, errno, "cannot write volume '%s' out", id) : 0;
}

/* It gets its name when it is as it should be, so one that a keeper's death cut off is not taken
 * for a whole one. Everybody may write in it: it is no user's, and sandboxes differ in theirs. */
static int make_volume(struct storage *st, const char *id, uint64_t disk_bytes, struct err *err)
{
    char part[STORAGE_NAME_SIZE];
    int r = storage_part_name(id, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", id);
    r = storage_move_to_trash(st, st->volumes, part, err);
    if (r == 0)
        r = btrfs_subvol_create(st->volumes, part, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int fd = open_in(st->volumes, part);
    if (fd < 0 || fchmod(fd, 0777) < 0)
        return err_set(err, errno, "cannot open volume '%s'", id);
    r = limit(st, id, fd, disk_bytes, err);
    if (r == 0 && renameat2(st->volumes, part, st->volumes, id, RENAME_NOREPLACE) < 0)
        r = err_set(err, errno, "cannot name volume '%s'", id);
    return r < 0 ? r : write_out(fd, id, err);
}

int storage_volume_put(struct storage *st, const char *id, uint64_t disk_bytes, struct err *err)
{
    _cleanup_fd_ int fd = open_in(st->volumes, id);
    return fd < 0 ? make_volume(st, id, disk_bytes, err) : limit(st, id, fd, disk_bytes, err);
}

uint64_t storage_volume_used(struct storage *st, const char *id)
{
    uint64_t bytes = 0;
    if (!st->quota)
        return 0;
    _cleanup_fd_ int fd = open_in(st->volumes, id);
    if (!st->simple_quota)
        return fd < 0 ? 0 : storage_kept_used(fd);
    if (btrfs_group_used(st->pool, storage_group(id), &bytes) < 0 && fd >= 0)
        (void)btrfs_quota_used(fd, &bytes);
    return bytes + (fd >= 0 ? storage_carried(st, fd) : 0);
}

int storage_volume_trash(struct storage *st, const char *id, struct err *err)
{
    char name[STORAGE_NAME_SIZE]; /* the sweeper strikes its group by it */
    (void)snprintf(name, sizeof(name), TRASH_VOLUME "%s", id);
    if (renameat2(st->volumes, id, st->trash, name, RENAME_NOREPLACE) == 0 || errno == ENOENT)
        return 0; /* on failure the group's entry stays: a few bytes */
    return storage_move_to_trash(st, st->volumes, id, err);
}

/* ---- subvolumes inside of one ---- */

static int count_nested(struct storage *st, uint64_t group, uint64_t outer, int levels)
{
    int n = 0;
    for (uint64_t inner = 0; btrfs_subvol_nested(st->pool, outer, inner, &inner) == 0; n++) {
        if (st->simple_quota)
            (void)btrfs_group_add_entry(st->pool, inner, group, NULL);
        if (levels > 0)
            n += count_nested(st, group, inner, levels - 1);
    }
    return n;
}

static int look_into(const char *id, void *arg)
{
    struct storage *st = arg;
    uint64_t outer = 0;
    _cleanup_fd_ int fd = open_in(st->volumes, id);
    if (fd < 0 || btrfs_quota_entry(fd, &outer) < 0)
        return 0;
    int n = count_nested(st, storage_group(id), outer, STORAGE_NESTED_MAX);
    if (n && !st->simple_quota) {
        (void)syncfs(st->pool); /* full quotas count what is written out */
        (void)storage_kept_limit_again(st, id, NULL);
    }
    if (n)
        log_warn("subvolumes lie in a volume; they count for it and go with it volume=%s n=%d", id,
                 n);
    return 0;
}

/* Sandboxes could make subvolumes under an earlier version. They hold the user's files, so they
 * stay, and count. */
void storage_volumes_count_nested(struct storage *st)
{
    if (st->quota)
        (void)storage_each_in(st->volumes, look_into, st);
}

static int leave_group(const char *id, void *arg)
{
    struct storage *st = arg;
    _cleanup_fd_ int fd = open_in(st->volumes, id);
    uint64_t limit = 0, own = 0;
    if (fd >= 0 && btrfs_group_limits(st->pool, storage_group(id), &limit, &own) == 0 &&
        btrfs_group_remove(fd, storage_group(id)) == 0 && limit != UINT64_MAX)
        (void)storage_kept_limit(st, id, fd, limit, NULL);
    return 0;
}

void storage_volumes_leave_groups(struct storage *st)
{
    if (st->quota && !st->simple_quota)
        (void)storage_each_in(st->volumes, leave_group, st);
}

/* ---- checkpoints ---- */

int storage_volume_flush(struct storage *st, const char *id, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r = storage_volume(st, id, &fd, err);
    if (r == 0 && st->quota && !st->simple_quota) /* storage_kept.c counts each copy */
        return write_out(fd, id, err);
    return r < 0 ? r : storage_flush(st, fd, err);
}

int storage_volume_point_put(struct storage *st, const char *point, const char *id, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r = storage_volume(st, id, &fd, err);
    if (r == 0 && st->quota && !st->simple_quota)
        return storage_kept_snapshot(st, point, id, fd, err);
    if (r == 0)
        r = copy(st, st->volume_points, point, fd, true, id, err);
    return r < 0 ? r
                 : storage_note_total(st, st->volume_points, point, id, storage_volume_used(st, id),
                                      err);
}

int storage_volume_point_trash(struct storage *st, const char *point, struct err *err)
{
    storage_forget_total(st, st->volume_points, point);
    if (st->quota && !st->simple_quota)
        storage_kept_forget(st, point);
    _cleanup_fd_ int fd = open_in(st->volume_points, point);
    int r = fd < 0 ? 0 : btrfs_subvol_set_readonly(fd, false, err);
    return r < 0 ? r : storage_move_to_trash(st, st->volume_points, point, err);
}

int storage_volume_restore(struct storage *st, const char *id, const char *point,
                           uint64_t disk_bytes, struct err *err)
{
    char part[STORAGE_NAME_SIZE];
    int r = storage_part_name(id, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", id);
    _cleanup_fd_ int from = open_in(st->volume_points, point), fd = -1;
    if (from < 0)
        return err_fail_as(err, errno, FAIL_CHECKPOINT_NOT_FOUND,
                           "checkpoint '%s' is not stored here", point);
    r = storage_move_to_trash(st, st->volumes, part, err);
    if (r == 0)
        r = copy(st, st->volumes, part, from, false, id, err);
    if (r < 0)
        return r;
    fd = open_in(st->volumes, part);
    if (fd < 0)
        return err_set(err, errno, "cannot open volume '%s'", id);
    r = storage_carry(st, fd, st->volume_points, point, id, true, err);
    if (r == 0)
        r = limit(st, id, fd, disk_bytes, err);
    if (r < 0)
        return r;
    /* It takes the name in one step: before it the old files are there, after it these. */
    if (renameat2(st->volumes, part, st->volumes, id, RENAME_EXCHANGE) == 0)
        r = storage_move_to_trash(st, st->volumes, part, err); /* the old files */
    else if (errno != ENOENT || renameat2(st->volumes, part, st->volumes, id, RENAME_NOREPLACE) < 0)
        r = err_set(err, errno, "cannot name volume '%s'", id);
    return r < 0 ? r : write_out(fd, id, err);
}

/* ---- what is on its way to a bucket ---- */

int storage_spool(struct storage *st, const char *id, uint64_t disk_bytes, int *ret_fd,
                  struct err *err)
{
    int r = btrfs_subvol_create(st->spool, id, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int fd = open_in(st->spool, id);
    if (fd < 0)
        return err_set(err, errno, "cannot open a bucket's spool");
    r = st->quota ? btrfs_quota_limit(fd, disk_bytes, err) : 0;
    if (r == 0)
        *ret_fd = take_fd(fd);
    return r;
}

int storage_spool_trash(struct storage *st, const char *id, struct err *err)
{
    return storage_move_to_trash(st, st->spool, id, err);
}

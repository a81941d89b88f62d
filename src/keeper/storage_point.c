/* Points: boxes as they were at a checkpoint, and boxes made from them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "keeper/storage_private.h"
#include "kernel/btrfs.h"

#define LOG_MODULE "storage"

static int open_point(struct storage *st, const char *point)
{
    return openat(st->points, point, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int storage_point_put(struct storage *st, const char *point, const char *id, struct err *err)
{
    _cleanup_fd_ int box = storage_box_open(st, id);
    if (box < 0)
        return err_set(err, errno, "cannot open box '%s'", id);
    int r = btrfs_subvol_snapshot(st->points, point, box, true, err);
    /* Making it has closed the books: they say what the box had written by then. */
    return r < 0 ? r : storage_note_total(st, st->points, point, id, storage_box_used(st, id), err);
}

int storage_point_upper(struct storage *st, const char *point, int *ret_fd, struct err *err)
{
    _cleanup_fd_ int dir = open_point(st, point);
    int fd = dir < 0 ? -1 : openat(dir, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open the files of checkpoint '%s'", point);
    *ret_fd = fd;
    return 0;
}

static int copy_as(struct storage *st, const char *id, const char *part, int from, bool group,
                   int box, struct err *err)
{
    if (!group)
        return btrfs_subvol_snapshot(st->boxes, part, from, false, err);
    int r = btrfs_group_make(st->pool, storage_group(id), err);
    if (r == 0 && box >= 0)
        r = btrfs_group_add(box, storage_group(id), err);
    return r < 0 ? r
                 : btrfs_subvol_snapshot_in(st->boxes, part, from, false, storage_group(id), err);
}

/* A copy of a point that counts for sandbox `id`. */
static int copy_for(struct storage *st, const char *id, const char *part, const char *point,
                    int from, struct err *err)
{
    _cleanup_fd_ int box = storage_box_open(st, id);
    bool group = storage_counts_writers(st) && (box >= 0 || storage_box_grouped(st, id));
    int r = copy_as(st, id, part, from, group, box, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int copy = openat(st->boxes, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return copy < 0 ? err_set(err, errno, "cannot open box '%s'", id)
                    : storage_carry(st, copy, st->points, point, id, group, err);
}

/* It takes the box's name in one step: before it the old files are there, after it these. */
static int name_box(struct storage *st, const char *id, const char *part, uint64_t disk_bytes,
                    struct err *err)
{
    _cleanup_fd_ int box = openat(st->boxes, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (box < 0)
        return err_set(err, errno, "cannot open box '%s'", id);
    uint64_t room = storage_room(st, box, disk_bytes);
    int r = st->quota && disk_bytes ? btrfs_quota_limit(box, room, err) : 0;
    if (r == 0 && disk_bytes && storage_box_grouped(st, id))
        r = btrfs_group_limit(st->pool, storage_group(id), room, err);
    if (r < 0)
        return r;
    if (renameat2(st->boxes, part, st->boxes, id, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != ENOENT || renameat2(st->boxes, part, st->boxes, id, RENAME_NOREPLACE) < 0)
        return err_set(err, errno, "cannot name box '%s'", id);
    return 0;
}

/* The old files, or new ones that did not get the name; else a later try or the next start does it. */
static void drop_part(struct storage *st, const char *id, const char *part)
{
    if (storage_move_to_trash(st, st->boxes, part, NULL) < 0)
        log_warn("files that nobody needs stay for now box=%s", id);
}

int storage_box_make(struct storage *st, const char *id, const char *point, struct err *err)
{
    char part[STORAGE_NAME_SIZE];
    int r = storage_part_name(id, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", id);
    _cleanup_fd_ int from = open_point(st, point);
    if (from < 0)
        return err_fail_as(err, errno, FAIL_CHECKPOINT_NOT_FOUND,
                           "checkpoint '%s' is not stored here", point);
    r = storage_move_to_trash(st, st->boxes, part, err);
    if (r == 0)
        r = copy_for(st, id, part, point, from, err);
    if (r < 0)
        drop_part(st, id, part);
    return r;
}

bool storage_box_is_made(struct storage *st, const char *id)
{
    char part[STORAGE_NAME_SIZE];
    return storage_part_name(id, part) == 0 && faccessat(st->boxes, part, F_OK, 0) == 0;
}

int storage_box_put(struct storage *st, const char *id, uint64_t disk_bytes, struct err *err)
{
    char part[STORAGE_NAME_SIZE];
    int r = storage_part_name(id, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", id);
    r = name_box(st, id, part, disk_bytes, err);
    drop_part(st, id, part);
    return r;
}

int storage_point_trash(struct storage *st, const char *point, struct err *err)
{
    storage_forget_total(st, st->points, point);
    /* What is read-only cannot be moved to another directory: that changes its "..". */
    _cleanup_fd_ int fd = open_point(st, point);
    int r = fd < 0 ? 0 : btrfs_subvol_set_readonly(fd, false, err);
    if (r == -ENOSPC && btrfs_subvol_delete(st->points, point, NULL) == 0)
        return 0;
    return r < 0 ? r : storage_move_to_trash(st, st->points, point, err);
}

int storage_point_begin(struct storage *st, const char *point, uint64_t disk_bytes, int *ret_fd,
                        struct err *err)
{
    char part[STORAGE_NAME_SIZE];
    int r = storage_part_name(point, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", point);
    r = storage_move_to_trash(st, st->points, part, err);
    if (r == 0)
        r = btrfs_subvol_create(st->points, part, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int dir = open_point(st, part);
    r = dir < 0 ? err_set(err, errno, "cannot open '%s'", part)
                : storage_box_fill(st, dir, disk_bytes, err);
    if (r < 0)
        return r;
    int fd = openat(dir, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s'", part);
    *ret_fd = fd;
    return 0;
}

int storage_point_commit(struct storage *st, const char *point, struct err *err)
{
    char part[STORAGE_NAME_SIZE];
    int r = storage_part_name(point, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", point);
    _cleanup_fd_ int dir = open_point(st, part);
    if (dir < 0)
        return err_set(err, errno, "cannot open '%s'", part);
    if (syncfs(dir) < 0)
        return err_set(err, errno, "cannot write the checkpoint out");
    uint64_t written = 0;
    if (st->quota)
        (void)btrfs_quota_used(dir, &written);
    r = storage_note_total(st, st->points, point, point, written, err); /* nobody else wrote it */
    if (r < 0)
        return r;
    if (renameat2(st->points, part, st->points, point, RENAME_NOREPLACE) < 0)
        return err_set(err, errno, "cannot name checkpoint '%s'", point);
    return btrfs_subvol_set_readonly(dir, true, err);
}

void storage_point_abort(struct storage *st, const char *point)
{
    char part[STORAGE_NAME_SIZE];
    if (storage_part_name(point, part) == 0)
        (void)storage_move_to_trash(st, st->points, part, NULL);
}

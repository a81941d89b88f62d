/* Boxes: what each sandbox changed. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "keeper/storage_private.h"
#include "kernel/btrfs.h"

int storage_box_open(struct storage *st, const char *id)
{
    return openat(st->boxes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int storage_box_fill(struct storage *st, int box, uint64_t disk_bytes, struct err *err)
{
    if (mkdirat(box, "upper", 0755) < 0 || mkdirat(box, "work", 0700) < 0)
        return err_set(err, errno, "cannot make a sandbox's directories");
    return st->quota && disk_bytes ? btrfs_quota_limit(box, disk_bytes, err) : 0;
}

int storage_box(struct storage *st, const char *id, uint64_t disk_bytes, int *ret_fd,
                struct err *err)
{
    int fd = storage_box_open(st, id);
    if (fd >= 0 && faccessat(fd, "work", F_OK, 0) == 0) {
        *ret_fd = fd;
        return 0;
    }
    if (fd >= 0) { /* half made in a former life */
        (void)close(fd);
        int r = storage_box_trash(st, id, err);
        if (r < 0)
            return r;
    }
    int r = btrfs_subvol_create(st->boxes, id, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int box = storage_box_open(st, id);
    r = box < 0 ? err_set(err, errno, "cannot open box '%s'", id)
                : storage_box_fill(st, box, disk_bytes, err);
    if (r < 0) {
        (void)btrfs_subvol_delete(st->boxes, id, NULL);
        return r;
    }
    *ret_fd = take_fd(box);
    return 0;
}

bool storage_box_grouped(struct storage *st, const char *id)
{
    uint64_t bytes;
    return st->quota && st->simple_quota &&
           btrfs_group_used(st->pool, storage_group(id), &bytes) == 0;
}

int storage_box_limit(struct storage *st, const char *id, uint64_t disk_bytes, struct err *err)
{
    if (!st->quota)
        return 0;
    _cleanup_fd_ int fd = storage_box_open(st, id);
    if (fd < 0)
        return err_set(err, errno, "cannot open box '%s'", id);
    uint64_t room = storage_room(st, fd, disk_bytes);
    int r = btrfs_quota_limit(fd, room, err);
    return r < 0 || !storage_box_grouped(st, id)
               ? r
               : btrfs_group_limit(st->pool, storage_group(id), room, err);
}

int storage_box_upper(struct storage *st, const char *id, int *ret_fd, struct err *err)
{
    _cleanup_fd_ int box = storage_box_open(st, id);
    int fd = box < 0 ? -1 : openat(box, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open the files of '%s'", id);
    *ret_fd = fd;
    return 0;
}

uint64_t storage_box_used(struct storage *st, const char *id)
{
    _cleanup_fd_ int fd = storage_box_open(st, id);
    uint64_t bytes = 0;
    if ((!st->simple_quota || btrfs_group_used(st->pool, storage_group(id), &bytes) < 0) && fd >= 0)
        (void)btrfs_quota_used(fd, &bytes);
    return bytes + (fd >= 0 ? storage_carried(st, fd) : 0);
}

int storage_box_trash(struct storage *st, const char *id, struct err *err)
{
    char name[STORAGE_NAME_SIZE]; /* the sweeper strikes its group by it */
    (void)snprintf(name, sizeof(name), TRASH_BOX "%s", id);
    if (storage_box_grouped(st, id) &&
        renameat2(st->boxes, id, st->trash, name, RENAME_NOREPLACE) == 0)
        return 0;
    return storage_move_to_trash(st, st->boxes, id, err);
}

int storage_box_flush(struct storage *st, const char *id, struct err *err)
{
    _cleanup_fd_ int box = storage_box_open(st, id);
    return box < 0 ? err_set(err, errno, "cannot open box '%s'", id) : storage_flush(st, box, err);
}

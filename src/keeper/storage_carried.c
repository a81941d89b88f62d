/* Copies of checkpoints, where quotas count writers. Simple quotas charge a block to the subvolume that wrote it, so a sandbox
 * made from another's checkpoint would start at zero, keep the other's blocks when that is deleted, and pass more than its
 * limit on to the next. Therefore each checkpoint records its owner and how much the owner had written; a copy for somebody
 * else records how much it carries, and may write that much less: it starts with the room that the other had left. The
 * records are attributes of the subvolume, which only the host's root sees. Full quotas need none of this. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/id.h"
#include "keeper/storage_private.h"
#include "kernel/btrfs.h"

#define CARRIED "trusted.warren.carried" /* of a box or volume, and so of copies of it: bytes */
#define TOTAL "trusted.warren.total"     /* of a checkpoint: bytes, with what it carries */
#define OF "trusted.warren.of" /* of a checkpoint: the sandbox or volume it was taken of */
#define ROOM_MIN (1024 * 1024) /* a cell must be able to start */

static uint64_t get(int fd, const char *name)
{
    uint64_t bytes = 0;
    return fgetxattr(fd, name, &bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes) ? le64toh(bytes)
                                                                                : 0;
}

static int put(int fd, const char *name, uint64_t bytes, struct err *err)
{
    uint64_t raw = htole64(bytes);
    if (fsetxattr(fd, name, &raw, sizeof(raw), 0) < 0)
        return err_set(err, errno, "cannot write down how much a copy holds");
    return 0;
}

uint64_t storage_carried(const struct storage *st, int fd)
{
    return storage_counts_writers(st) ? get(fd, CARRIED) : 0;
}

uint64_t storage_room(const struct storage *st, int fd, uint64_t disk_bytes)
{
    uint64_t carried = storage_carried(st, fd);
    return disk_bytes > carried + ROOM_MIN ? disk_bytes - carried
           : disk_bytes < ROOM_MIN         ? disk_bytes
                                           : ROOM_MIN;
}

int storage_note_total(const struct storage *st, int point_fd, const char *of, uint64_t written,
                       struct err *err)
{
    if (!storage_counts_writers(st))
        return 0;
    if (fsetxattr(point_fd, OF, of, strlen(of), 0) < 0)
        return err_set(err, errno, "cannot write down whose checkpoint it is");
    return put(point_fd, TOTAL, storage_carried(st, point_fd) + written, err);
}

int storage_seal_point(const struct storage *st, int dir, const char *point, const char *of,
                       uint64_t written, struct err *err)
{
    _cleanup_fd_ int fd = openat(dir, point, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open checkpoint '%s'", point);
    int r = storage_note_total(st, fd, of, written, err);
    return r < 0 ? r : btrfs_subvol_set_readonly(fd, true, err);
}

int storage_carry(const struct storage *st, int copy_fd, const char *id, bool counted,
                  struct err *err)
{
    char of[ID_SIZE] = "";
    if (!storage_counts_writers(st))
        return 0;
    ssize_t n = fgetxattr(copy_fd, OF, of, sizeof(of) - 1);
    of[n > 0 ? n : 0] = '\0';
    return counted && strcmp(of, id) == 0 ? 0 : put(copy_fd, CARRIED, get(copy_fd, TOTAL), err);
}

/* Copies of checkpoints, where quotas count writers. Simple quotas charge a block to the subvolume that wrote it, so a sandbox
 * made from another's checkpoint would start at zero, keep the other's blocks when that is deleted, and pass more than its
 * limit on to the next. Therefore a record of each checkpoint says whose it is and how much that had written; a copy for
 * somebody else records how much it carries, and may write that much less: it starts with the room that the other had left.
 * The records are attributes that only the host's root sees: of the directory that the checkpoint lies in (to change one that
 * is read-only costs a commit), and of the copy. Full quotas need none of this. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/id.h"
#include "keeper/storage_private.h"

#define CARRIED "trusted.warren.carried" /* of a box or volume, and so of copies of it: bytes */
#define TOTAL "trusted.warren.total."    /* of a directory, for the checkpoint of that name */
#define ROOM_MIN (1024 * 1024)           /* a cell must be able to start */

struct total {
    uint64_t bytes; /* little-endian; with what it carries */
    char of[ID_SIZE];
};

static void total_name(const char *point, char out[STORAGE_NAME_SIZE])
{
    (void)snprintf(out, STORAGE_NAME_SIZE, TOTAL "%s", point);
}

uint64_t storage_carried(const struct storage *st, int fd)
{
    uint64_t bytes = 0;
    bool known = storage_counts_writers(st) &&
                 fgetxattr(fd, CARRIED, &bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes);
    return known ? le64toh(bytes) : 0;
}

uint64_t storage_room(const struct storage *st, int fd, uint64_t disk_bytes)
{
    uint64_t carried = storage_carried(st, fd);
    if (disk_bytes > carried + ROOM_MIN)
        return disk_bytes - carried;
    return disk_bytes < ROOM_MIN ? disk_bytes : ROOM_MIN;
}

int storage_note_total(const struct storage *st, int dir, const char *point, const char *of,
                       uint64_t bytes, struct err *err)
{
    struct total total = { .bytes = htole64(bytes) };
    char name[STORAGE_NAME_SIZE];
    if (!storage_counts_writers(st))
        return 0;
    total_name(point, name);
    (void)snprintf(total.of, sizeof(total.of), "%s", of);
    if (fsetxattr(dir, name, &total, sizeof(total), 0) < 0)
        return err_set(err, errno, "cannot write down how much checkpoint '%s' holds", point);
    return 0;
}

void storage_forget_total(const struct storage *st, int dir, const char *point)
{
    char name[STORAGE_NAME_SIZE];
    total_name(point, name);
    if (storage_counts_writers(st))
        (void)fremovexattr(dir, name);
}

int storage_carry(const struct storage *st, int copy_fd, int dir, const char *point, const char *id,
                  bool counted, struct err *err)
{
    struct total total = { 0 }; /* of an earlier version's: not known */
    char name[STORAGE_NAME_SIZE];
    if (!storage_counts_writers(st))
        return 0;
    total_name(point, name);
    if (fgetxattr(dir, name, &total, sizeof(total)) < 0 && errno != ENODATA)
        return err_set(err, errno, "cannot read how much checkpoint '%s' holds", point);
    if (counted && strncmp(total.of, id, sizeof(total.of)) == 0)
        return 0;
    if (fsetxattr(copy_fd, CARRIED, &total.bytes, sizeof(total.bytes), 0) < 0)
        return err_set(err, errno, "cannot write down how much a copy carries");
    return 0;
}

/* Memory of checkpoints: pool/memory/<id>, a subvolume with CRIU's images as plain files. It has a
 * name of its own only when it is whole. */
#include "keeper/storage_memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "keeper/storage_private.h"
#include "kernel/btrfs.h"

#define DIR_NAME "memory"
#define NAME_SIZE (ID_SIZE + 8)

static int open_all(struct storage *st)
{
    int pool = st->pool;
    if (mkdirat(pool, DIR_NAME, 0700) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(pool, DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_one(int all, const char *name)
{
    int fd = openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int storage_memory(struct storage *st, const char *point, int *ret_fd, struct err *err)
{
    _cleanup_fd_ int all = open_all(st);
    int fd = all < 0 ? all : open_one(all, point);
    if (fd < 0)
        return err_fail_as(err, -fd, FAIL_CHECKPOINT_NOT_FOUND,
                           "the memory of checkpoint '%s' is not stored here", point);
    *ret_fd = fd;
    return 0;
}

int storage_memory_begin(struct storage *st, const char *point, int *ret_fd, struct err *err)
{
    char part[NAME_SIZE];
    (void)snprintf(part, sizeof(part), "%s%s", point, PART_SUFFIX);
    _cleanup_fd_ int all = open_all(st);
    if (all < 0)
        return err_set(err, -all, "cannot open the pool's memory");
    int r = storage_move_to_trash(st, all, part, err);
    if (r == 0)
        r = btrfs_subvol_create(all, part, err);
    int fd = r < 0 ? r : open_one(all, part);
    if (r == 0 && fd < 0)
        r = err_set(err, -fd, "cannot open '%s'", part);
    if (r == 0)
        *ret_fd = fd;
    return r;
}

/* Who brings it back reads it as somebody else, from descriptors: no path leads here. */
static int open_up(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    int r = !d || fchmod(dir, 0755) < 0 ? -errno : 0;
    for (struct dirent *e; r == 0 && d && (e = readdir(d));)
        if (e->d_name[0] != '.' && fchmodat(dir, e->d_name, 0644, 0) < 0)
            r = -errno;
    if (d)
        (void)closedir(d);
    return r;
}

int storage_memory_commit(struct storage *st, const char *point, struct err *err)
{
    char part[NAME_SIZE];
    (void)snprintf(part, sizeof(part), "%s%s", point, PART_SUFFIX);
    _cleanup_fd_ int all = open_all(st);
    _cleanup_fd_ int dir = all < 0 ? all : open_one(all, part);
    int r = dir < 0 ? dir : open_up(dir);
    if (r < 0)
        return err_set(err, -r, "cannot finish the memory of '%s'", point);
    if (all < 0 || renameat2(all, part, all, point, RENAME_NOREPLACE) < 0)
        return err_set(err, all < 0 ? -all : errno, "cannot name the memory of '%s'", point);
    return 0;
}

void storage_memory_abort(struct storage *st, const char *point)
{
    char part[NAME_SIZE];
    (void)snprintf(part, sizeof(part), "%s%s", point, PART_SUFFIX);
    _cleanup_fd_ int all = open_all(st);
    if (all >= 0)
        (void)storage_move_to_trash(st, all, part, NULL);
}

bool storage_memory_is_unfinished(struct storage *st, const char *point)
{
    char part[NAME_SIZE];
    (void)snprintf(part, sizeof(part), "%s%s", point, PART_SUFFIX);
    _cleanup_fd_ int all = open_all(st);
    return all >= 0 && faccessat(all, part, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int storage_memory_trash(struct storage *st, const char *point, struct err *err)
{
    _cleanup_fd_ int all = open_all(st);
    return all < 0 ? 0 : storage_move_to_trash(st, all, point, err);
}

uint64_t storage_memory_bytes(int fd)
{
    uint64_t bytes = 0;
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    struct stat sb;
    for (struct dirent *e; d && (e = readdir(d));)
        if (fstatat(fd, e->d_name, &sb, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(sb.st_mode))
            bytes += (uint64_t)sb.st_size;
    if (d)
        (void)closedir(d);
    return bytes;
}

void storage_memory_drop_unfinished(struct storage *st)
{
    _cleanup_fd_ int all = open_all(st), points = open_one(st->pool, "points");
    int copy = all < 0 ? -1 : openat(all, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    struct stat sb;
    for (struct dirent *e; d && points >= 0 && (e = readdir(d));)
        if (e->d_name[0] != '.' && fstatat(points, e->d_name, &sb, AT_SYMLINK_NOFOLLOW) < 0 &&
            errno == ENOENT)
            (void)storage_move_to_trash(st, all, e->d_name, NULL);
    if (d)
        (void)closedir(d);
}

#include "keeper/storage_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "kernel/btrfs.h"
#include "wire/keeper.h"

#define LOG_MODULE "storage"

static int open_dir(int parent, const char *name, struct err *err)
{
    if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s'", name);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_set(err, errno, "cannot open '%s'", name) : fd;
}

static int open_dirs(struct storage *st, struct err *err)
{
    if ((st->images = open_dir(st->pool, "images", err)) < 0)
        return st->images;
    if ((st->boxes = open_dir(st->pool, "boxes", err)) < 0)
        return st->boxes;
    if ((st->points = open_dir(st->pool, "points", err)) < 0)
        return st->points;
    if ((st->volumes = open_dir(st->pool, "volumes", err)) < 0)
        return st->volumes;
    if ((st->volume_points = open_dir(st->pool, "volume-points", err)) < 0)
        return st->volume_points;
    if ((st->spool = open_dir(st->pool, "spool", err)) < 0)
        return st->spool;
    if ((st->empty = open_dir(st->pool, "empty", err)) < 0)
        return st->empty;
    if (fchmod(st->empty, 0755) < 0) /* users of a cell walk through it */
        return err_set(err, errno, "cannot open the empty tree");
    if ((st->trash = open_dir(st->pool, "trash", err)) < 0)
        return st->trash;
    return 0;
}

void storage_mend_quota(const struct storage *st)
{
    int r = st->quota && !st->simple_quota ? btrfs_quota_mend(st->pool) : 0;
    if (r > 0)
        log_warn("disk limits did not hold for a while: the kernel had lost count, it counts anew");
    else if (r < 0)
        log_warn("disk limits may not hold: cannot have the kernel count err=%s", strerror(-r));
}

int storage_open(const char *data_dir, struct storage **ret_st, struct err *err)
{
    _cleanup_(storage_freep) struct storage *st = calloc(1, sizeof(*st));
    if (!st)
        return err_set(err, ENOMEM, "cannot allocate the storage");
    st->pool = st->images = st->boxes = st->points = st->volumes = st->empty = st->trash = -1;
    st->volume_points = st->spool = -1;
    int r = storage_pool_mount(st, data_dir, err);
    if (r < 0)
        return r;
    struct err quota = ERR_INIT;
    st->quota = btrfs_quota_enable(st->pool, &st->simple_quota, &quota) == 0;
    if (!st->quota)
        log_warn("no disk limits: %s err=%s", quota.msg, strerror(quota.code));
    r = open_dirs(st, err);
    if (r < 0)
        return r;
    storage_volumes_leave_groups(st);
    storage_mend_quota(st);
    *ret_st = take_ptr(st);
    return 0;
}

int storage_reopen(struct storage *st, struct err *err)
{
    st->pool = open(st->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return st->pool < 0 ? err_set(err, errno, "cannot open '%s'", st->path) : open_dirs(st, err);
}

static int compare_fds(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

void storage_close_others(const struct storage *st, int also)
{
    int kept[] = { st->pool,          st->images, st->boxes, st->points, st->volumes,
                   st->volume_points, st->spool,  st->empty, st->trash,  also };
    int from = STDERR_FILENO + 1;
    qsort(kept, ARRAY_LEN(kept), sizeof(kept[0]), compare_fds);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        if (kept[i] < from)
            continue;
        if (kept[i] > from)
            (void)close_range((unsigned)from, (unsigned)kept[i] - 1, 0);
        from = kept[i] + 1;
    }
    (void)close_range((unsigned)from, ~0u, 0);
}

void storage_free(struct storage *st)
{
    if (!st)
        return;
    fd_close_all(&st->images, 1);
    fd_close_all(&st->boxes, 1);
    fd_close_all(&st->points, 1);
    fd_close_all(&st->volumes, 1);
    fd_close_all(&st->volume_points, 1);
    fd_close_all(&st->spool, 1);
    fd_close_all(&st->empty, 1);
    fd_close_all(&st->trash, 1);
    fd_close_all(&st->pool, 1);
    free(st->dead.p);
    free(st);
}

const char *storage_path(const struct storage *st)
{
    return st->path;
}

bool storage_counts_writers(const struct storage *st)
{
    return st->quota && st->simple_quota;
}

void storage_facts(const struct storage *st, struct storage_facts *ret_facts)
{
    *ret_facts = (struct storage_facts){
        .own_image = st->own_image,
        .quota = st->quota,
        .simple_quota = st->simple_quota,
    };
}

void storage_room_left(const struct storage *st, struct keeper_room *ret_room)
{
    struct statvfs vfs = { 0 };
    struct btrfs_space s = { 0 };
    (void)fstatvfs(st->pool, &vfs);
    (void)btrfs_space(st->pool, &s);
    *ret_room = (struct keeper_room){
        .pool_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize,
        .pool_free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize,
        .data_bytes = s.data_size,
        .data_used_bytes = s.data_used,
        .metadata_bytes = s.metadata_size,
        .metadata_used_bytes = s.metadata_used,
        .metadata_kept_bytes = s.mixed ? 0 : s.metadata_kept,
        .unallocated_bytes = s.unallocated,
    };
}

int storage_part_name(const char *tree, char out[STORAGE_NAME_SIZE])
{
    return snprintf(out, STORAGE_NAME_SIZE, "%s%s", tree, PART_SUFFIX) >= STORAGE_NAME_SIZE
               ? -ENAMETOOLONG
               : 0;
}

int storage_each_in(int dirfd, int (*fn)(const char *name, void *arg), void *arg)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return -errno;
    int r = 0;
    for (struct dirent *e; r >= 0 && (e = readdir(d));)
        if (e->d_name[0] != '.')
            r = fn(e->d_name, arg);
    (void)closedir(d);
    return r;
}

int storage_each(struct storage *st, enum storage_kind kind, int (*fn)(const char *name, void *arg),
                 void *arg)
{
    const int dirs[] = { [STORAGE_BOXES] = st->boxes,
                         [STORAGE_IMAGES] = st->images,
                         [STORAGE_VOLUMES] = st->volumes,
                         [STORAGE_POINTS] = st->points,
                         [STORAGE_VOLUME_POINTS] = st->volume_points,
                         [STORAGE_SPOOLS] = st->spool };
    return storage_each_in(dirs[kind], fn, arg);
}

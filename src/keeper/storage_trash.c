/* The trash: what is moved there is gone to everybody, and deleted later by the sweeper. What was begun
 * and never finished ends there too. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "keeper/storage_memory.h"
#include "keeper/storage_private.h"
#include "kernel/btrfs.h"

#define LOG_MODULE "storage"
#define DEAD_MAX 65536        /* some minutes' deletions */
#define STRIKE_EVERY_MS 60000 /* twice the time after which btrfs writes its books */
#define TIGHT_PART 16         /* less than this part of the pool is free */

static void note_dead(struct entries *e, uint64_t entry)
{
    if (e->n == e->size) {
        size_t size = e->size ? e->size * 2 : 64;
        uint64_t *p = size > DEAD_MAX ? NULL : realloc(e->p, size * sizeof(*p));
        if (!p)
            return; /* its quota entry stays: a few bytes */
        e->p = p;
        e->size = size;
    }
    e->p[e->n++] = entry;
}

/* ---- throwing away ---- */

static int open_subvolume(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Moving a subvolume changes its "..", which a read-only one refuses. */
static bool make_writable(int dir, const char *name)
{
    _cleanup_fd_ int fd = open_subvolume(dir, name);
    return fd >= 0 && btrfs_subvol_set_readonly(fd, false, NULL) == 0;
}

static void on_nested_gone(uint64_t inner, void *arg)
{
    struct storage *st = arg;
    if (st->quota && !st->simple_quota)
        note_dead(&st->dead, inner);
}

/* Taking a subvolume out of another writes to that one, which may be full to its limit. */
static void lift_limits(int dir, uint64_t outer, int levels)
{
    (void)btrfs_quota_limit_by(dir, outer, UINT64_MAX, NULL);
    for (uint64_t inner = 0; levels > 0 && btrfs_subvol_nested(dir, outer, inner, &inner) == 0;)
        lift_limits(dir, inner, levels - 1);
}

/* Delete a subvolume and those inside it, which sandboxes could make under an earlier version. */
static int delete_whole(struct storage *st, int dir, const char *name, struct err *err)
{
    int r = btrfs_subvol_delete(dir, name, err);
    if (r != -ENOTEMPTY)
        return r;
    uint64_t outer = 0;
    _cleanup_fd_ int fd = open_subvolume(dir, name);
    if (fd < 0 || btrfs_quota_entry(fd, &outer) < 0)
        return r;
    lift_limits(dir, outer, STORAGE_NESTED_MAX);
    r = btrfs_subvol_delete_nested(dir, outer, on_nested_gone, st, err);
    return r < 0 ? r : btrfs_subvol_delete(dir, name, err);
}

int storage_move_to_trash(struct storage *st, int from, const char *name, struct err *err)
{
    char unique[ID_SIZE];
    int r = id_random(unique);
    if (r < 0)
        return err_set(err, -r, "cannot get random bytes");
    if (renameat(from, name, st->trash, unique) == 0 || errno == ENOENT)
        return 0;
    if (errno == EROFS && make_writable(from, name) && renameat(from, name, st->trash, unique) == 0)
        return 0;
    r = err_set(err, errno, "cannot throw '%s' away", name);
    /* A full filesystem moves nothing, but deletes: for that it keeps a reserve. */
    return r == -ENOSPC && delete_whole(st, from, name, NULL) == 0 ? 0 : r;
}

/* Making a copy of a subvolume writes out what is dirty of it, and of nothing else; its books are then closed too. */
int storage_flush(struct storage *st, int subvolume_fd, struct err *err)
{
    char unique[ID_SIZE];
    int r = id_random(unique);
    if (r < 0)
        return err_set(err, -r, "cannot get random bytes");
    return btrfs_subvol_snapshot(st->trash, unique, subvolume_fd, false, err);
}

struct parts_of {
    struct storage *st;
    int dir;
};

static int drop_if_part(const char *name, void *arg)
{
    struct parts_of *of = arg;
    size_t n = strlen(name), suffix = strlen(PART_SUFFIX);
    if (n > suffix && strcmp(name + n - suffix, PART_SUFFIX) == 0)
        (void)storage_move_to_trash(of->st, of->dir, name, NULL);
    return 0;
}

void storage_drop_unfinished(struct storage *st)
{
    storage_memory_drop_unfinished(st);
    struct parts_of images = { st, st->images }, volumes = { st, st->volumes };
    struct parts_of boxes = { st, st->boxes }, points = { st, st->points };
    (void)storage_each_in(st->boxes, drop_if_part, &boxes);
    (void)storage_each_in(st->points, drop_if_part, &points);
    (void)storage_each_in(st->images, drop_if_part, &images);
    (void)storage_each_in(st->volumes, drop_if_part, &volumes);
}

static void strike_dead(struct storage *st)
{
    struct entries *e = &st->dead;
    int64_t now = clock_mono_ms();
    if (e->n == 0 || now - e->tried_ms < STRIKE_EVERY_MS)
        return;
    size_t left = 0;
    for (size_t i = 0; i < e->n; i++)
        if (btrfs_quota_strike(st->trash, e->p[i]) == -EBUSY)
            e->p[left++] = e->p[i];
    e->n = left;
    e->tried_ms = now;
}

static int delete_one(const char *name, void *arg)
{
    struct storage *st = arg;
    struct err err = ERR_INIT;
    uint64_t entry = 0;
    if (st->quota && !st->simple_quota) {
        _cleanup_fd_ int fd = openat(st->trash, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            (void)btrfs_quota_entry(fd, &entry);
    }
    if (delete_whole(st, st->trash, name, &err) < 0)
        log_warn("left in the trash: %s err=%s", err.msg, strerror(err.code));
    else if (entry)
        note_dead(&st->dead, entry);
    if (storage_group_entry(st, name, &entry))
        note_dead(&st->dead, entry);
    return 0;
}

bool storage_is_tight(const struct storage *st)
{
    struct statvfs vfs;
    return fstatvfs(st->pool, &vfs) == 0 && vfs.f_bavail < vfs.f_blocks / TIGHT_PART;
}

void storage_empty_trash(struct storage *st)
{
    (void)storage_each_in(st->trash, delete_one, st);
    strike_dead(st);
    storage_mend_quota(st);
    /* Who deletes to make room looks for it next. */
    int r = storage_is_tight(st) ? btrfs_reclaim(st->pool) : 0;
    if (r < 0)
        log_warn("what was deleted is freed later err=%s", strerror(-r));
}

#include "keeper/storage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "kernel/btrfs.h"
#include "kernel/loop.h"
#include "kernel/mount.h"
#include "wire/keeper.h"

#define LOG_MODULE "storage"
#define POOL_MIN_BYTES (1024ull * 1024 * 1024)
#define POOL_SHARE_PERCENT 80                        /* of what is free; the file is sparse */
#define IMAGE_MAX_BYTES (64ull * 1024 * 1024 * 1024) /* one image; keeps a bomb off the pool */
#define PART_SUFFIX ".part"
#define NAME_SIZE 128
#define DEAD_MAX 65536        /* some minutes' deletions */
#define STRIKE_EVERY_MS 60000 /* twice the time after which btrfs writes its books */

/* Entries in the full quotas' books of subvolumes that are gone. The kernel lets go of one only
 * after it has written it as empty, so they are kept until a later round. */
struct entries {
    uint64_t *p;
    size_t n, size;
    int64_t tried_ms;
};

struct storage {
    int pool, images, boxes, volumes, empty, trash;
    bool own_image, quota, simple_quota;
    struct entries dead;
    char path[PATH_MAX];
};

/* ---- the pool ---- */

static int make_filesystem(const char *file, struct err *err)
{
    static const char *const program = "mkfs.btrfs";
    char *argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t) "-q",
                     (char *)(uintptr_t) "-m",   (char *)(uintptr_t) "single",
                     (char *)(uintptr_t) "-L",   (char *)(uintptr_t) "warren",
                     (char *)(uintptr_t)file,    NULL };
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    int r = posix_spawnp(&pid, program, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        return err_set(err, r, "cannot run mkfs.btrfs (install the package btrfs-progs)");
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, EIO, "mkfs.btrfs failed on '%s'", file);
    return 0;
}

/* The file gets its name only when it holds a filesystem: a keeper killed in between starts over. */
static int make_pool_file(const char *data_dir, const char *file, struct err *err)
{
    struct statvfs vfs;
    if (statvfs(data_dir, &vfs) < 0)
        return err_set(err, errno, "cannot look at '%s'", data_dir);
    uint64_t size = (uint64_t)vfs.f_bavail * vfs.f_frsize / 100 * POOL_SHARE_PERCENT;
    if (size < POOL_MIN_BYTES)
        return err_name(err, ENOSPC, "no_space", "'%s' has less than %llu MiB to spare", data_dir,
                        POOL_MIN_BYTES * 100 / POOL_SHARE_PERCENT >> 20);
    char part[PATH_MAX + 8];
    if (snprintf(part, sizeof(part), "%s%s", file, PART_SUFFIX) >= (int)sizeof(part))
        return err_set(err, ENAMETOOLONG, "'%s' is too long", file);
    _cleanup_fd_ int fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)(size & ~0xfffffULL)) < 0)
        return err_set(err, errno, "cannot make '%s'", part);
    log_info("making the storage pool file=\"%s\" size_mb=%llu", file,
             (unsigned long long)(size >> 20));
    int r = make_filesystem(part, err);
    if (r == 0 && rename(part, file) < 0)
        r = err_set(err, errno, "cannot name '%s'", file);
    if (r < 0)
        (void)unlink(part);
    return r;
}

static int mount_pool_file(const char *file, const char *at, struct err *err)
{
    char device[LOOP_PATH_SIZE];
    _cleanup_fd_ int loop = -1, fs = -1, target = -1;
    int r = loop_attach(file, device, &loop, err);
    if (r < 0)
        return r;
    const struct mount_option options[] = { { "source", device }, { "discard", "async" } };
    /* nodev, nosuid: files keep the ids they have inside, root's among them. */
    r = mount_new("btrfs", options, ARRAY_LEN(options),
                  MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME, &fs, err);
    if (r < 0)
        return r;
    target = open(at, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (target < 0)
        return err_set(err, errno, "cannot open '%s'", at);
    return mount_place(fs, target, err);
}

static int open_dir(int parent, const char *name, struct err *err)
{
    if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s'", name);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_set(err, errno, "cannot open '%s'", name) : fd;
}

static int mount_pool(struct storage *st, const char *data_dir, struct err *err)
{
    char file[PATH_MAX];
    const char *at = st->path;
    if (snprintf(file, sizeof(file), "%s/pool.img", data_dir) >= (int)sizeof(file) ||
        snprintf(st->path, sizeof(st->path), "%s/pool", data_dir) >= (int)sizeof(st->path))
        return err_set(err, ENAMETOOLONG, "'%s' is too long", data_dir);
    if (mkdir(at, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s'", at);
    _cleanup_fd_ int plain = open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (plain < 0)
        return err_set(err, errno, "cannot open '%s'", at);
    struct stat sb;
    st->own_image = !btrfs_is(plain) || stat(file, &sb) == 0;
    if (st->own_image) {
        int r = stat(file, &sb) < 0 ? make_pool_file(data_dir, file, err) : 0;
        if (r == 0)
            r = mount_pool_file(file, at, err);
        if (r < 0)
            return err_wrap(err, r, "storage pool");
    }
    st->pool = open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return st->pool < 0 ? err_set(err, errno, "cannot open '%s'", at) : 0;
}

int storage_open(const char *data_dir, struct storage **ret_st, struct err *err)
{
    _cleanup_(storage_freep) struct storage *st = calloc(1, sizeof(*st));
    if (!st)
        return err_set(err, ENOMEM, "cannot allocate the storage");
    st->pool = st->images = st->boxes = st->volumes = st->empty = st->trash = -1;
    int r = mount_pool(st, data_dir, err);
    if (r < 0)
        return r;
    struct err quota = ERR_INIT;
    st->quota = btrfs_quota_enable(st->pool, &st->simple_quota, &quota) == 0;
    if (!st->quota)
        log_warn("no disk limits: %s err=%s", quota.msg, strerror(quota.code));
    if ((st->images = open_dir(st->pool, "images", err)) < 0)
        return st->images;
    if ((st->boxes = open_dir(st->pool, "boxes", err)) < 0)
        return st->boxes;
    if ((st->volumes = open_dir(st->pool, "volumes", err)) < 0)
        return st->volumes;
    if ((st->empty = open_dir(st->pool, "empty", err)) < 0)
        return st->empty;
    if (fchmod(st->empty, 0755) < 0) /* users of a cell walk through it */
        return err_set(err, errno, "cannot open the empty tree");
    if ((st->trash = open_dir(st->pool, "trash", err)) < 0)
        return st->trash;
    *ret_st = take_ptr(st);
    return 0;
}

void storage_free(struct storage *st)
{
    if (!st)
        return;
    fd_close_all(&st->images, 1);
    fd_close_all(&st->boxes, 1);
    fd_close_all(&st->volumes, 1);
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

void storage_facts(const struct storage *st, struct storage_facts *ret_facts)
{
    struct statvfs vfs = { 0 };
    (void)fstatvfs(st->pool, &vfs);
    *ret_facts = (struct storage_facts){
        .own_image = st->own_image,
        .quota = st->quota,
        .simple_quota = st->simple_quota,
        .total_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize,
        .free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize,
    };
}

/* ---- boxes ---- */

static int fill_box(struct storage *st, int box, uint64_t disk_bytes, struct err *err)
{
    if (mkdirat(box, "upper", 0755) < 0 || mkdirat(box, "work", 0700) < 0)
        return err_set(err, errno, "cannot make a sandbox's directories");
    return st->quota && disk_bytes ? btrfs_quota_limit(box, disk_bytes, err) : 0;
}

int storage_box(struct storage *st, const char *id, uint64_t disk_bytes, int *ret_fd,
                struct err *err)
{
    int fd = openat(st->boxes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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
    _cleanup_fd_ int box = openat(st->boxes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = box < 0 ? err_set(err, errno, "cannot open box '%s'", id)
                : fill_box(st, box, disk_bytes, err);
    if (r < 0) {
        (void)btrfs_subvol_delete(st->boxes, id, NULL);
        return r;
    }
    *ret_fd = take_fd(box);
    return 0;
}

static int open_box(struct storage *st, const char *id)
{
    return openat(st->boxes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int storage_box_limit(struct storage *st, const char *id, uint64_t disk_bytes, struct err *err)
{
    if (!st->quota)
        return 0;
    _cleanup_fd_ int fd = open_box(st, id);
    if (fd < 0)
        return err_set(err, errno, "cannot open box '%s'", id);
    return btrfs_quota_limit(fd, disk_bytes, err);
}

int storage_box_upper(struct storage *st, const char *id, int *ret_fd, struct err *err)
{
    _cleanup_fd_ int box = open_box(st, id);
    int fd = box < 0 ? -1 : openat(box, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open the files of '%s'", id);
    *ret_fd = fd;
    return 0;
}

uint64_t storage_box_used(struct storage *st, const char *id)
{
    _cleanup_fd_ int fd = open_box(st, id);
    uint64_t bytes = 0;
    if (fd >= 0)
        (void)btrfs_quota_used(fd, &bytes);
    return bytes;
}

static int move_to_trash(struct storage *st, int from, const char *name, struct err *err)
{
    char unique[ID_SIZE];
    int r = id_random(unique);
    if (r < 0)
        return err_set(err, -r, "cannot get random bytes");
    if (renameat(from, name, st->trash, unique) < 0 && errno != ENOENT)
        return err_set(err, errno, "cannot throw '%s' away", name);
    return 0;
}

int storage_box_trash(struct storage *st, const char *id, struct err *err)
{
    return move_to_trash(st, st->boxes, id, err);
}

/* ---- images ---- */

int storage_image(struct storage *st, const char *tree, int *ret_fd, struct err *err)
{
    bool none = strcmp(tree, KEEPER_IMAGE_NONE) == 0;
    int fd = openat(none ? st->empty : st->images, none ? "." : tree,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_name(err, errno, "image_not_found", "image tree '%.12s' is not stored here",
                        tree);
    *ret_fd = fd;
    return 0;
}

static int part_name(const char *tree, char out[NAME_SIZE])
{
    return snprintf(out, NAME_SIZE, "%s%s", tree, PART_SUFFIX) >= NAME_SIZE ? -ENAMETOOLONG : 0;
}

static int make_tree(struct storage *st, const char *part, const char *parent, struct err *err)
{
    if (!*parent)
        return btrfs_subvol_create(st->images, part, err);
    _cleanup_fd_ int fd = -1;
    int r = storage_image(st, parent, &fd, err);
    return r < 0 ? r : btrfs_subvol_snapshot(st->images, part, fd, err);
}

int storage_image_begin(struct storage *st, const char *tree, const char *parent, int *ret_fd,
                        struct err *err)
{
    char part[NAME_SIZE];
    int r = part_name(tree, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", tree);
    r = make_tree(st, part, parent, err);
    if (r < 0)
        return r;
    int fd = openat(st->images, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s'", part);
    if (st->quota)
        (void)btrfs_quota_limit(fd, IMAGE_MAX_BYTES, NULL);
    *ret_fd = fd;
    return 0;
}

int storage_image_commit(struct storage *st, const char *tree, struct err *err)
{
    char part[NAME_SIZE];
    int r = part_name(tree, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", tree);
    _cleanup_fd_ int fd = openat(st->images, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s'", part);
    /* An image that was acknowledged is there after a power cut. */
    if (syncfs(fd) < 0)
        return err_set(err, errno, "cannot write the image out");
    if (renameat2(st->images, part, st->images, tree, RENAME_NOREPLACE) < 0)
        return err_set(err, errno, "cannot name image tree '%s'", tree);
    return btrfs_subvol_set_readonly(fd, true, err);
}

void storage_image_abort(struct storage *st, const char *tree)
{
    char part[NAME_SIZE];
    if (part_name(tree, part) == 0)
        (void)move_to_trash(st, st->images, part, NULL);
}

int storage_image_trash(struct storage *st, const char *tree, struct err *err)
{
    /* What is read-only cannot be moved to another directory: that changes its "..". */
    _cleanup_fd_ int fd = openat(st->images, tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 ? 0 : btrfs_subvol_set_readonly(fd, false, err);
    return r < 0 ? r : move_to_trash(st, st->images, tree, err);
}

/* ---- volumes ---- */

int storage_volume(struct storage *st, const char *id, int *ret_fd, struct err *err)
{
    int fd = openat(st->volumes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_name(err, errno, "volume_not_found", "volume '%s' is not stored here", id);
    *ret_fd = fd;
    return 0;
}

/* It gets its name when it is as it should be, so one that a keeper's death cut off is not taken
 * for a whole one. Everybody may write in it: it is no user's, and sandboxes differ in theirs. */
static int make_volume(struct storage *st, const char *id, uint64_t disk_bytes, struct err *err)
{
    char part[NAME_SIZE];
    int r = part_name(id, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", id);
    r = move_to_trash(st, st->volumes, part, err);
    if (r == 0)
        r = btrfs_subvol_create(st->volumes, part, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int fd =
        openat(st->volumes, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, 0777) < 0)
        return err_set(err, errno, "cannot open volume '%s'", id);
    r = st->quota ? btrfs_quota_limit(fd, disk_bytes, err) : 0;
    if (r == 0 && renameat2(st->volumes, part, st->volumes, id, RENAME_NOREPLACE) < 0)
        r = err_set(err, errno, "cannot name volume '%s'", id);
    /* A volume that was acknowledged is there after a power cut. */
    if (r == 0 && syncfs(fd) < 0)
        r = err_set(err, errno, "cannot write volume '%s' out", id);
    return r;
}

int storage_volume_put(struct storage *st, const char *id, uint64_t disk_bytes, struct err *err)
{
    _cleanup_fd_ int fd = openat(st->volumes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return make_volume(st, id, disk_bytes, err);
    return st->quota ? btrfs_quota_limit(fd, disk_bytes, err) : 0;
}

uint64_t storage_volume_used(struct storage *st, const char *id)
{
    _cleanup_fd_ int fd = openat(st->volumes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    uint64_t bytes = 0;
    if (fd >= 0)
        (void)btrfs_quota_used(fd, &bytes);
    return bytes;
}

int storage_volume_trash(struct storage *st, const char *id, struct err *err)
{
    return move_to_trash(st, st->volumes, id, err);
}

/* ---- all of them ---- */

static int each_in(int dirfd, int (*fn)(const char *name, void *arg), void *arg)
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
    const int dirs[] = {
        [STORAGE_BOXES] = st->boxes, [STORAGE_IMAGES] = st->images, [STORAGE_VOLUMES] = st->volumes
    };
    return each_in(dirs[kind], fn, arg);
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
        (void)move_to_trash(of->st, of->dir, name, NULL);
    return 0;
}

void storage_drop_unfinished(struct storage *st)
{
    struct parts_of images = { st, st->images }, volumes = { st, st->volumes };
    (void)each_in(st->images, drop_if_part, &images);
    (void)each_in(st->volumes, drop_if_part, &volumes);
}

static void note_dead(struct entries *e, uint64_t entry)
{
    if (e->n == e->size) {
        size_t size = e->size ? e->size * 2 : 64;
        uint64_t *p = size > DEAD_MAX ? NULL : realloc(e->p, size * sizeof(*p));
        if (!p)
            return; /* it stays in the books: a few bytes */
        e->p = p;
        e->size = size;
    }
    e->p[e->n++] = entry;
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
    if (btrfs_subvol_delete(st->trash, name, &err) < 0)
        log_warn("left in the trash: %s err=%s", err.msg, strerror(err.code));
    else if (entry)
        note_dead(&st->dead, entry);
    return 0;
}

void storage_empty_trash(struct storage *st)
{
    (void)each_in(st->trash, delete_one, st);
    strike_dead(st);
}

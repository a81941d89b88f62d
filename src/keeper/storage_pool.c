/* The pool: the btrfs that everything lies on, the data directory's own or an image file of ours. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "keeper/storage_private.h"
#include "kernel/btrfs.h"
#include "kernel/loop.h"
#include "kernel/mount.h"

#define LOG_MODULE "storage"
#define POOL_MIN_BYTES (1024ull * 1024 * 1024)
#define POOL_SHARE_PERCENT 80 /* of what is free; the file is sparse */
/* In a small one data could take every piece before there is room for metadata, and nothing could be copied or
 * moved any more, not even after a deletion: there both share their pieces. */
#define MIXED_POOL_BYTES (4ull * 1024 * 1024 * 1024)
#define LARGE_POOL_BYTES (50ll * 1024 * 1024 * 1024) /* btrfs takes 1 GiB at once from there on */

static int make_filesystem(const char *file, bool mixed, struct err *err)
{
    static const char *const program = "mkfs.btrfs";
    const char *kind = mixed ? "--mixed" : "--metadata=single";
    char *argv[] = { (char *)(uintptr_t)program,
                     (char *)(uintptr_t) "-q",
                     (char *)(uintptr_t)kind,
                     (char *)(uintptr_t) "-L",
                     (char *)(uintptr_t) "warren",
                     (char *)(uintptr_t)file,
                     NULL };
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
        return err_fail(err, FAIL_NO_SPACE, "'%s' has less than %llu MiB to spare", data_dir,
                        POOL_MIN_BYTES * 100 / POOL_SHARE_PERCENT >> 20);
    char part[PATH_MAX + 8];
    if (snprintf(part, sizeof(part), "%s%s", file, PART_SUFFIX) >= (int)sizeof(part))
        return err_set(err, ENAMETOOLONG, "'%s' is too long", file);
    _cleanup_fd_ int fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)(size & ~0xfffffULL)) < 0)
        return err_set(err, errno, "cannot make '%s'", part);
    log_info("making the storage pool file=\"%s\" size_mb=%llu", file,
             (unsigned long long)(size >> 20));
    int r = make_filesystem(part, size < MIXED_POOL_BYTES, err);
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
    /* Room for metadata is set aside while there is any: a pool that data alone has filled could
     * neither move nor copy what is in it, and stay full. Large ones have larger pieces. */
    struct stat sb;
    bool large = stat(file, &sb) == 0 && sb.st_size > LARGE_POOL_BYTES;
    const struct mount_option options[] = { { "source", device },
                                            { "discard", "async" },
                                            { "metadata_ratio", large ? "32" : "4" } };
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

int storage_pool_mount(struct storage *st, const char *data_dir, struct err *err)
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

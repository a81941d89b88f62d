#include "cell/ns_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/mount.h"

/* Files that another sandbox wrote: none of them may raise rights here, or be a device. */
#define VOLUME_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

int ns_attach_prepare(pid_t pid, int dir_fd, bool read_only, int *ret_mount_fd, struct err *err)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    _cleanup_fd_ int userns = open(path, O_RDONLY | O_CLOEXEC);
    if (userns < 0)
        return err_set(err, errno, "cannot open the user namespace");
    return ns_attach_show(userns, dir_fd, read_only, ret_mount_fd, err);
}

int ns_attach_show(int userns, int dir_fd, bool read_only, int *ret_mount_fd, struct err *err)
{
    _cleanup_fd_ int mount = -1;
    int r = mount_clone(dir_fd, "", &mount, err);
    if (r == 0)
        r = mount_set_flags(mount, VOLUME_FLAGS | (read_only ? MOUNT_ATTR_RDONLY : 0), err);
    if (r == 0)
        r = mount_idmap(mount, userns, err);
    if (r == 0)
        *ret_mount_fd = take_fd(mount);
    return r;
}

static int make_parents(const char *path, struct err *err)
{
    char part[4096];
    if (strlen(path) >= sizeof(part))
        return err_set(err, ENAMETOOLONG, "'%s' is too long", path);
    const char *slash = path;
    do {
        slash = strchr(slash + 1, '/');
        size_t n = slash ? (size_t)(slash - path) : strlen(path);
        memcpy(part, path, n);
        part[n] = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return err_set(err, errno, "cannot make '%s'", part);
    } while (slash);
    return 0;
}

static bool same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int ns_attach(int pidfd, int mount_fd, const char *path, struct err *err)
{
    /* Both at once: with the first of them the right to the second would be gone. */
    if (setns(pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return err_set(err, errno, "cannot enter the sandbox");
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return err_set(err, errno, "cannot become root inside");
    (void)umask(022);
    int r = make_parents(path, err);
    if (r < 0)
        return r;
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_NO_MAGICLINKS };
    _cleanup_fd_ int target = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    if (target < 0)
        return err_set(err, errno, "cannot open '%s'", path);
    struct statx sx; /* asked of a server, not of what is remembered of it */
    if (statx(target, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MODE, &sx) < 0 &&
        errno == ENOTCONN) {
        (void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
        (void)close(take_fd(target));
        target = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
        if (target < 0)
            return err_set(err, errno, "cannot open '%s'", path);
    }
    return same_file(target, mount_fd) ? 0 : mount_place(mount_fd, target, err);
}

#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <mntent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FD_PATH_SIZE 48 /* "/proc/self/fd/N/upper" */
#define TRIM_MAX 4096   /* mounts let go of; a host with more keeps the rest */

int mount_clone(int dirfd, const char *path, int *ret_fd, struct err *err)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH;
    int fd = open_tree(dirfd, path, flags);
    if (fd < 0)
        return err_set(err, errno, "cannot clone the mount at '%s'", path);
    *ret_fd = fd;
    return 0;
}

int mount_idmap(int mount_fd, int userns_fd, struct err *err)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd };
    if (mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return err_set(err, errno, "cannot map a mount's ids");
    return 0;
}

int mount_set_flags(int mount_fd, uint64_t attrs, struct err *err)
{
    struct mount_attr attr = { .attr_set = attrs };
    if (mount_setattr(mount_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return err_set(err, errno, "cannot set a mount's flags");
    return 0;
}

/* The kernel leaves a sentence in the context for what errno cannot say. */
static int fs_failed(int fs, const char *type, const char *doing, struct err *err)
{
    int code = errno;
    char text[256];
    ssize_t n = read(fs, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return err_set(err, code, "cannot %s %s filesystem%s%s", doing, type, n > 0 ? ": " : "", text);
}

int mount_new(const char *type, const struct mount_option *options, size_t n, uint64_t attrs,
              int *ret_fd, struct err *err)
{
    _cleanup_fd_ int fs = fsopen(type, FSOPEN_CLOEXEC);
    if (fs < 0)
        return err_set(err, errno, "this kernel has no %s filesystem", type);
    for (size_t i = 0; i < n; i++) {
        unsigned cmd = options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
        if (fsconfig(fs, cmd, options[i].key, options[i].value, 0) < 0)
            return fs_failed(fs, type, "configure", err);
    }
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return fs_failed(fs, type, "make", err);
    int fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attrs);
    if (fd < 0)
        return err_set(err, errno, "cannot mount %s", type);
    *ret_fd = fd;
    return 0;
}

static int overlay(int lower_fd, int upper_fd, uint32_t ids, int *ret_fd, struct err *err)
{
    char lower[FD_PATH_SIZE], upper[FD_PATH_SIZE], work[FD_PATH_SIZE];
    (void)snprintf(lower, sizeof(lower), "/proc/self/fd/%d", lower_fd);
    (void)snprintf(upper, sizeof(upper), "/proc/self/fd/%d/upper", upper_fd);
    (void)snprintf(work, sizeof(work), "/proc/self/fd/%d/work", upper_fd);
    const struct mount_option options[] = {
        { "source", "warren" },
        { "lowerdir", lower },
        { "upperdir", upper },
        { "workdir", work },
        /* Whatever this kernel's defaults: a layer written from the upper directory (diff) knows
         * files, whiteouts and opaque directories, not renamed directories and files without data. */
        { "redirect_dir", "off" },
        { "metacopy", "off" },
    };
    /* Keeps its capabilities: the caller has set SECBIT_NO_SETUID_FIXUP. */
    (void)setfsuid(ids);
    (void)setfsgid(ids);
    int r = mount_new("overlay", options, ARRAY_LEN(options), MOUNT_ATTR_NODEV, ret_fd, err);
    (void)setfsuid(0);
    (void)setfsgid(0);
    return r;
}

/* Both layers hang on the one hook, the upper over the lower: their descriptors reach either. */
static int overlay_attached(int lower_fd, int upper_fd, const char *hook, uint32_t ids, int *ret_fd,
                            struct err *err)
{
    int r = mount_place_at(lower_fd, AT_FDCWD, hook, err);
    if (r < 0)
        return r;
    r = mount_place_at(upper_fd, AT_FDCWD, hook, err);
    if (r == 0) {
        r = overlay(lower_fd, upper_fd, ids, ret_fd, err);
        (void)umount2(hook, MNT_DETACH | UMOUNT_NOFOLLOW);
    }
    (void)umount2(hook, MNT_DETACH | UMOUNT_NOFOLLOW);
    return r;
}

int mount_overlay(int lower_fd, int upper_fd, const char *hook, uint32_t ids, int *ret_fd,
                  struct err *err)
{
    static bool must_attach; /* learned once: before Linux 6.15 */
    int r = must_attach ? -EINVAL : overlay(lower_fd, upper_fd, ids, ret_fd, err);
    if (r == -EINVAL) {
        r = overlay_attached(lower_fd, upper_fd, hook, ids, ret_fd, err);
        must_attach = r == 0;
    }
    return r;
}

int mount_place(int mount_fd, int target_fd, struct err *err)
{
    if (move_mount(mount_fd, "", target_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) <
        0)
        return err_set(err, errno, "cannot put a mount in its place");
    return 0;
}

int mount_place_at(int mount_fd, int dirfd, const char *path, struct err *err)
{
    struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                            .resolve = RESOLVE_NO_SYMLINKS };
    if (dirfd != AT_FDCWD)
        how.resolve |= RESOLVE_BENEATH;
    _cleanup_fd_ int target = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
    if (target < 0)
        return err_set(err, errno, "cannot open mount point '%s'", path);
    int r = mount_place(mount_fd, target, err);
    return r < 0 ? err_wrap(err, r, "'%s'", path) : 0;
}

int mount_bind(const char *source, const char *target, struct err *err)
{
    if (mount(source, target, NULL, MS_BIND, NULL) < 0)
        return err_set(err, errno, "cannot put a mount over '%s'", target);
    return 0;
}

int mount_own_namespace(struct err *err)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_set(err, errno, "cannot make a mount namespace (are you root?)");
    _cleanup_fd_ int tree =
        open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    _cleanup_fd_ int self = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (tree < 0 || self < 0)
        return err_set(err, errno, "cannot copy the root (is /proc mounted?)");
    if (setns(self, CLONE_NEWNS) < 0) /* leaves any chroot */
        return err_set(err, errno, "cannot reach the namespace's root");
    int r = mount_place_at(tree, AT_FDCWD, "/proc", err); /* a directory that every host has */
    if (r < 0)
        return r;
    if (fchdir(tree) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return err_set(err, errno, "cannot make the root our own");
    return 0;
}

static bool holds(const char *dir, const char *path)
{
    size_t n = strlen(dir);
    return strcmp(dir, "/") == 0 ||
           (strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0'));
}

static bool is_needed(const struct mntent *m, const char *const *keep, size_t n)
{
    if (strncmp(m->mnt_type, "cgroup", strlen("cgroup")) == 0 ||
        holds(m->mnt_dir, "/sys/fs/cgroup"))
        return true;
    for (size_t i = 0; i < n; i++)
        if (holds(m->mnt_dir, keep[i]))
            return true;
    return false;
}

void mount_trim(const char *const *keep, size_t n)
{
    char *drop[TRIM_MAX];
    size_t ndrop = 0;
    FILE *f = setmntent("/proc/self/mounts", "re");
    struct mntent m;
    char line[4096];
    while (f && ndrop < TRIM_MAX && getmntent_r(f, &m, line, (int)sizeof(line)))
        if (!is_needed(&m, keep, n) && (drop[ndrop] = strdup(m.mnt_dir)))
            ndrop++;
    if (f)
        (void)endmntent(f);
    while (ndrop > 0) { /* the newest first: it may lie on an older one */
        (void)umount2(drop[--ndrop], MNT_DETACH | UMOUNT_NOFOLLOW);
        free(drop[ndrop]);
    }
}

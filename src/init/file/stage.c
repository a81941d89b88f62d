#include "init/file/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/placed.h"
#include "init/file/self.h"

#define TRIES 16 /* a random name that is taken is a wonder; two are someone's doing */
#define RENAME_NOREPLACE_ 1

void stage_random_name(char out[STAGE_NAME_MAX])
{
    uint64_t random[2] = { 0 };
    (void)!getrandom(random, sizeof(random), 0);
    (void)snprintf(out, STAGE_NAME_MAX, ".~%012llx%012llx",
                   (unsigned long long)random[0] & 0xffffffffffffu,
                   (unsigned long long)random[1] & 0xffffffffffffu);
}

static int open_named(struct stage *s)
{
    for (int i = 0; i < TRIES; i++) {
        stage_random_name(s->temp);
        s->fd = openat(s->dir, s->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (s->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    s->temp[0] = '\0';
    return -errno;
}

static int open_spool(struct stage *s)
{
    s->spooled = true;
    s->fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (s->fd < 0)
        s->fd = memfd_create("spool", MFD_CLOEXEC);
    return s->fd < 0 ? -errno : 0;
}

int stage_open(int dir, bool may_spool, struct stage *ret_stage)
{
    struct stage s = { .fd = -1, .dir = dir };
    int r = 0;
    s.fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (s.fd < 0) {
        r = -errno;
        if (r == -EOPNOTSUPP || r == -EISDIR || r == -EINVAL || r == -ENOENT)
            r = open_named(&s);
        if ((r == -EACCES || r == -EPERM || r == -EROFS || r == -ENOENT) && may_spool)
            r = open_spool(&s);
    }
    if (r < 0)
        return r;
    *ret_stage = s;
    return 0;
}

/* Access lists and the user's own; what the kernel keeps there is its own business. */
static void copy_xattrs(const struct stage *s, const char *name)
{
    static char list[XATTR_LIST_MAX], value[XATTR_SIZE_MAX];
    _cleanup_fd_ int old = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = old < 0 ? -1 : flistxattr(old, list, sizeof(list));
    for (const char *x = list; n > 0 && x < list + n; x += strlen(x) + 1) {
        if (strncmp(x, "user.", 5) != 0 && strcmp(x, "system.posix_acl_access") != 0)
            continue;
        ssize_t v = fgetxattr(old, x, value, sizeof(value));
        if (v >= 0)
            (void)fsetxattr(s->fd, x, value, (size_t)v, 0);
    }
}

int stage_like(const struct stage *s, const char *name, const struct stat *old, bool keep_owner)
{
    struct stat now;
    if (s->spooled)
        return 0;
    if (fstat(s->fd, &now) < 0)
        return -errno;
    copy_xattrs(s, name);
    mode_t mode = old->st_mode & 07777;
    bool differs = now.st_uid != old->st_uid || now.st_gid != old->st_gid;
    if (differs && (!keep_owner || fchown(s->fd, old->st_uid, old->st_gid) < 0))
        mode &= 01777; /* it has changed hands: setuid and setgid were the old owner's */
    return fchmod(s->fd, mode) < 0 ? -errno : 0;
}

static int link_as(const struct stage *s, const char *name)
{
    char self[SELF_PATH_MAX];
    (void)self_path(s->fd, NULL, self);
    if (linkat(AT_FDCWD, self, s->dir, name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    return linkat(s->fd, "", s->dir, name, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int copy_into(const struct stage *s, const char *name)
{
    struct stat st;
    _cleanup_fd_ int to =
        openat(s->dir, name, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (to < 0)
        return -errno;
    if (fstat(to, &st) < 0 || !S_ISREG(st.st_mode))
        return -ENXIO;
    if (lseek(s->fd, 0, SEEK_SET) < 0)
        return -errno;
    for (;;) {
        ssize_t n = sendfile(to, s->fd, NULL, 1u << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
    }
}

/* Give it a name of its own, to be renamed from. */
static int name_it(struct stage *s)
{
    int r = -EEXIST;
    for (int i = 0; i < TRIES && r == -EEXIST; i++) {
        stage_random_name(s->temp);
        r = link_as(s, s->temp);
    }
    if (r < 0)
        s->temp[0] = '\0';
    return r;
}

static int take_name(struct stage *s, const char *name, bool exclusive)
{
    placed_note(s->fd, PLACED_NEW);
    int r = (int)syscall(SYS_renameat2, s->dir, s->temp, s->dir, name, RENAME_NOREPLACE_);
    bool is_new = r == 0;
    if (!is_new && (exclusive || (errno != EEXIST && errno != EINVAL && errno != ENOSYS)))
        return -errno;
    if (!is_new)
        placed_note(s->fd, PLACED_OVER);
    if (!is_new && renameat(s->dir, s->temp, s->dir, name) < 0) {
        if (errno != EBUSY)
            return -errno;
        r = copy_into(s, name); /* a mount point: a file of the host's, say */
        return r < 0 ? r : 0;
    }
    s->temp[0] = '\0';
    return is_new;
}

int stage_commit(struct stage *s, const char *name, bool exclusive)
{
    int r;
    if (s->spooled)
        return exclusive ? -EEXIST : copy_into(s, name);
    if (s->temp[0] == '\0') {
        placed_note(s->fd, PLACED_NEW);
        r = link_as(s, name);
        if (r == 0)
            return 1;
        if (r != -EEXIST || exclusive)
            return r;
        r = name_it(s);
        if (r < 0)
            return r;
    }
    return take_name(s, name, exclusive);
}

void stage_done(struct stage *s)
{
    if (s->temp[0])
        (void)unlinkat(s->dir, s->temp, 0);
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
    s->temp[0] = '\0';
}

int stage_write(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t r = write(fd, p, n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        p += r;
        n -= (size_t)r;
    }
    return 0;
}

#include "unpack/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "unpack/attributes.h"
#include "unpack/stream.h"
#include "unpack/tree.h"

#define ENTRIES_MAX 5000000 /* a large desktop image has about a million */
#define ID_MAX 65535        /* what fits in a sandbox's range */
#define BLOCK 4096u
#define WHITEOUT ".wh."
#define WHITEOUT_META ".wh..wh." /* other marks of the same family: opq, and AUFS's own */
#define WHITEOUT_ALL ".wh..wh..opq"

/* Directories get their times last: what is made in one changes them. */
struct dir_time {
    char *path;
    struct timespec mtime;
};

struct layer {
    struct tree tree;
    bool whole; /* a box's files, not an image's */
    struct stream *in;
    uint64_t bytes, most; /* most 0: no bound */
    struct dir_time *dirs;
    size_t n_dirs, cap_dirs;
};

static int failed(struct err *err, const char *path, const char *doing)
{
    int code = errno;
    if (code == ENOSPC || code == EDQUOT)
        return err_fail(err, FAIL_NO_SPACE, "the image does not fit");
    return err_fail_as(err, code, FAIL_INVALID_IMAGE, "cannot %s '%.200s': %s", doing, path,
                       strerror(code));
}

static struct timespec mtime_of(struct archive_entry *e)
{
    return (struct timespec){ archive_entry_mtime(e), archive_entry_mtime_nsec(e) };
}

static int later(struct layer *l, const char *path, struct archive_entry *e, struct err *err)
{
    if (l->n_dirs == l->cap_dirs) {
        size_t cap = l->cap_dirs ? l->cap_dirs * 2 : 256;
        struct dir_time *dirs = reallocarray(l->dirs, cap, sizeof(*dirs));
        if (!dirs)
            return err_set(err, ENOMEM, "out of memory");
        l->dirs = dirs;
        l->cap_dirs = cap;
    }
    char *copy = strdup(path);
    if (!copy)
        return err_set(err, ENOMEM, "out of memory");
    l->dirs[l->n_dirs++] = (struct dir_time){ copy, mtime_of(e) };
    return 0;
}

static void set_dir_times(struct layer *l)
{
    for (size_t i = 0; i < l->n_dirs; i++) {
        const struct timespec times[2] = { l->dirs[i].mtime, l->dirs[i].mtime };
        _cleanup_fd_ int fd = tree_open_dir(&l->tree, l->dirs[i].path, O_RDONLY | O_NOFOLLOW);
        if (fd >= 0) /* a later entry may have taken its place */
            (void)futimens(fd, times);
    }
}

static int set_xattrs(const struct layer *l, int fd, const char *path, struct archive_entry *e,
                      struct err *err)
{
    const char *name;
    const void *value;
    size_t n;
    (void)archive_entry_xattr_reset(e);
    while (archive_entry_xattr_next(e, &name, &value, &n) == ARCHIVE_OK)
        if (name && attribute_kept(name, l->whole) && fsetxattr(fd, name, value, n, 0) < 0)
            return failed(err, path, "set an attribute of");
    return 0;
}

/* In this order: a change of owner takes set-id bits and capabilities away. */
static int dress(const struct layer *l, int fd, const char *path, struct archive_entry *e,
                 struct err *err)
{
    if (fchown(fd, (uid_t)archive_entry_uid(e), (gid_t)archive_entry_gid(e)) < 0)
        return failed(err, path, "own");
    if (fchmod(fd, archive_entry_perm(e)) < 0)
        return failed(err, path, "set the mode of");
    return set_xattrs(l, fd, path, e, err);
}

static int make_dir(struct layer *l, const char *path, const char *name, struct archive_entry *e,
                    struct err *err)
{
    struct tree *t = &l->tree;
    int r = tree_claim(t, name, true, err);
    if (r < 0)
        return r;
    if (r == 0 && mkdirat(t->dir, name, 0700) < 0)
        return failed(err, path, "make the directory");
    _cleanup_fd_ int fd = openat(t->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return failed(err, path, "open");
    r = dress(l, fd, path, e, err);
    return r < 0 ? r : later(l, path, e, err);
}

static int check_size(const struct layer *l, uint64_t more, struct err *err)
{
    if (!l->most || l->bytes + more <= l->most)
        return 0;
    return err_fail(err, FAIL_LAYER_TOO_LARGE, "the layer unpacks to over %llu MiB",
                    (unsigned long long)l->most >> 20);
}

static int write_all(int fd, const char *p, size_t n, int64_t offset)
{
    while (n > 0) {
        ssize_t r = pwrite(fd, p, n, offset);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        p += r;
        n -= (size_t)r;
        offset += r;
    }
    return 0;
}

static bool all_zero(const char *p, size_t n)
{
    return n == 0 || (p[0] == '\0' && memcmp(p, p + 1, n - 1) == 0);
}

/* Leaves runs of zeros out: many tools write the holes of a file down as such. */
static int write_data(int fd, const char *p, size_t n, int64_t offset, uint64_t *bytes)
{
    for (size_t at = 0, end; at < n; at = end) {
        size_t step = BLOCK - (size_t)((uint64_t)offset + at) % BLOCK;
        end = at + step < n ? at + step : n;
        if (all_zero(p + at, end - at))
            continue;
        while (end < n) { /* as much as has something in it */
            size_t more = n - end < BLOCK ? n - end : BLOCK;
            if (all_zero(p + end, more))
                break;
            end += more;
        }
        int r = write_all(fd, p + at, end - at, offset + (int64_t)at);
        if (r < 0)
            return r;
        *bytes += end - at;
    }
    return 0;
}

static int fill(struct layer *l, int fd, const char *path, struct archive_entry *e, struct err *err)
{
    const void *p;
    size_t n;
    int64_t offset = 0;
    uint64_t bytes = 0;
    int r;
    while ((r = stream_data(l->in, &p, &n, &offset, err)) > 0) {
        if (write_data(fd, p, n, offset, &bytes) < 0)
            return failed(err, path, "write");
        r = check_size(l, bytes, err);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    if (ftruncate(fd, archive_entry_size(e)) < 0)
        return failed(err, path, "size");
    l->bytes += (bytes + BLOCK - 1) / BLOCK * BLOCK;
    return 0;
}

static int make_file(struct layer *l, const char *path, const char *name, struct archive_entry *e,
                     struct err *err)
{
    struct tree *t = &l->tree;
    int r = tree_claim(t, name, false, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int fd =
        openat(t->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed(err, path, "make");
    r = fill(l, fd, path, e, err);
    if (r < 0)
        return r;
    r = dress(l, fd, path, e, err);
    if (r < 0)
        return r;
    const struct timespec times[2] = { mtime_of(e), mtime_of(e) };
    return futimens(fd, times) < 0 ? failed(err, path, "set the times of") : 0;
}

static bool is_socket(struct archive_entry *e)
{
    const char *name;
    const void *value;
    size_t n;
    (void)archive_entry_xattr_reset(e);
    while (archive_entry_xattr_next(e, &name, &value, &n) == ARCHIVE_OK)
        if (name && strcmp(name, ATTRIBUTE_SOCKET) == 0)
            return true;
    return false;
}

/* FIFOs; sockets; what overlayfs puts in the place of a file that was removed. */
static int make_node(struct layer *l, const char *name, struct archive_entry *e)
{
    if (archive_entry_filetype(e) == AE_IFCHR)
        return mknodat(l->tree.dir, name, S_IFCHR, makedev(0, 0));
    return mknodat(l->tree.dir, name, (l->whole && is_socket(e) ? S_IFSOCK : S_IFIFO) | 0600, 0);
}

/* Symbolic links, FIFOs and the like: nothing to open. */
static int make_other(struct layer *l, const char *path, const char *name, struct archive_entry *e,
                      struct err *err)
{
    struct tree *t = &l->tree;
    bool fifo = archive_entry_filetype(e) != AE_IFLNK;
    const char *target = fifo ? NULL : archive_entry_symlink(e);
    if (!fifo && (!target || !*target))
        return err_fail(err, FAIL_INVALID_IMAGE, "'%.200s' is a link to nothing", path);
    int r = tree_claim(t, name, false, err);
    if (r < 0)
        return r;
    r = fifo ? make_node(l, name, e) : symlinkat(target, t->dir, name);
    if (r < 0)
        return failed(err, path, "make");
    const struct timespec times[2] = { mtime_of(e), mtime_of(e) };
    if (fchownat(t->dir, name, (uid_t)archive_entry_uid(e), (gid_t)archive_entry_gid(e),
                 AT_SYMLINK_NOFOLLOW) < 0)
        return failed(err, path, "own");
    if (fifo && fchmodat(t->dir, name, archive_entry_perm(e), 0) < 0)
        return failed(err, path, "set the mode of");
    (void)utimensat(t->dir, name, times, AT_SYMLINK_NOFOLLOW);
    return 0;
}

static int hide(struct layer *l, const char *path, const char *name, struct err *err)
{
    if (strcmp(name, WHITEOUT_ALL) == 0)
        return tree_hide_all(&l->tree, err);
    if (strncmp(name, WHITEOUT_META, strlen(WHITEOUT_META)) == 0)
        return 0;
    const char *what = name + strlen(WHITEOUT);
    if (*what == '\0' || strcmp(what, ".") == 0 || strcmp(what, "..") == 0)
        return err_fail(err, FAIL_INVALID_IMAGE, "'%.200s' hides nothing that has a name", path);
    return tree_hide(&l->tree, what, err);
}

static int check_ids(const char *path, struct archive_entry *e, struct err *err)
{
    int64_t uid = archive_entry_uid(e), gid = archive_entry_gid(e);
    if (uid < 0 || uid > ID_MAX || gid < 0 || gid > ID_MAX)
        return err_fail(err, FAIL_INVALID_IMAGE, "'%.200s' belongs to an id over %d", path, ID_MAX);
    return 0;
}

static bool is_mark(const struct layer *l, struct archive_entry *e)
{
    return l->whole && archive_entry_rdevmajor(e) == 0 && archive_entry_rdevminor(e) == 0;
}

static int place(struct layer *l, struct archive_entry *e, struct err *err)
{
    char path[PATH_MAX];
    const char *given = archive_entry_pathname(e), *name;
    if (stream_path(given, path, sizeof(path)) < 0)
        return err_fail(err, FAIL_INVALID_IMAGE, "'%.200s' leads out of the image",
                        given ? given : "(a name that cannot be read)");
    int r = check_ids(path, e, err);
    if (path[0] == '\0') /* an image's is always root's, and open to all */
        return r < 0 || !l->whole ? r : dress(l, l->tree.root, "/", e, err);
    if (r == 0)
        r = tree_enter(&l->tree, path, &name, err);
    if (r < 0)
        return r;
    if (!l->whole && strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0)
        return hide(l, path, name, err);
    const char *target = archive_entry_hardlink(e);
    if (target)
        return tree_link(&l->tree, name, target, err);
    switch (archive_entry_filetype(e)) {
    case AE_IFDIR: return make_dir(l, path, name, e, err);
    case AE_IFREG: return make_file(l, path, name, e, err);
    case AE_IFLNK:
    case AE_IFIFO: return make_other(l, path, name, e, err);
    case AE_IFCHR: return is_mark(l, e) ? make_other(l, path, name, e, err) : 0;
    default: return 0;
    }
}

static int furnish(int root, struct err *err)
{
    static const char *const needed[] = { "dev", "proc", "sys", "tmp", "etc" };
    for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
        struct stat st;
        mode_t mode = strcmp(needed[i], "tmp") == 0 ? 01777 : 0755;
        if (mkdirat(root, needed[i], mode) == 0) {
            if (fchmodat(root, needed[i], mode, 0) < 0) /* whatever our umask */
                return err_set(err, errno, "cannot make '/%s'", needed[i]);
            continue;
        }
        if (fstatat(root, needed[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
            return err_fail(err, FAIL_INVALID_IMAGE, "'/%s' is not a directory", needed[i]);
    }
    if (fchownat(root, "", 0, 0, AT_EMPTY_PATH) < 0 || fchmodat(root, ".", 0755, 0) < 0)
        return err_set(err, errno, "cannot own the image's root");
    return 0;
}

static int apply(struct layer *l, struct unpack_report *ret_report, struct err *err)
{
    struct archive_entry *e;
    uint64_t entries = 0;
    int r;
    while ((r = stream_next(l->in, &e, err)) > 0) {
        if (++entries > ENTRIES_MAX)
            return err_fail(err, FAIL_INVALID_IMAGE, "more than %d entries", ENTRIES_MAX);
        l->bytes += UNPACK_ENTRY_BYTES;
        r = check_size(l, 0, err);
        if (r >= 0)
            r = place(l, e, err);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    r = stream_finish(l->in, ret_report->diff_id, err);
    if (r < 0)
        return r;
    set_dir_times(l);
    ret_report->size_bytes = l->bytes;
    return l->whole ? 0 : furnish(l->tree.root, err);
}

static int run(int fd, int root, bool whole, const struct unpack_bounds *bounds,
               struct unpack_report *ret_report, struct err *err)
{
    struct layer l = { .whole = whole, .most = bounds->bytes };
    int r = tree_init(&l.tree, root, err);
    if (r < 0)
        return r;
    r = stream_open(fd, bounds->ratio, &l.in, err);
    if (r == 0)
        r = apply(&l, ret_report, err);
    stream_free(l.in);
    tree_done(&l.tree);
    for (size_t i = 0; i < l.n_dirs; i++)
        free(l.dirs[i].path);
    free(l.dirs);
    return r;
}

int layer_apply(int fd, int root, const struct unpack_bounds *bounds,
                struct unpack_report *ret_report, struct err *err)
{
    return run(fd, root, false, bounds, ret_report, err);
}

int layer_apply_whole(int fd, int root, struct unpack_report *ret_report, struct err *err)
{
    static const struct unpack_bounds none; /* the box has a disk limit */
    return run(fd, root, true, &none, ret_report, err);
}

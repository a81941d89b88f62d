#include "unpack/diff.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "unpack/attributes.h"
#include "unpack/names.h"

#define BLOCK (256 * 1024)
#define VALUE_MAX (64 * 1024)
#define BYTES_MAX (256ull * 1024 * 1024 * 1024) /* with holes: the writer is fed those too */
#define LINKS_FIRST 256
#define HOLES_MIN (256ll * 1024 * 1024)

/* Where the first name of a file with several lies in the tar. */
struct first_name {
    uint64_t ino;
    char *path;
};

struct diff {
    struct archive *out;
    enum diff_form form;
    struct first_name *links; /* open addressing by inode */
    size_t n_links, cap_links;
    uint64_t bytes;
    char path[PATH_MAX];
    char block[BLOCK];
};

static int writing(struct diff *d, struct err *err)
{
    const char *why = archive_error_string(d->out);
    return err_set(err, EIO, "cannot write the layer: %s", why ? why : "no reason given");
}

static int reading(struct diff *d, struct err *err)
{
    return err_set(err, errno, "cannot read '/%.200s'", d->path);
}

/* ---- hard links ---- */

static struct first_name *slot_of(struct first_name *links, size_t cap, uint64_t ino)
{
    size_t i = (size_t)(ino * 0x9e3779b97f4a7c15ULL >> 20) & (cap - 1);
    while (links[i].path && links[i].ino != ino)
        i = (i + 1) & (cap - 1);
    return &links[i];
}

static int grow_links(struct diff *d)
{
    size_t cap = d->cap_links ? d->cap_links * 2 : LINKS_FIRST;
    struct first_name *links = calloc(cap, sizeof(*links));
    if (!links)
        return -ENOMEM;
    for (size_t i = 0; i < d->cap_links; i++)
        if (d->links[i].path)
            *slot_of(links, cap, d->links[i].ino) = d->links[i];
    free(d->links);
    d->links = links;
    d->cap_links = cap;
    return 0;
}

/* The first name, or NULL: then this one is it. */
static int link_of(struct diff *d, uint64_t ino, const char **ret_path)
{
    if (d->n_links * 2 >= d->cap_links && grow_links(d) < 0)
        return -ENOMEM;
    struct first_name *at = slot_of(d->links, d->cap_links, ino);
    *ret_path = at->path;
    if (at->path)
        return 0;
    at->path = strdup(d->path);
    at->ino = ino;
    d->n_links++;
    return at->path ? 0 : -ENOMEM;
}

/* ---- one entry ---- */

static int add_xattrs(struct diff *d, int fd, struct archive_entry *e, struct err *err)
{
    char list[XATTR_LIST_MAX];
    ssize_t n = flistxattr(fd, list, sizeof(list));
    if (n < 0 && errno != ENOTSUP)
        return reading(d, err);
    for (const char *p = list; n > 0 && p < list + n; p += strlen(p) + 1) {
        if (!attribute_kept(p, d->form == DIFF_WHOLE))
            continue;
        ssize_t len = fgetxattr(fd, p, d->block, VALUE_MAX);
        if (len < 0)
            return reading(d, err);
        archive_entry_xattr_add_entry(e, p, d->block, (size_t)len);
    }
    return 0;
}

static void describe(const struct diff *d, struct archive_entry *e, const char *path,
                     const struct stat *st)
{
    archive_entry_copy_pathname(e, path);
    archive_entry_set_filetype(e, st->st_mode & S_IFMT);
    archive_entry_set_perm(e, st->st_mode & 07777);
    archive_entry_set_uid(e, st->st_uid);
    archive_entry_set_gid(e, st->st_gid);
    archive_entry_set_mtime(e, st->st_mtime, d->form == DIFF_WHOLE ? st->st_mtim.tv_nsec : 0);
    archive_entry_set_size(e, S_ISREG(st->st_mode) ? st->st_size : 0);
}

/* Only large holes: docker cannot write out again what it read in the sparse form, and smaller ones
 * are found again by whoever unpacks the zeros. */
static int add_holes(struct diff *d, int fd, const struct stat *st, struct archive_entry *e,
                     struct err *err)
{
    off_t at = 0;
    if (st->st_size - st->st_blocks * 512 < HOLES_MIN)
        return 0;
    while (at < st->st_size) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        off_t end = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        if (end < 0)
            return reading(d, err);
        archive_entry_sparse_add_entry(e, data, end - data);
        at = end;
    }
    if (archive_entry_sparse_count(e) == 0)
        archive_entry_sparse_add_entry(e, st->st_size, 0);
    return 0;
}

/* The writer wants every byte, those in holes too, and leaves the latter out itself. */
static int copy_data(struct diff *d, int fd, const struct stat *st, struct err *err)
{
    for (off_t left = st->st_size; left > 0;) {
        size_t want = left < (off_t)sizeof(d->block) ? (size_t)left : sizeof(d->block);
        ssize_t n = read(fd, d->block, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return reading(d, err);
        if (n == 0)
            return err_set(err, EIO, "'/%.200s' became shorter while it was read", d->path);
        if (archive_write_data(d->out, d->block, (size_t)n) < 0)
            return writing(d, err);
        left -= n;
    }
    return 0;
}

static int put_head(struct diff *d, struct archive_entry *e, struct err *err)
{
    int a = archive_write_header(d->out, e);
    return a < ARCHIVE_WARN ? writing(d, err) : 0;
}

static int put_mark(struct diff *d, const char *dir, size_t n, const char *prefix, const char *name,
                    struct err *err)
{
    char path[PATH_MAX + 16];
    int len = snprintf(path, sizeof(path), "%.*s%s%s%s", (int)n, dir, n ? "/" : "", prefix, name);
    struct archive_entry *e = len > 0 && len < (int)sizeof(path) ? archive_entry_new() : NULL;
    if (!e)
        return err_set(err, ENOMEM, "cannot describe '%.200s'", path);
    const struct stat st = { .st_mode = S_IFREG };
    describe(d, e, path, &st);
    int r = put_head(d, e, err);
    archive_entry_free(e);
    return r;
}

static int put_file(struct diff *d, int fd, const struct stat *st, struct archive_entry *e,
                    struct err *err)
{
    d->bytes += (uint64_t)st->st_size;
    if (d->bytes > BYTES_MAX)
        return err_fail_as(err, EFBIG, FAIL_INVALID_IMAGE,
                           "'/%.200s' makes more than %llu GiB of files, holes counted", d->path,
                           BYTES_MAX >> 30);
    int r = add_xattrs(d, fd, e, err);
    if (r == 0)
        r = add_holes(d, fd, st, e, err);
    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
        r = reading(d, err);
    if (r == 0)
        r = put_head(d, e, err);
    return r < 0 ? r : copy_data(d, fd, st, err);
}

static int put_symlink(struct diff *d, int dir, const char *name, struct archive_entry *e,
                       struct err *err)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
    if (n < 0)
        return reading(d, err);
    target[n] = '\0';
    archive_entry_copy_symlink(e, target);
    return put_head(d, e, err);
}

/* Everything but directories. */
static int put_entry(struct diff *d, int dir, const char *name, const struct stat *st,
                     struct archive_entry *e, struct err *err)
{
    const char *first = NULL;
    describe(d, e, d->path, st);
    if (st->st_nlink > 1 && !S_ISCHR(st->st_mode)) { /* overlayfs links its marks */
        if (link_of(d, st->st_ino, &first) < 0)
            return err_set(err, ENOMEM, "out of memory");
        if (first) {
            archive_entry_copy_hardlink(e, first);
            archive_entry_set_size(e, 0);
            return put_head(d, e, err);
        }
    }
    if (S_ISLNK(st->st_mode))
        return put_symlink(d, dir, name, e, err);
    if (S_ISSOCK(st->st_mode)) { /* has no form in a tar */
        archive_entry_set_filetype(e, AE_IFIFO);
        archive_entry_xattr_add_entry(e, ATTRIBUTE_SOCKET, "y", 1);
    }
    if (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode) || S_ISCHR(st->st_mode))
        return put_head(d, e, err);
    _cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? reading(d, err) : put_file(d, fd, st, e, err);
}

/* ---- the walk ---- */

static int put_dir(struct diff *d, int fd, const struct stat *st, struct err *err);

static int put_one(struct diff *d, int dir, const char *name, struct err *err)
{
    struct stat st;
    size_t len = strlen(d->path), n = strlen(name);
    if (len + n + 2 > sizeof(d->path))
        return err_fail_as(err, ENAMETOOLONG, FAIL_INVALID_IMAGE,
                           "a path below '/%.200s' is too long", d->path);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return reading(d, err);
    bool gone = S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0);
    if (gone && d->form == DIFF_LAYER)
        return put_mark(d, d->path, len, ".wh.", name, err);
    if ((S_ISCHR(st.st_mode) && !gone) || S_ISBLK(st.st_mode) ||
        (d->form == DIFF_LAYER && (strncmp(name, ".wh.", 4) == 0 || S_ISSOCK(st.st_mode))))
        return 0; /* has no form in a layer */
    if (len)
        d->path[len] = '/';
    memcpy(d->path + len + (len > 0), name, n + 1);
    int r;
    if (S_ISDIR(st.st_mode)) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = fd < 0 ? reading(d, err) : put_dir(d, fd, &st, err);
    } else {
        struct archive_entry *e = archive_entry_new();
        r = e ? put_entry(d, dir, name, &st, e, err) : err_set(err, ENOMEM, "out of memory");
        archive_entry_free(e);
    }
    d->path[len] = '\0';
    return r;
}

static int put_names(struct diff *d, int fd, struct err *err)
{
    _cleanup_(names_done) struct names names = NAMES_INIT;
    int r = names_add(&names, fd);
    if (r < 0)
        r = err_set(err, -r, "cannot read '/%.200s'", d->path);
    for (size_t i = 0; r == 0 && i < names.n; i++)
        r = put_one(d, fd, names.items[i], err);
    return r;
}

/* Takes fd. */
static int put_dir(struct diff *d, int fd, const struct stat *st, struct err *err)
{
    _cleanup_fd_ int own = fd;
    char mark[8] = "";
    struct archive_entry *e = archive_entry_new();
    if (!e)
        return err_set(err, ENOMEM, "out of memory");
    describe(d, e, d->path[0] ? d->path : ".", st);
    int r = add_xattrs(d, own, e, err);
    if (r == 0)
        r = put_head(d, e, err);
    archive_entry_free(e);
    if (r == 0 && d->form == DIFF_LAYER &&
        fgetxattr(own, ATTRIBUTE_OPAQUE, mark, sizeof(mark)) == 1 && mark[0] == 'y')
        r = put_mark(d, d->path, strlen(d->path), ".wh..wh.", ".opq", err);
    return r < 0 ? r : put_names(d, own, err);
}

static int open_out(struct diff *d, int out, struct err *err)
{
    d->out = archive_write_new();
    if (!d->out)
        return err_set(err, ENOMEM, "out of memory");
    if (d->form == DIFF_WHOLE) /* the restricted form drops parts of a second */
        (void)archive_write_set_format_pax(d->out);
    else
        (void)archive_write_set_format_pax_restricted(d->out);
    (void)archive_write_set_options(d->out, "xattrheader=SCHILY");
    (void)archive_write_set_bytes_per_block(d->out, BLOCK);
    (void)archive_write_set_bytes_in_last_block(d->out, 1);
    return archive_write_open_fd(d->out, out) != ARCHIVE_OK ? writing(d, err) : 0;
}

/* The root too. */
static int put_whole(struct diff *d, int upper, struct err *err)
{
    struct stat st;
    int fd = fcntl(upper, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, &st) < 0) {
        if (fd >= 0)
            (void)close(fd);
        return reading(d, err);
    }
    return put_dir(d, fd, &st, err);
}

int diff_write(int upper, int out, enum diff_form form, struct err *err)
{
    struct diff *d = calloc(1, sizeof(*d));
    if (!d)
        return err_set(err, ENOMEM, "out of memory");
    d->form = form;
    int r = open_out(d, out, err);
    if (r == 0)
        r = form == DIFF_WHOLE ? put_whole(d, upper, err) : put_names(d, upper, err);
    if (r == 0 && archive_write_close(d->out) != ARCHIVE_OK)
        r = writing(d, err);
    (void)archive_write_free(d->out);
    for (size_t i = 0; i < d->cap_links; i++)
        free(d->links[i].path);
    free(d->links);
    free(d);
    return r;
}

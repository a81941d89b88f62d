/* TREE_IN: a stream of entries and bytes becomes files below a directory.
 *
 * The tree is hostile, and so may be whoever else works in that directory: every name is reached
 * through `beneath`, made anew (O_EXCL) and never followed. A file gets its owner, mode, attributes
 * and time when its last byte is there; a directory when the whole tree is. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/beneath.h"
#include "init/file/path.h"
#include "init/file/sparse.h"
#include "init/file/tree_entry.h"

#define LATE_MAX (1u << 17)                /* directories; more get their mode at once */
#define LATE_BYTES_MAX (16u * 1024 * 1024) /* of their paths */

/* What is done to a file or directory once nothing more is written to it. */
struct finish {
    bool has_mode, has_mtime, has_owner;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    int64_t mtime_ns;
};

struct late {
    char *path;
    struct finish finish;
};

struct grow {
    struct job *j;
    char *top_path;
    bool top_made, keep_ids;
    struct beneath below;
    struct tree_entry e; /* the present one */
    char *fields;        /* its payload, for its extended attributes */
    bool open;           /* a file whose bytes are still to come */
    int fd, dir;         /* the file and its directory */
    char name[NAME_MAX + 1];
    uint64_t pos;
    struct finish finish;
    struct late *late;
    size_t n_late, late_bytes;
    uint64_t files, bytes, count;
};

static int bad(struct grow *g, const char *why)
{
    return job_refuse(g->j, EINVAL, "invalid_archive", *g->e.path ? g->e.path : ".", why);
}

static int fail(struct grow *g, int code)
{
    code = code < 0 ? -code : code;
    if (code == EXDEV || code == ELOOP)
        return bad(g, "leads out of the tree through a symbolic link");
    _cleanup_free_ char *path = NULL;
    if (path_join(g->top_path, g->e.path, &path) < 0)
        path = NULL;
    return job_fail(g->j, code, path ? path : g->e.path);
}

/* ---- owner, mode, attributes, time: in the order in which one does not undo the other ---- */

static struct finish finish_of(const struct grow *g)
{
    const struct tree_entry *e = &g->e;
    struct finish f = { .has_mode = e->has_mode, .has_mtime = e->has_mtime };
    f.has_owner = g->keep_ids;
    f.uid = (uid_t)e->uid;
    f.gid = (gid_t)e->gid;
    /* A program that becomes its owner must not become someone else's than it was. */
    f.mode = e->mode & (g->keep_ids ? 07777 : 01777);
    f.mtime_ns = e->mtime_ns;
    return f;
}

static void times_of(const struct finish *f, struct timespec out[2])
{
    int64_t s = f->mtime_ns / 1000000000, ns = f->mtime_ns % 1000000000;
    if (ns < 0) {
        s--;
        ns += 1000000000;
    }
    out[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
    out[1] = (struct timespec){ .tv_sec = s, .tv_nsec = ns };
}

static int set_xattrs(struct grow *g, int fd)
{
    for (size_t i = 0; g->fields && i < g->e.n_xattrs; i++) {
        const char *name = g->fields + g->e.xattrs[i].at;
        size_t name_n = strlen(name) + 1;
        bool is_user = strncmp(name, "user.", 5) == 0;
        bool is_capability = strcmp(name, "security.capability") == 0 && g->keep_ids;
        if (!is_user && !is_capability)
            continue;
        if (fsetxattr(fd, name, name + name_n, g->e.xattrs[i].n - name_n, 0) == 0)
            continue;
        if (errno == ENOSPC || errno == EDQUOT)
            return -errno;
    }
    return 0;
}

static int finish_fd(struct grow *g, int fd, const struct finish *f)
{
    struct timespec times[2];
    if (f->has_owner && fchown(fd, f->uid, f->gid) < 0)
        return -errno;
    if (f->has_mode && fchmod(fd, f->mode) < 0)
        return -errno;
    int r = g ? set_xattrs(g, fd) : 0;
    times_of(f, times);
    if (r == 0 && f->has_mtime && futimens(fd, times) < 0)
        r = -errno;
    return r;
}

/* For what cannot be opened: links, pipes, devices. */
static int finish_name(const struct finish *f, int dir, const char *name, bool is_link)
{
    struct timespec times[2];
    if (f->has_owner && fchownat(dir, name, f->uid, f->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!is_link && f->has_mode && fchmodat(dir, name, f->mode, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    times_of(f, times);
    if (f->has_mtime && utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

/* ---- directories ---- */

static int finish_dir(struct grow *g, const char *path, const struct finish *f)
{
    int fd = beneath_open(&g->below, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd < 0)
        return fd;
    int r = finish_fd(NULL, fd, f);
    (void)close(fd);
    return r;
}

static int finish_later(struct grow *g, const char *path, const struct finish *f)
{
    size_t n = strlen(path) + 1;
    if (g->n_late == LATE_MAX || g->late_bytes + n > LATE_BYTES_MAX)
        return finish_dir(g, path, f);
    if ((g->n_late & (g->n_late - 1)) == 0) { /* full, or nothing yet */
        size_t cap = g->n_late ? g->n_late * 2 : 1;
        struct late *late = realloc(g->late, cap * sizeof(*late));
        if (!late)
            return -ENOMEM;
        g->late = late;
    }
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    g->late[g->n_late++] = (struct late){ copy, *f };
    g->late_bytes += n;
    return 0;
}

static int make_dir(struct grow *g)
{
    struct finish f = finish_of(g);
    const char *name;
    if (g->e.path[0] == '\0')
        return g->top_made ? finish_later(g, "", &f) : 0;
    int dir = beneath_parent(&g->below, g->e.path, &name);
    if (dir < 0)
        return dir;
    bool made = mkdirat(dir, name, 0777) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    /* What was there may be a link to a directory: that is how it stays. */
    int fd = beneath_open(&g->below, g->e.path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd == -ELOOP || fd == -ENOTDIR) {
        struct stat st;
        fd = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? -ELOOP
                                                                                      : -ENOTDIR;
        return fd == -ELOOP ? 0 : -ENOTDIR;
    }
    int r = 0;
    if (fd >= 0)
        r = set_xattrs(g, fd);
    if (fd >= 0)
        (void)close(fd);
    if (r < 0 || (!made && g->j->uid != 0))
        return r; /* another's directory may be one to put files in, and no more */
    return finish_later(g, g->e.path, &f);
}

static int finish_dirs(struct grow *g)
{
    for (size_t i = g->n_late; i > 0; i--) {
        const struct late *l = &g->late[i - 1];
        int r = finish_dir(g, l->path, &l->finish);
        if (r < 0 && r != -ENOENT) {
            (void)snprintf(g->e.path, sizeof(g->e.path), "%s", l->path);
            return fail(g, r);
        }
    }
    return 0;
}

/* ---- files ---- */

/* Whatever is not a directory makes way for what comes. */
static int make_way(int dir, const char *name)
{
    return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int open_new(struct grow *g, int dir, const char *name)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
    int fd = openat(dir, name, flags, 0600 | (g->e.has_mode ? 0 : 0666));
    if (fd >= 0 || errno != EEXIST)
        return fd < 0 ? -errno : fd;
    struct stat old;
    if (!g->e.has_mode && fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(old.st_mode)) { /* nobody said how it should be: as it was */
        bool mine = g->j->uid == 0 || old.st_uid == g->j->uid;
        g->finish.has_mode = mine;
        g->finish.mode = old.st_mode & 07777;
        if (!g->keep_ids && g->j->uid == 0) {
            g->finish.has_owner = true;
            g->finish.uid = old.st_uid;
            g->finish.gid = old.st_gid;
        }
    }
    int r = make_way(dir, name);
    if (r == -EBUSY) { /* a mount point: its bytes are replaced, not the file */
        fd = open_regular(dir, name, O_RDWR | O_NOFOLLOW | O_TRUNC);
        g->finish = (struct finish){ 0 };
        return fd;
    }
    if (r < 0)
        return r;
    fd = openat(dir, name, flags, 0600 | (g->e.has_mode ? 0 : 0666));
    return fd < 0 ? -errno : fd;
}

static int make_file(struct grow *g)
{
    const char *name;
    int dir = beneath_parent(&g->below, g->e.path, &name);
    if (dir < 0)
        return dir;
    g->finish = finish_of(g);
    int fd = open_new(g, dir, name);
    if (fd < 0)
        return fd;
    g->fd = fd;
    g->dir = dir;
    g->pos = 0;
    g->open = true;
    (void)snprintf(g->name, sizeof(g->name), "%s", name);
    return 0;
}

/* Its last byte is there, or should be. */
static int close_file(struct grow *g)
{
    if (!g->open)
        return 0;
    if (g->e.has_size && g->pos != g->e.size)
        return bad(g, "has fewer bytes than it says");
    int r = ftruncate(g->fd, (off_t)g->pos) < 0 ? -errno : finish_fd(g, g->fd, &g->finish);
    if (r < 0)
        return fail(g, r);
    (void)close(g->fd);
    g->open = false;
    return 0;
}

static int take_bytes(struct grow *g)
{
    const char *p;
    ssize_t n;
    while ((n = talk_piece(&g->j->talk, &p)) > 0) {
        if (!g->open)
            return bad(g, "has bytes but is not a file");
        if (g->e.has_size && (uint64_t)n > g->e.size - g->pos)
            return bad(g, "has more bytes than it says");
        int r = sparse_write(g->fd, &g->pos, p, (size_t)n);
        if (r < 0)
            return fail(g, r);
        g->bytes += (uint64_t)n;
    }
    return (int)n;
}

/* Zero bytes that need not come through the socket: the file is only made longer at its end. */
static int take_hole(struct grow *g, const char *payload, size_t n)
{
    struct wire_reader reader = { payload, n };
    struct wire_field f;
    uint64_t length = 0;
    if (wire_next(&reader, &f) != 1 || f.tag != WIRE_T_LENGTH || wire_field_u64(&f, &length) < 0)
        return -EPROTO;
    if (!g->open)
        return bad(g, "has bytes but is not a file");
    if (length > INT64_MAX - g->pos || (g->e.has_size && length > g->e.size - g->pos))
        return bad(g, "has more bytes than it says");
    g->pos += length;
    g->bytes += length;
    return 0;
}

/* ---- what is neither ---- */

static int try_special(struct grow *g, int dir, const char *name)
{
    const struct tree_entry *e = &g->e;
    int r = -1;
    if (e->type == WIRE_SYMLINK)
        r = symlinkat(e->link, dir, name);
    else if (e->type == WIRE_FIFO)
        r = mknodat(dir, name, S_IFIFO | 0644, 0);
    else
        r = mknodat(dir, name, (e->type == WIRE_CHARDEV ? S_IFCHR : S_IFBLK) | 0600, e->rdev);
    return r < 0 ? -errno : 0;
}

static int make_special(struct grow *g)
{
    const char *name;
    int dir = beneath_parent(&g->below, g->e.path, &name);
    if (dir < 0)
        return dir;
    int r = try_special(g, dir, name);
    if (r == -EEXIST) {
        r = make_way(dir, name);
        if (r == 0)
            r = try_special(g, dir, name);
    }
    if (r == -EPERM && (g->e.type == WIRE_CHARDEV || g->e.type == WIRE_BLOCKDEV))
        return job_refuse(g->j, EOPNOTSUPP, "not_supported", g->e.path,
                          "is a device, and devices cannot be made here");
    if (r < 0)
        return r;
    struct finish f = finish_of(g);
    return finish_name(&f, dir, name, g->e.type == WIRE_SYMLINK);
}

static int make_hardlink(struct grow *g)
{
    const char *name, *old_name;
    if (strcmp(g->e.path, g->e.link) == 0)
        return 0;
    int found = beneath_parent(&g->below, g->e.link, &old_name);
    if (found < 0)
        return found;
    _cleanup_fd_ int old_dir = fcntl(found, F_DUPFD_CLOEXEC, 0);
    if (old_dir < 0)
        return -errno;
    int dir = beneath_parent(&g->below, g->e.path, &name);
    if (dir < 0)
        return dir;
    struct stat st;
    if (fstatat(old_dir, old_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? bad(g, "is a hard link to something that is not there") : -errno;
    if (linkat(old_dir, old_name, dir, name, 0) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    struct stat now; /* two names of one file already: unlinking would be one step too far */
    if (fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == st.st_dev &&
        now.st_ino == st.st_ino)
        return 0;
    int r = make_way(dir, name);
    if (r == 0 && linkat(old_dir, old_name, dir, name, 0) < 0)
        r = -errno;
    return r;
}

/* ---- the stream ---- */

static int make(struct grow *g)
{
    switch (g->e.type) {
    case WIRE_DIRECTORY: return make_dir(g);
    case WIRE_REGULAR: return make_file(g);
    case WIRE_HARDLINK: return make_hardlink(g);
    case WIRE_SYMLINK:
    case WIRE_FIFO:
    case WIRE_CHARDEV:
    case WIRE_BLOCKDEV: return make_special(g);
    case WIRE_SOCKET:
        return job_refuse(g->j, EOPNOTSUPP, "not_supported", g->e.path,
                          "is a socket, which only the program that serves it can make");
    }
    return -EINVAL;
}

static int take_entry(struct grow *g, const char *payload, size_t n)
{
    const char *why = "";
    int r = close_file(g);
    if (r < 0)
        return r;
    r = tree_entry_decode(payload, n, &g->e, &why);
    if (r < 0)
        return bad(g, why);
    free(g->fields);
    g->fields = NULL;
    if (g->e.n_xattrs > 0) {
        g->fields = malloc(n);
        if (!g->fields)
            return fail(g, ENOMEM);
        memcpy(g->fields, payload, n);
    }
    r = make(g);
    if (r < 0)
        return g->j->err.code ? r : fail(g, r);
    /* A link that came or went may have led to the directory that is held. */
    if (g->e.type != WIRE_REGULAR && g->e.type != WIRE_DIRECTORY)
        beneath_forget(&g->below);
    g->count++;
    g->files += g->e.type != WIRE_DIRECTORY;
    return 0;
}

static int take_tree(struct grow *g)
{
    for (;;) {
        struct wire_header h;
        const char *payload;
        int r = talk_next(&g->j->talk, &h, &payload);
        if (r == 0 && h.type == WIRE_END)
            r = close_file(g);
        else if (r == 0 && h.type == WIRE_ENTRY)
            r = take_entry(g, payload, h.len);
        else if (r == 0 && h.type == WIRE_DATA)
            r = take_bytes(g);
        else if (r == 0 && h.type == WIRE_HOLE)
            r = take_hole(g, payload, h.len);
        else if (r == 0)
            r = -EPROTO;
        if (r < 0 || h.type == WIRE_END)
            return r;
    }
}

static int open_top(struct grow *g)
{
    struct job *j = g->j;
    struct stat top, root;
    int r = path_of(j, j->ask->paths[0], &g->top_path);
    if (r < 0)
        return r;
    int fd = open(g->top_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        r = path_make(g->top_path);
        if (r < 0)
            return job_fail(j, r, g->top_path);
        g->top_made = true;
        fd = open(g->top_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return job_fail(j, errno, g->top_path);
    g->below.top = fd;
    if (fstat(fd, &top) < 0 || stat("/", &root) < 0)
        return job_fail(j, errno, g->top_path);
    g->below.is_root = top.st_dev == root.st_dev && top.st_ino == root.st_ino;
    return 0;
}

static void grow_done(struct grow *g)
{
    if (g->open) { /* half a file is none */
        (void)close(g->fd);
        (void)unlinkat(g->dir, g->name, 0);
    }
    for (size_t i = 0; i < g->n_late; i++)
        free(g->late[i].path);
    free(g->late);
    free(g->fields);
    free(g->top_path);
    beneath_done(&g->below);
}

int op_tree_in(struct job *j)
{
    static struct grow g; /* two paths make it too large for the stack */
    g = (struct grow){ .j = j, .below = BENEATH_INIT, .fd = -1 };
    g.keep_ids = ask_is(j->ask, WIRE_F_NUMERIC) && j->uid == 0;
    int r = open_top(&g);
    if (r == 0)
        r = take_tree(&g);
    if (r == 0)
        r = finish_dirs(&g);
    grow_done(&g);
    job_note(j, WIRE_T_FILES, g.files);
    job_note(j, WIRE_T_BYTES, g.bytes);
    job_note(j, WIRE_T_COUNT, g.count);
    return r;
}

/* TREE_IN: a stream of entries and bytes becomes files below a directory.
 *
 * The tree is hostile, and so may be whoever else works in that directory: every name is reached
 * through `beneath` and never followed. A file gets its owner, mode, attributes, time and then its
 * name when its last byte is there; a directory its own when the whole tree is. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/beneath.h"
#include "init/file/finish.h"
#include "init/file/path.h"
#include "init/file/sparse.h"
#include "init/file/stage.h"
#include "init/file/tree_entry.h"

struct grow {
    struct job *j;
    char *top_path;
    bool top_made, keep_ids;
    struct beneath below;
    struct tree_entry e; /* the present one */
    char *fields;        /* its payload, for its extended attributes */
    bool open;           /* a file whose bytes are still to come */
    struct stage stage;  /* it has no name until they have */
    int dir;             /* of that name */
    char name[NAME_MAX + 1];
    uint64_t pos;
    struct finish finish;
    struct finish_later later;
    uint64_t files, bytes, count;
};

static int bad(struct grow *g, const char *why)
{
    return job_refuse(g->j, EINVAL, FAIL_INVALID_ARCHIVE, *g->e.path ? g->e.path : ".", why);
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

/* ---- directories ---- */

static int make_dir(struct grow *g)
{
    struct finish f = finish_of(&g->e, g->keep_ids);
    const char *name;
    struct stat st;
    if (g->e.path[0] == '\0')
        return g->top_made ? finish_later(&g->later, &g->below, "", &f) : 0;
    int dir = beneath_parent(&g->below, g->e.path, &name);
    if (dir < 0)
        return dir;
    bool made = mkdirat(dir, name, 0777) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    if (!made && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!made && S_ISLNK(st.st_mode))
        return 0; /* to a directory, perhaps: what comes next will tell */
    if (!made && !S_ISDIR(st.st_mode))
        return -ENOTDIR;
    _cleanup_fd_ int fd = beneath_open(&g->below, g->e.path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    int r = fd < 0 ? 0 : finish_xattrs(&g->e, g->fields, g->keep_ids, fd);
    if (r < 0 || (!made && g->j->uid != 0))
        return r; /* another's directory may be one to put files in, and no more */
    return finish_later(&g->later, &g->below, g->e.path, &f);
}

/* ---- files ---- */

/* Nobody said how it should be: then as it was. */
static void keep_nature(struct grow *g, const struct stat *old)
{
    g->finish.has_mode = g->j->uid == 0 || old->st_uid == g->j->uid;
    g->finish.mode = old->st_mode & 07777;
    if (!g->keep_ids && g->j->uid == 0) {
        g->finish.has_owner = true;
        g->finish.uid = old->st_uid;
        g->finish.gid = old->st_gid;
    }
}

static int make_file(struct grow *g)
{
    const char *name;
    struct stat old;
    int dir = beneath_parent(&g->below, g->e.path, &name);
    if (dir < 0)
        return dir;
    bool there = fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && S_ISDIR(old.st_mode))
        return -EISDIR;
    g->finish = finish_of(&g->e, g->keep_ids);
    if (there && S_ISREG(old.st_mode) && !g->e.has_mode)
        keep_nature(g, &old);
    int r = stage_open(dir, there && S_ISREG(old.st_mode), &g->stage);
    if (r < 0)
        return r;
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
    int r = ftruncate(g->stage.fd, (off_t)g->pos) < 0 ? -errno : 0;
    if (r == 0 && !g->stage.spooled)
        r = finish_fd(&g->finish, g->stage.fd, &g->e, g->fields);
    if (r == 0)
        r = stage_commit(&g->stage, g->name, false);
    if (r < 0)
        return fail(g, r);
    stage_done(&g->stage);
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
        int r = sparse_write(g->stage.fd, &g->pos, p, (size_t)n);
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

/* Whatever is not a directory makes way for what comes. */
static int make_way(int dir, const char *name)
{
    return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

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
        return job_refuse(g->j, EOPNOTSUPP, FAIL_NOT_SUPPORTED, g->e.path,
                          "is a device, and devices cannot be made here");
    if (r < 0)
        return r;
    struct finish f = finish_of(&g->e, g->keep_ids);
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
        return job_refuse(g->j, EOPNOTSUPP, FAIL_NOT_SUPPORTED, g->e.path,
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

static int finish_all(struct grow *g)
{
    const char *path;
    int r = finish_dirs(&g->later, &g->below, &path);
    if (r < 0) {
        (void)snprintf(g->e.path, sizeof(g->e.path), "%s", path);
        return fail(g, r);
    }
    return 0;
}

static void grow_done(struct grow *g)
{
    stage_done(&g->stage); /* half a file is none */
    finish_later_done(&g->later);
    free(g->fields);
    free(g->top_path);
    beneath_done(&g->below);
}

int op_tree_in(struct job *j)
{
    static struct grow g; /* two paths make it too large for the stack */
    g = (struct grow){ .j = j, .below = BENEATH_INIT, .stage = STAGE_INIT };
    g.keep_ids = ask_is(j->ask, WIRE_F_NUMERIC) && j->uid == 0;
    int r = open_top(&g);
    if (r == 0)
        r = take_tree(&g);
    if (r == 0)
        r = finish_all(&g);
    grow_done(&g);
    job_note(j, WIRE_T_FILES, g.files);
    job_note(j, WIRE_T_BYTES, g.bytes);
    job_note(j, WIRE_T_COUNT, g.count);
    return r;
}

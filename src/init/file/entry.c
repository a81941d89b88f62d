#include "init/file/entry.h"

#include <errno.h>
#include <limits.h>
#include <linux/limits.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NAME_BYTES 64            /* a longer login name is told by number only */
#define NAMES_KEPT 64            /* few ids own most files */
#define XATTRS_MAX (768u * 1024) /* of one file, told in one frame */

enum wire_file_type entry_type(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR: return WIRE_DIRECTORY;
    case S_IFLNK: return WIRE_SYMLINK;
    case S_IFIFO: return WIRE_FIFO;
    case S_IFSOCK: return WIRE_SOCKET;
    case S_IFCHR: return WIRE_CHARDEV;
    case S_IFBLK: return WIRE_BLOCKDEV;
    }
    return WIRE_REGULAR;
}

static uint64_t ns_of(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A replaced file has another inode, a written one other times; the size catches a write within
 * one tick of the clock that changes it. */
void etag_of(const struct stat *st, char out[ETAG_MAX])
{
    (void)snprintf(out, ETAG_MAX, "%llx-%llx-%llx-%llx", (unsigned long long)st->st_ino,
                   (unsigned long long)ns_of(st->st_mtim), (unsigned long long)ns_of(st->st_ctim),
                   (unsigned long long)st->st_size);
}

/* ---- names ---- */

static struct names {
    const char *file;
    bool read;
    struct account_text text;
    struct {
        bool used;
        uint32_t id;
        char name[NAME_BYTES]; /* "": it has none */
    } kept[NAMES_KEPT];
} users = { .file = "/etc/passwd" }, groups = { .file = "/etc/group" };

static const char *name_of(struct names *n, uint32_t id)
{
    if (!n->read) {
        n->read = true;
        (void)account_read(n->file, &n->text); /* for as long as the worker lives */
    }
    size_t at = id % NAMES_KEPT;
    if (!n->kept[at].used || n->kept[at].id != id) {
        n->kept[at].used = true;
        n->kept[at].id = id;
        if (!account_name_of(n->text, id, n->kept[at].name, NAME_BYTES))
            n->kept[at].name[0] = '\0';
    }
    return n->kept[at].name[0] ? n->kept[at].name : NULL;
}

/* ---- fields ---- */

static int put_text(struct buf *b, const struct stat *st, const struct entry_more *more)
{
    char etag[ETAG_MAX];
    int r = wire_put_str(b, WIRE_T_LINK, more->link);
    if (r < 0 || more->plain)
        return r;
    etag_of(st, etag);
    r = wire_put_str(b, WIRE_T_ETAG, etag);
    if (r == 0)
        r = wire_put_str(b, WIRE_T_OWNER, name_of(&users, st->st_uid));
    if (r == 0)
        r = wire_put_str(b, WIRE_T_GROUP, name_of(&groups, st->st_gid));
    return r;
}

int entry_put(struct buf *b, const char *path, const struct stat *st, const struct entry_more *more)
{
    static const struct entry_more none;
    if (!more)
        more = &none;
    bool device = S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode);
    const struct {
        enum wire_tag tag;
        bool put;
        uint64_t value;
    } ns[] = {
        { WIRE_T_TYPE, true, more->type ? more->type : entry_type(st->st_mode) },
        { WIRE_T_MODE, true, st->st_mode & 07777 },
        { WIRE_T_UID, true, st->st_uid },
        { WIRE_T_GID, true, st->st_gid },
        { WIRE_T_SIZE, true, (uint64_t)st->st_size },
        { WIRE_T_MTIME_NS, true, ns_of(st->st_mtim) },
        { WIRE_T_BLOCKS, !more->plain, (uint64_t)st->st_blocks * 512 },
        { WIRE_T_ATIME_NS, !more->plain, ns_of(st->st_atim) },
        { WIRE_T_CTIME_NS, !more->plain, ns_of(st->st_ctim) },
        { WIRE_T_INODE, !more->plain, st->st_ino },
        { WIRE_T_NLINK, !more->plain, st->st_nlink },
        { WIRE_T_RDEV, device, st->st_rdev },
        { WIRE_T_LENGTH, more->has_length, more->length },
    };
    int r = wire_put_str(b, WIRE_T_PATH, path);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(ns); i++)
        if (ns[i].put)
            r = wire_put_u64(b, ns[i].tag, ns[i].value);
    return r < 0 ? r : put_text(b, st, more);
}

/* ---- extended attributes ---- */

static bool in_tree(const char *name)
{
    return strncmp(name, "user.", 5) == 0 || strcmp(name, "security.capability") == 0;
}

int entry_put_xattrs(struct buf *b, const char *path, bool follow, bool only_tree)
{
    static char list[XATTR_LIST_MAX], pair[XATTR_NAME_MAX + 1 + XATTR_SIZE_MAX];
    size_t total = 0;
    ssize_t n = follow ? listxattr(path, list, sizeof(list)) : llistxattr(path, list, sizeof(list));
    if (n < 0)
        return errno == EOPNOTSUPP ? 0 : -errno;
    for (const char *name = list; name < list + n; name += strlen(name) + 1) {
        size_t name_n = strlen(name) + 1;
        if (name_n > XATTR_NAME_MAX + 1 || (only_tree && !in_tree(name)))
            continue;
        memcpy(pair, name, name_n);
        ssize_t v = follow ? getxattr(path, name, pair + name_n, XATTR_SIZE_MAX)
                           : lgetxattr(path, name, pair + name_n, XATTR_SIZE_MAX);
        if (v < 0)
            continue;
        total += name_n + (size_t)v;
        if (total > XATTRS_MAX)
            return -E2BIG;
        int r = wire_put(b, WIRE_T_XATTR, pair, name_n + (size_t)v);
        if (r < 0)
            return r;
    }
    return 0;
}

int entry_put_asked(struct job *j, struct buf *b, const char *path)
{
    if (!ask_is(j->ask, WIRE_F_XATTRS))
        return 0;
    int r = entry_put_xattrs(b, path, false, true);
    return r == -ENOMEM || r == -EMSGSIZE ? r : 0;
}

int entry_send(struct job *j, int dir, const char *name, const char *path, const struct stat *st)
{
    char text[PATH_MAX];
    struct entry_more more = { 0 };
    if (S_ISLNK(st->st_mode)) {
        ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);
        text[n < 0 ? 0 : n] = '\0';
        more.link = text;
    }
    struct buf *b = talk_begin(&j->talk);
    int r = entry_put(b, path, st, &more);
    if (r == 0)
        r = entry_put_asked(j, b, path);
    if (r == 0)
        r = talk_end(&j->talk, WIRE_ENTRY);
    return r < 0 ? job_fail(j, r, path) : 0;
}

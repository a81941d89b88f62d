/* TREE_OUT: files and directories as a stream of entries and bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/entry.h"
#include "init/file/links.h"
#include "init/file/path.h"
#include "init/file/self.h"
#include "init/file/walk.h"

struct tree {
    struct job *j;
    struct links links;
    uint64_t files, bytes;
};

/* One thing on its way out: (dir, name) is what it is, `rel` what it is called in the tree. */
struct leaf {
    int dir;
    const char *name, *path, *rel;
    struct stat st;
};

static int send_entry(struct tree *t, const struct leaf *f, const struct entry_more *more)
{
    char self[SELF_PATH_MAX];
    struct buf *b = talk_begin(&t->j->talk);
    int r = entry_put(b, f->rel, &f->st, more);
    if (r == 0 && more->type == 0) {
        const char *at = f->name;
        if (f->dir != AT_FDCWD)
            at = self_path(f->dir, f->name, self) == 0 ? self : f->path;
        (void)entry_put_xattrs(b, at, f->dir == AT_FDCWD, true);
    }
    return r < 0 ? r : talk_end(&t->j->talk, WIRE_ENTRY);
}

/* Exactly as many bytes as were told, whatever becomes of the file. */
static int send_bytes(struct tree *t, int fd, uint64_t size, const char *path)
{
    uint64_t left = size;
    while (left > 0) {
        size_t n = left < WIRE_BULK_MAX ? (size_t)left : WIRE_BULK_MAX;
        ssize_t done = talk_data_file(&t->j->talk, fd, n);
        if (done < 0)
            return (int)done;
        left -= n;
        if ((size_t)done == n)
            continue;
        int r = talk_zeros(&t->j->talk, left);
        if (r < 0)
            return r;
        return job_skip_why(t->j, ESTALE, FAIL_FILE_CHANGED, path,
                            "became shorter while it was read: what is missing is zeros");
    }
    return 0;
}

static int send_regular(struct tree *t, struct leaf *f)
{
    struct entry_more more = { .plain = true };
    if (f->st.st_nlink > 1 && !ask_is(t->j->ask, WIRE_F_WHOLE)) {
        more.link = links_seen(&t->links, &f->st, f->rel);
        if (more.link) {
            more.type = WIRE_HARDLINK;
            f->st.st_size = 0;
            t->files++;
            return send_entry(t, f, &more);
        }
    }
    _cleanup_fd_ int fd = open_regular(f->dir, f->name, O_RDONLY | O_NOFOLLOW);
    if (fd == -ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &f->st) < 0)
        return job_skip(t->j, fd < 0 ? (fd == -ELOOP ? ESTALE : fd) : errno, f->path);
    t->files++;
    t->bytes += (uint64_t)f->st.st_size;
    int r = send_entry(t, f, &more);
    return r < 0 ? r : send_bytes(t, fd, (uint64_t)f->st.st_size, f->path);
}

static int send_leaf(struct tree *t, struct leaf *f)
{
    char text[PATH_MAX];
    struct entry_more more = { .plain = true };
    if (S_ISREG(f->st.st_mode))
        return send_regular(t, f);
    if (S_ISSOCK(f->st.st_mode))
        return job_skip_why(t->j, EOPNOTSUPP, FAIL_NOT_SUPPORTED, f->path, "is a socket");
    if (S_ISLNK(f->st.st_mode)) {
        ssize_t n = readlinkat(f->dir, f->name, text, sizeof(text) - 1);
        if (n < 0)
            return errno == ENOENT ? 0 : job_skip(t->j, errno, f->path);
        text[n] = '\0';
        more.link = text;
    }
    f->st.st_size = 0;
    if (!S_ISDIR(f->st.st_mode))
        t->files++;
    return send_entry(t, f, &more);
}

/* What lies in a directory; takes fd. Each is called `prefix` and what leads there from fd. */
static int send_below(struct tree *t, int fd, const char *path, const char *prefix)
{
    _cleanup_(walk_done) struct walk w;
    _cleanup_(buf_done) struct buf name = BUF_INIT(WIRE_PAYLOAD_MAX);
    struct walk_item *item;
    int r = walk_init(&w, fd, path);
    if (r == 0)
        r = buf_puts(&name, prefix);
    while (r >= 0 && (r = walk_next(&w, &item)) > 0) {
        if (item->kind == WALK_LEAVE)
            continue;
        if (item->kind == WALK_FAIL) {
            r = job_skip(t->j, item->code, item->path);
            continue;
        }
        struct leaf f = { item->dir, item->name, item->path, item->rel, item->st };
        name.len = strlen(prefix);
        r = buf_puts(&name, item->rel);
        f.rel = name.data;
        if (r == 0)
            r = send_leaf(t, &f);
        if (r == 0)
            r = talk_beat(&t->j->talk);
    }
    return r < 0 ? job_fail(t->j, r, path) : 0;
}

/* With one path its last name is what it is called; with several the paths are told apart. */
static const char *called(const struct ask *ask, const char *path)
{
    if (path[1] == '\0')
        return ".";
    return ask->n_paths > 1 ? path + 1 : strrchr(path, '/') + 1;
}

static int failed(struct tree *t, int code, const char *path)
{
    return t->j->ask->n_paths > 1 ? job_skip(t->j, code, path) : job_fail(t->j, code, path);
}

static int send_top(struct tree *t, const char *asked)
{
    const struct ask *ask = t->j->ask;
    _cleanup_free_ char *path = NULL, *prefix = NULL;
    int r = path_of(t->j, asked, &path);
    if (r < 0)
        return r;
    struct leaf f = { AT_FDCWD, path, path, called(ask, path), { 0 } };
    if (stat(path, &f.st) < 0)
        return failed(t, errno, path);
    if (ask_is(ask, WIRE_F_CONTENTS)) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? failed(t, errno, path) : send_below(t, fd, path, "");
    }
    if (!S_ISDIR(f.st.st_mode)) {
        _cleanup_fd_ int fd = open_regular(AT_FDCWD, path, O_RDONLY);
        if (fd < 0)
            return failed(t, fd, path);
        struct entry_more more = { .plain = true };
        r = fstat(fd, &f.st) < 0 ? -errno : send_entry(t, &f, &more);
        t->files++;
        t->bytes += (uint64_t)f.st.st_size;
        return r < 0 ? r : send_bytes(t, fd, (uint64_t)f.st.st_size, path);
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed(t, errno, path);
    r = send_leaf(t, &f);
    if (r == 0 && asprintf(&prefix, "%s/", f.rel) < 0) {
        prefix = NULL;
        r = -ENOMEM;
    }
    if (r < 0) {
        (void)close(fd);
        return job_fail(t->j, r, path);
    }
    return send_below(t, fd, path, prefix);
}

int op_tree_out(struct job *j)
{
    struct tree t = { .j = j };
    int r = 0;
    for (size_t i = 0; r == 0 && i < j->ask->n_paths; i++)
        r = send_top(&t, j->ask->paths[i]);
    links_done(&t.links);
    job_note(j, WIRE_T_FILES, t.files);
    job_note(j, WIRE_T_BYTES, t.bytes);
    return r;
}

#include "init/file/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PATH_BYTES_MAX (600u * 1024) /* the deepest with the longest names */
#define LEVEL_BYTES (4u * 1024 * 1024)
#define ALL_BYTES (48u * 1024 * 1024) /* of names; above it a level reads in small pieces */
#define LEVEL_BYTES_MIN 1u            /* one read of the directory */

int walk_open_dir(int dir, const char *name)
{
    int fd =
        openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static bool is_made_up(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return false;
    return fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
           fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC ||
           fs.f_type == DEVPTS_SUPER_MAGIC;
}

/* Takes fd. */
static int push(struct walk *w, int fd, size_t path_n)
{
    _cleanup_fd_ int own = fd;
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 16;
        struct walk_level *levels = realloc(w->levels, cap * sizeof(*levels));
        if (!levels)
            return -ENOMEM;
        w->levels = levels;
        w->cap = cap;
    }
    struct walk_level l = { .fd = fd, .path_n = path_n };
    if (fstat(fd, &l.st) < 0)
        return -errno;
    /* What a walk was not asked to begin in, it does not wander into: /proc below "/". */
    l.barren = w->n > 0 && (w->levels[w->n - 1].barren ||
                            (l.st.st_dev != w->levels[w->n - 1].st.st_dev && is_made_up(fd)));
    w->levels[w->n++] = l;
    (void)take_fd(own);
    return 0;
}

static void pop(struct walk *w)
{
    struct walk_level *l = &w->levels[--w->n];
    w->bytes -= l->names.cap;
    names_done(&l->names);
    (void)close(l->fd);
}

int walk_init(struct walk *w, int top, const char *path)
{
    *w = (struct walk){ .path = BUF_INIT(PATH_BYTES_MAX) };
    int r = buf_puts(&w->path, path);
    if (r < 0) {
        (void)close(top);
        return r;
    }
    w->top_n = strcmp(path, "/") == 0 ? 0 : w->path.len;
    return push(w, top, w->top_n);
}

void walk_done(struct walk *w)
{
    while (w->n > 0)
        pop(w);
    free(w->levels);
    buf_done(&w->path);
    w->levels = NULL;
}

void walk_skip(struct walk *w)
{
    w->enter = false;
}

/* Set the path to that of `name` in the level. */
static int set_path(struct walk *w, const struct walk_level *l, const char *name)
{
    w->path.len = l->path_n;
    int r = buf_append(&w->path, "/", 1);
    if (r == 0)
        r = buf_puts(&w->path, name);
    w->item.path = w->path.data;
    w->item.rel = w->path.data + w->top_n + 1;
    return r;
}

static int fail(struct walk *w, int r, struct walk_item **ret_item)
{
    w->item.kind = WALK_FAIL;
    w->item.code = -r;
    *ret_item = &w->item;
    return 1;
}

/* Go into the directory that was told last. */
static int enter(struct walk *w)
{
    if (w->n >= WALK_DEPTH_MAX)
        return -EMFILE;
    int fd = walk_open_dir(w->item.dir, w->item.name);
    if (fd == -ELOOP || fd == -ENOTDIR)
        return -ESTALE; /* it was one a moment ago */
    return fd < 0 ? fd : push(w, fd, w->path.len);
}

static int refill(struct walk *w, struct walk_level *l)
{
    if (l->at < l->names.n || l->barren)
        return 0;
    size_t before = l->names.cap;
    l->at = 0;
    int r = names_more(&l->names, l->fd, w->bytes > ALL_BYTES ? LEVEL_BYTES_MIN : LEVEL_BYTES);
    w->bytes += l->names.cap - before;
    return r;
}

static int tell_leave(struct walk *w, struct walk_item **ret_item)
{
    struct walk_level *l = &w->levels[w->n - 1], *up = l - 1;
    w->path.len = l->path_n;
    w->path.data[l->path_n] = '\0';
    w->item = (struct walk_item){
        .kind = WALK_LEAVE,
        .dir = up->fd,
        .self = l->fd,
        .name = names_get(&up->names, up->at - 1),
        .path = w->path.data,
        .rel = w->path.data + w->top_n + 1,
        .st = l->st,
        .depth = w->n - 1,
    };
    w->leave = true;
    *ret_item = &w->item;
    return 1;
}

int walk_next(struct walk *w, struct walk_item **ret_item)
{
    int r;
    if (w->leave)
        pop(w);
    w->leave = false;
    if (w->enter) {
        w->enter = false;
        r = enter(w);
        if (r < 0 && r != -ENOENT)
            return fail(w, r, ret_item);
    }
    for (;;) {
        struct walk_level *l = &w->levels[w->n - 1];
        r = refill(w, l);
        if (r < 0) {
            l->barren = true;
            w->path.data[w->path.len = l->path_n] = '\0';
            w->item.path = w->path.data;
            return r == -ENOMEM ? r : fail(w, r, ret_item);
        }
        if (l->at >= l->names.n)
            return w->n == 1 ? 0 : tell_leave(w, ret_item);
        const char *name = names_get(&l->names, l->at++);
        w->item = (struct walk_item){ .dir = l->fd, .name = name, .depth = w->n, .self = -1 };
        r = set_path(w, l, name);
        if (r < 0)
            return r;
        if (fstatat(l->fd, name, &w->item.st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT)
                continue;
            return fail(w, -errno, ret_item);
        }
        w->enter = S_ISDIR(w->item.st.st_mode);
        w->item.kind = w->enter ? WALK_ENTER : WALK_LEAF;
        *ret_item = &w->item;
        return 1;
    }
}

#include "unpack/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "unpack/names.h"
#include "unpack/textdiff.h"
#include "wire/unpack.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define COMPARE_MAX (16ll * 1024 * 1024) /* larger files are taken to differ */
#define BLOCK (64 * 1024)
#define OUT_MAX (BLOCK + PATH_MAX + CHANGE_TEXT_MAX + 128)

/* One directory in one state; -1: nothing there. */
struct side {
    int upper, lower;
};

/* A name in one of them. */
struct thing {
    bool there, in_upper;
    struct stat st;
};

struct walk {
    int out;
    const struct wanted *wanted;
    uint64_t n;
    int64_t until_ms;
    bool cut; /* not everything could be told */
    size_t text_left;
    struct buf buf, text;
    char path[PATH_MAX];
    char mine[BLOCK], theirs[BLOCK];
};

/* ---- telling ---- */

static int flush(struct walk *w, struct err *err)
{
    int r = fd_write_full(w->out, w->buf.data, w->buf.len);
    w->buf.len = 0;
    return r < 0 ? err_set(err, -r, "cannot write what changed") : 0;
}

static int put(struct walk *w, const struct change_head *head, struct err *err)
{
    if (buf_append(&w->buf, head, sizeof(*head)) < 0 ||
        buf_append(&w->buf, w->path, head->path_len) < 0 ||
        buf_append(&w->buf, w->text.data, head->text_len) < 0)
        return err_set(err, ENOMEM, "out of memory");
    return w->buf.len >= BLOCK || head->kind == CHANGE_END ? flush(w, err) : 0;
}

static uint32_t mode_of(const struct thing *t)
{
    return t->there ? t->st.st_mode : 0;
}

/* Its text, if there is one, is in w->text. */
static int tell(struct walk *w, enum change_kind kind, const struct thing *before,
                const struct thing *after, enum change_text text, struct err *err)
{
    const struct stat *st = after->there ? &after->st : &before->st;
    struct change_head head = {
        .kind = kind,
        .mode = mode_of(after),
        .mode_before = mode_of(before),
        .text = text,
        .text_len = (uint32_t)w->text.len,
        .path_len = (uint32_t)strlen(w->path),
        .size = after->there && S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .size_before =
            before->there && S_ISREG(before->st.st_mode) ? (uint64_t)before->st.st_size : 0,
        .mtime_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000,
    };
    if (++w->n > CHANGES_MAX) {
        w->cut = true;
        return -E2BIG;
    }
    return put(w, &head, err);
}

/* ---- looking ---- */

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static struct thing look(const struct side *s, const char *name)
{
    struct thing t = { 0 };
    if (s->upper >= 0 && fstatat(s->upper, name, &t.st, AT_SYMLINK_NOFOLLOW) == 0) {
        t.in_upper = true;
        t.there = !is_whiteout(&t.st);
    } else {
        t.there = s->lower >= 0 && fstatat(s->lower, name, &t.st, AT_SYMLINK_NOFOLLOW) == 0;
    }
    return t;
}

static bool is_opaque(int dir)
{
    char mark[8] = "";
    return fgetxattr(dir, "trusted.overlay.opaque", mark, sizeof(mark)) == 1 && mark[0] == 'y';
}

static struct side enter(const struct side *s, const char *name, const struct thing *t)
{
    struct side in = { -1, -1 };
    if (!t->there || !S_ISDIR(t->st.st_mode))
        return in;
    if (t->in_upper)
        in.upper = openat(s->upper, name, OPEN_DIR);
    if (s->lower >= 0 && !(in.upper >= 0 && is_opaque(in.upper)))
        in.lower = openat(s->lower, name, OPEN_DIR); /* a file there is hidden: none */
    return in;
}

static void leave(struct side *s)
{
    const int fds[] = { s->upper, s->lower };
    fd_close_all(fds, 2);
}

static bool is_over(const struct walk *w)
{
    return clock_mono_ms() >= w->until_ms;
}

static bool same_bytes(struct walk *w, int a, int b)
{
    while (!is_over(w)) { /* files of a sandbox that runs may grow as fast as they are read */
        ssize_t n = read(a, w->mine, sizeof(w->mine));
        ssize_t m = read(b, w->theirs, sizeof(w->theirs));
        if (n != m || n < 0 || memcmp(w->mine, w->theirs, (size_t)n) != 0)
            return false;
        if (n == 0)
            return true;
    }
    return false;
}

static int open_in(const struct side *s, const struct thing *t, const char *name)
{
    return openat(t->in_upper ? s->upper : s->lower, name, OPEN_FILE);
}

static bool same_link(const struct side *a, const struct thing *ta, const struct side *b,
                      const struct thing *tb, const char *name)
{
    char one[PATH_MAX], two[PATH_MAX];
    ssize_t n = readlinkat(ta->in_upper ? a->upper : a->lower, name, one, sizeof(one));
    ssize_t m = readlinkat(tb->in_upper ? b->upper : b->lower, name, two, sizeof(two));
    return n >= 0 && n == m && memcmp(one, two, (size_t)n) == 0;
}

static bool same_owner(const struct stat *a, const struct stat *b)
{
    return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid &&
           a->st_rdev == b->st_rdev;
}

/* A snapshot keeps the number of an inode and the time of its last change, which nobody can set. */
static bool same_inode(const struct thing *a, const struct thing *b)
{
    return a->in_upper && b->in_upper && a->st.st_ino == b->st.st_ino &&
           a->st.st_ctim.tv_sec == b->st.st_ctim.tv_sec &&
           a->st.st_ctim.tv_nsec == b->st.st_ctim.tv_nsec && a->st.st_size == b->st.st_size;
}

/* Times are coarse: what was made in two copies at once may agree in all of this. */
static bool is_shared(const struct walk *w, const struct thing *a, const struct thing *b)
{
    int64_t ms = (int64_t)a->st.st_ctim.tv_sec * 1000 + a->st.st_ctim.tv_nsec / 1000000;
    return same_inode(a, b) && (ms < w->wanted->shared_before_ms || a->st.st_size > COMPARE_MAX);
}

static bool same(struct walk *w, const struct side *a, const struct thing *ta, const struct side *b,
                 const struct thing *tb, const char *name)
{
    if ((!ta->in_upper && !tb->in_upper) || is_shared(w, ta, tb))
        return true;
    if (!same_owner(&ta->st, &tb->st))
        return false;
    if (S_ISLNK(ta->st.st_mode))
        return same_link(a, ta, b, tb, name);
    if (!S_ISREG(ta->st.st_mode))
        return true;
    if (ta->st.st_size != tb->st.st_size || ta->st.st_size > COMPARE_MAX)
        return false;
    _cleanup_fd_ int fa = open_in(a, ta, name), fb = open_in(b, tb, name);
    return fa >= 0 && fb >= 0 && same_bytes(w, fa, fb);
}

/* ---- texts ---- */

/* What a file or a link holds; -EFBIG, or -ENODATA for what is neither. */
static int read_content(const struct side *s, const struct thing *t, const char *name,
                        struct buf *out)
{
    if (!t->there)
        return 0;
    if (S_ISLNK(t->st.st_mode)) {
        ssize_t n = buf_reserve(out, PATH_MAX) < 0
                        ? -1
                        : readlinkat(t->in_upper ? s->upper : s->lower, name, out->data, PATH_MAX);
        out->len = n < 0 ? 0 : (size_t)n;
        return n < 0 ? -ENODATA : 0;
    }
    if (!S_ISREG(t->st.st_mode))
        return -ENODATA;
    if (t->st.st_size > CHANGE_TEXT_FILE_MAX)
        return -EFBIG;
    struct stat st;
    _cleanup_fd_ int fd = open_in(s, t, name);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) /* gone, or swapped meanwhile */
        return -ENODATA;
    for (ssize_t n = 1; n > 0; out->len += (size_t)n) {
        if (buf_reserve(out, BLOCK) < 0)
            return -EFBIG;
        n = read(fd, out->data + out->len, BLOCK);
        if (n < 0)
            return -ENODATA;
    }
    return 0;
}

static bool is_text(const struct buf *b)
{
    return !b->len || (!memchr(b->data, '\0', b->len) && utf8_valid(b->data, b->len));
}

static enum change_text compare_text(struct walk *w, const struct buf *a, const struct buf *b)
{
    if (!is_text(a) || !is_text(b))
        return CHANGE_TEXT_BINARY;
    int r = textdiff(a->len ? a->data : "", a->len, b->len ? b->data : "", b->len, &w->text);
    if (r < 0 && r != -EMSGSIZE)
        w->text.len = 0;
    if (w->text.len > w->text_left || (r < 0 && r != -EMSGSIZE)) {
        w->text.len = 0;
        return CHANGE_TEXT_LARGE;
    }
    w->text_left -= w->text.len;
    return r < 0 ? CHANGE_TEXT_CUT : CHANGE_TEXT_WHOLE;
}

/* How it changed, left in w->text. */
static enum change_text text_of(struct walk *w, const struct side *before, const struct thing *tb,
                                const struct side *after, const struct thing *ta, const char *name)
{
    _cleanup_(buf_done) struct buf a = BUF_INIT(CHANGE_TEXT_FILE_MAX + 2 * BLOCK);
    _cleanup_(buf_done) struct buf b = BUF_INIT(CHANGE_TEXT_FILE_MAX + 2 * BLOCK);
    w->text.len = 0;
    if (!w->wanted->text)
        return CHANGE_TEXT_NONE;
    int r = read_content(before, tb, name, &a);
    if (r == 0)
        r = read_content(after, ta, name, &b);
    if (r < 0)
        return r == -EFBIG ? CHANGE_TEXT_LARGE : CHANGE_TEXT_NONE;
    return compare_text(w, &a, &b);
}

/* ---- the walk ---- */

static int walk_dir(struct walk *w, const struct side *before, const struct side *after,
                    struct err *err);

static int walk_into(struct walk *w, const struct side *before, const struct thing *tb,
                     const struct side *after, const struct thing *ta, const char *name,
                     struct err *err)
{
    struct side b = enter(before, name, tb), a = enter(after, name, ta);
    int r = walk_dir(w, &b, &a, err);
    leave(&b);
    leave(&a);
    return r;
}

static int compare_one(struct walk *w, const struct side *before, const struct side *after,
                       const char *name, struct err *err)
{
    static const struct thing nothing;
    enum wanted_how how = wanted_is(w->wanted, w->path);
    if (is_over(w)) /* a sandbox that runs may make directories as fast as they are walked */
        return err_set(err, ETIMEDOUT, "the files were not walked in time");
    if (how == WANTED_NOT)
        return 0;
    struct thing tb = look(before, name), ta = look(after, name);
    if (!tb.there && !ta.there)
        return 0;
    bool differs = !tb.there || !ta.there || !same(w, before, &tb, after, &ta, name);
    int r = 0;
    if (differs && (how == WANTED_WHOLE || !ta.there)) { /* what was in it goes with it, untold */
        enum change_text text = text_of(w, before, &tb, after, &ta, name);
        r = tell(w,
                 !tb.there   ? CHANGE_ADDED
                 : !ta.there ? CHANGE_REMOVED
                             : CHANGE_CHANGED,
                 &tb, &ta, text, err);
        w->text.len = 0;
    }
    if (r < 0 || !ta.there || !S_ISDIR(ta.st.st_mode))
        return r;
    bool both_dirs = tb.there && S_ISDIR(tb.st.st_mode);
    return walk_into(w, before, both_dirs ? &tb : &nothing, after, &ta, name, err);
}

/* Where both states see the image's directory, what neither has in its upper one is the same. */
static int gather(const struct side *before, const struct side *after, struct names *names)
{
    int r = before->upper < 0 ? 0 : names_add(names, before->upper);
    if (r == 0 && after->upper >= 0)
        r = names_add(names, after->upper);
    if ((before->lower < 0) == (after->lower < 0))
        return r;
    return r < 0 ? r : names_add(names, before->lower < 0 ? after->lower : before->lower);
}

static int walk_dir(struct walk *w, const struct side *before, const struct side *after,
                    struct err *err)
{
    _cleanup_(names_done) struct names names = NAMES_INIT;
    size_t len = strlen(w->path);
    if (gather(before, after, &names) < 0)
        w->cut = true; /* too deep, or gone meanwhile */
    int r = 0;
    for (size_t i = 0; r == 0 && i < names.n; i++) {
        size_t n = strlen(names.items[i]);
        if (len + n + 2 > sizeof(w->path)) {
            w->cut = true;
            continue;
        }
        w->path[len] = '/';
        memcpy(w->path + len + 1, names.items[i], n + 1);
        r = compare_one(w, before, after, names.items[i], err);
        w->path[len] = '\0';
    }
    return r;
}

int changes_write(int before, int after, int image, const struct wanted *ask, int64_t until_ms,
                  int out, struct err *err)
{
    struct walk *w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(err, ENOMEM, "out of memory");
    w->out = out;
    w->wanted = ask;
    w->until_ms = until_ms;
    w->text_left = CHANGES_TEXT_MAX;
    w->buf = (struct buf)BUF_INIT(OUT_MAX);
    w->text = (struct buf)BUF_INIT(CHANGE_TEXT_MAX);
    const struct side b = { before, image }, a = { after, image };
    int r = walk_dir(w, &b, &a, err);
    if (r == -E2BIG)
        r = 0;
    w->path[0] = '\0';
    struct change_head last = { .kind = CHANGE_END, .mode = w->cut ? CHANGES_CUT : 0 };
    if (r == 0)
        r = put(w, &last, err);
    buf_done(&w->buf);
    buf_done(&w->text);
    free(w);
    return r;
}

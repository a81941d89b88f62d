/* WATCH: what changes at a path and, if asked, below it, for as long as someone listens.
 *
 * A directory that appears is watched, and what was put into it before that is told as created; one
 * that is moved takes its watches with it under its new name, one that leaves loses them. When the
 * kernel had to drop events we say so and look at everything again, for new directories. A lone
 * file is watched through its directory: whoever saves it may well put another in its place.
 *
 * A file that the API writes gets its name when it is whole, and is told as written. E2B's daemon
 * writes in place, and gives the file to its user before: its watchers wait for that chmod, so with
 * FOR_USER it is told, where that daemon's own would be. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/entry.h"
#include "init/file/path.h"
#include "init/file/placed.h"
#include "init/file/walk.h"

#define WATCHES_MAX 32768 /* directories in one watch */
#define EVENTS_BYTES (64u * 1024)
#define SETTLE_MS 100 /* for the other half of a rename to come */
#define LOOK_MS 60000 /* at the latest */
#define TOLD_MAX 4096 /* names told of before their event came */
#define MOVES_MAX 64  /* directories between two names */
#define MASK \
    (IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_EXCL_UNLINK)

struct move {
    uint32_t cookie;
    char *path;  /* where the directory was; NULL: it is free */
    bool staged; /* a file of ours that was put in place of another */
};

struct watching {
    struct job *j;
    int fd;
    bool recursive;
    const char *only; /* a lone file's name; NULL: everything */
    char *top;
    char **dirs; /* by watch descriptor; NULL: none */
    size_t n, watched;
    struct move moves[MOVES_MAX];
    size_t move_at;
    char *told[TOLD_MAX];
    size_t n_told;
    bool gone; /* the top */
};

/* ---- which directories are watched ---- */

static int remember(struct watching *w, int wd, const char *path)
{
    size_t at = (size_t)wd;
    if (at >= w->n) {
        size_t n = at * 2 + 16;
        char **dirs = realloc(w->dirs, n * sizeof(*dirs));
        if (!dirs)
            return -ENOMEM;
        memset(dirs + w->n, 0, (n - w->n) * sizeof(*dirs));
        w->dirs = dirs;
        w->n = n;
    }
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    w->watched += w->dirs[at] == NULL;
    free(w->dirs[at]);
    w->dirs[at] = copy;
    return 0;
}

static void forget(struct watching *w, int wd)
{
    size_t at = (size_t)wd;
    if (wd < 0 || at >= w->n || !w->dirs[at])
        return;
    free(w->dirs[at]);
    w->dirs[at] = NULL;
    w->watched--;
}

static int watch_dir(struct watching *w, const char *path, uint32_t more)
{
    if (w->watched >= WATCHES_MAX)
        return -ENOSPC;
    int wd = inotify_add_watch(w->fd, path, MASK | IN_ONLYDIR | more);
    if (wd < 0)
        return -errno;
    return remember(w, wd, path);
}

static bool is_below(const char *path, const char *top)
{
    size_t n = strlen(top);
    return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* A directory has another name: so has all that is watched in it. */
static int rename_dirs(struct watching *w, const char *from, const char *to)
{
    for (size_t i = 0; i < w->n; i++) {
        char *path = NULL;
        if (!w->dirs[i] || !is_below(w->dirs[i], from))
            continue;
        if (asprintf(&path, "%s%s", to, w->dirs[i] + strlen(from)) < 0)
            return -ENOMEM;
        free(w->dirs[i]);
        w->dirs[i] = path;
    }
    return 0;
}

static void drop_dirs(struct watching *w, const char *path)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->dirs[i] && is_below(w->dirs[i], path)) {
            (void)inotify_rm_watch(w->fd, (int)i);
            forget(w, (int)i);
        }
}

static int too_many(struct watching *w, int r, const char *path)
{
    if (r == -ENOSPC)
        return job_refuse(w->j, ENOSPC, FAIL_TOO_MANY_WATCHES, path,
                          "has more directories below it than can be watched");
    return job_fail(w->j, r, path);
}

/* ---- telling ---- */

static int tell(struct watching *w, enum wire_change change, const char *path, uint32_t cookie)
{
    struct talk *t = &w->j->talk;
    char text[PATH_MAX];
    struct entry_more more = { 0 };
    struct stat st;
    struct buf *b = talk_begin(t);
    int r = wire_put_u64(b, WIRE_T_CHANGE, change);
    if (r == 0 && cookie)
        r = wire_put_u64(b, WIRE_T_COOKIE, cookie);
    bool there = change != WIRE_REMOVED && change != WIRE_RENAMED_FROM && change != WIRE_OVERFLOW &&
                 lstat(path, &st) == 0;
    if (there && S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(path, text, sizeof(text) - 1);
        text[n < 0 ? 0 : n] = '\0';
        more.link = text;
    }
    if (r == 0)
        r = there ? entry_put(b, path, &st, &more) : wire_put_str(b, WIRE_T_PATH, path);
    if (r == 0 && there)
        r = entry_put_asked(w->j, b, path);
    return r < 0 ? r : talk_end(t, WIRE_CHANGE);
}

/* What a look told of, an event that was on its way need not tell again. */
static void note_told(struct watching *w, const char *path)
{
    if (w->n_told < TOLD_MAX)
        w->told[w->n_told++] = strdup(path);
}

static bool was_told(struct watching *w, const char *path)
{
    for (size_t i = 0; i < w->n_told; i++)
        if (w->told[i] && strcmp(w->told[i], path) == 0) {
            free(w->told[i]);
            w->told[i] = w->told[--w->n_told];
            return true;
        }
    return false;
}

static void forget_told(struct watching *w)
{
    while (w->n_told > 0)
        free(w->told[--w->n_told]);
}

static int tell_owned(struct watching *w, const char *path)
{
    return ask_is(w->j->ask, WIRE_F_FOR_USER) ? tell(w, WIRE_ATTRIBUTES, path, 0) : 0;
}

/* A file that was made elsewhere and then given its name comes whole: nobody will hear of a
 * write to it, so that is told with it. */
static int tell_new(struct watching *w, const char *path)
{
    struct stat st;
    int r = tell(w, WIRE_CREATED, path, 0);
    if (r < 0 || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return r;
    r = placed_how(&st) == PLACED_NEW ? tell_owned(w, path) : 0;
    return r == 0 && st.st_size > 0 ? tell(w, WIRE_WRITTEN, path, 0) : r;
}

/* A file that the API made under a name that is nobody's business has got its own. */
static int tell_placed(struct watching *w, const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && placed_how(&st) == PLACED_NEW)
        return tell_new(w, path);
    int r = tell_owned(w, path);
    return r < 0 ? r : tell(w, WIRE_WRITTEN, path, 0);
}

/* ---- looking ---- */

/* Watch a directory and all below it; with `aloud` tell of what is in it. Each is watched before it
 * is read, so nothing falls between. One that vanished meanwhile is no failure. */
static int look_through(struct watching *w, const char *path, uint32_t more, bool aloud)
{
    _cleanup_(walk_done) struct walk walk = { 0 };
    struct walk_item *item;
    int r = watch_dir(w, path, more | (more ? 0 : IN_DONT_FOLLOW));
    if (r == -ENOSPC || r == -ENOMEM || (r < 0 && more))
        return too_many(w, r, path);
    if (r < 0 || !w->recursive)
        return 0;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (more ? 0 : O_NOFOLLOW));
    if (fd < 0)
        return 0;
    r = walk_init(&walk, fd, path);
    while (r >= 0 && (r = walk_next(&walk, &item)) > 0) {
        r = 0;
        if (item->kind == WALK_ENTER) {
            r = watch_dir(w, item->path, IN_DONT_FOLLOW);
            if (r == -ENOSPC || r == -ENOMEM)
                return too_many(w, r, item->path);
            r = 0;
        }
        if (aloud && (item->kind == WALK_ENTER || item->kind == WALK_LEAF)) {
            r = tell_new(w, item->path);
            note_told(w, item->path);
        }
        if (r >= 0)
            r = talk_beat(&w->j->talk);
    }
    return r < 0 ? job_fail(w->j, r, path) : 0;
}

static int look_again(struct watching *w)
{
    int r = tell(w, WIRE_OVERFLOW, w->top, 0);
    if (r < 0 || w->only)
        return r;
    for (size_t i = 0; i < w->n; i++) /* their names may be wrong by now */
        forget(w, (int)i);
    return look_through(w, w->top, IN_DELETE_SELF | IN_MOVE_SELF, false);
}

/* ---- renames ---- */

/* A file while it is being written (see stage.h) is nobody's business. */
static bool is_staged(const char *name)
{
    return name[0] == '.' && name[1] == '~' && strspn(name + 2, "0123456789abcdef") == 24 &&
           name[26] == '\0';
}

/* As some filesystems call a file that has no name yet. */
static bool is_nameless(const char *name, const char *path)
{
    struct stat st;
    return name[0] == '#' && name[1] && name[1 + strspn(name + 1, "0123456789")] == '\0' &&
           lstat(path, &st) < 0;
}

static struct move *find_move(struct watching *w, uint32_t cookie)
{
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (w->moves[i].path && w->moves[i].cookie == cookie)
            return &w->moves[i];
    return NULL;
}

static void end_move(struct watching *w, struct move *m, bool left)
{
    if (left && !m->staged)
        drop_dirs(w, m->path);
    free(m->path);
    *m = (struct move){ 0 };
}

static int moved_from(struct watching *w, const struct inotify_event *e, const char *path)
{
    bool staged = is_staged(e->name);
    if (staged || (e->mask & IN_ISDIR)) {
        struct move *m = &w->moves[w->move_at++ % MOVES_MAX];
        if (m->path)
            end_move(w, m, true);
        *m = (struct move){ e->cookie, strdup(path), staged };
        if (!m->path)
            return -ENOMEM;
    }
    return staged ? 0 : tell(w, WIRE_RENAMED_FROM, path, e->cookie);
}

static int moved_to(struct watching *w, const struct inotify_event *e, const char *path)
{
    struct move *m = find_move(w, e->cookie);
    bool known = m != NULL;
    int r;
    if (m && m->staged) {
        end_move(w, m, false);
        return tell_placed(w, path);
    }
    r = tell(w, WIRE_RENAMED_TO, path, e->cookie);
    if (r == 0 && m) {
        r = rename_dirs(w, m->path, path);
        end_move(w, m, false);
    }
    /* From elsewhere: nobody has heard of what is in it. */
    if (r == 0 && !known && (e->mask & IN_ISDIR) && w->recursive)
        r = look_through(w, path, 0, true);
    return r;
}

/* The queue is empty and stays so: a directory whose new name did not come has left. */
static void settle(struct watching *w)
{
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (w->moves[i].path)
            end_move(w, &w->moves[i], true);
    forget_told(w);
}

/* ---- events ---- */

static int named_event(struct watching *w, const struct inotify_event *e, const char *path)
{
    if (e->mask & IN_MOVED_FROM)
        return moved_from(w, e, path);
    if (e->mask & IN_MOVED_TO)
        return moved_to(w, e, path);
    if (is_staged(e->name) || is_nameless(e->name, path))
        return 0;
    if (e->mask & IN_DELETE) {
        (void)was_told(w, path); /* a later one of that name is another */
        return tell(w, WIRE_REMOVED, path, 0);
    }
    if (e->mask & IN_CREATE) {
        if (was_told(w, path))
            return 0; /* and so was what is in it */
        int r = tell_new(w, path);
        if (r == 0 && (e->mask & IN_ISDIR) && w->recursive)
            r = look_through(w, path, 0, true);
        return r;
    }
    if (e->mask & IN_MODIFY)
        return tell(w, WIRE_WRITTEN, path, 0);
    return e->mask & IN_ATTRIB ? tell(w, WIRE_ATTRIBUTES, path, 0) : 0;
}

static int one_event(struct watching *w, const struct inotify_event *e)
{
    _cleanup_free_ char *path = NULL;
    if (e->mask & IN_Q_OVERFLOW)
        return look_again(w);
    if (e->mask & IN_IGNORED) {
        forget(w, e->wd);
        return 0;
    }
    const char *dir = e->wd >= 0 && (size_t)e->wd < w->n ? w->dirs[e->wd] : NULL;
    if (!dir)
        return 0;
    if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) {
        w->gone = w->gone || w->only || strcmp(dir, w->top) == 0;
        return 0;
    }
    if (e->len == 0) /* of the directory itself: its own watcher has told, but for the top */
        return e->mask & IN_ATTRIB && !w->only && strcmp(dir, w->top) == 0
                   ? tell(w, WIRE_ATTRIBUTES, w->top, 0)
                   : 0;
    if (w->only && strcmp(e->name, w->only) != 0) {
        if (is_staged(e->name) && (e->mask & IN_MOVED_FROM))
            return moved_from(w, e, e->name);
        return 0;
    }
    if (path_join(dir, e->name, &path) < 0)
        return -ENOMEM;
    if (w->only && (e->mask & (IN_DELETE | IN_MOVED_FROM)))
        w->gone = true;
    return w->gone ? 0 : named_event(w, e, path);
}

static int take_events(struct watching *w)
{
    static _Alignas(struct inotify_event) char events[EVENTS_BYTES];
    ssize_t n = read(w->fd, events, sizeof(events));
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    int r = 0;
    for (ssize_t at = 0; r == 0 && at < n && !w->gone;) {
        const struct inotify_event *e = (const void *)(events + at);
        r = one_event(w, e);
        at += (ssize_t)(sizeof(*e) + e->len);
    }
    return r < 0 ? r : talk_flush(&w->j->talk);
}

static int listen_on(struct watching *w)
{
    bool restless = false; /* something may still belong to what came */
    while (!w->gone) {
        struct pollfd fds[2] = { { .fd = w->fd, .events = POLLIN },
                                 { .fd = w->j->talk.fd, .events = POLLRDHUP } };
        int n = poll(fds, 2, restless ? SETTLE_MS : LOOK_MS);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR))
            return -EPIPE;
        if (n == 0 && restless)
            settle(w);
        restless = n > 0;
        int r = n > 0 ? take_events(w) : 0;
        if (r < 0)
            return job_fail(w->j, r, w->top);
    }
    int r = tell(w, WIRE_REMOVED, w->top, 0);
    return r < 0 ? r : job_refuse(w->j, ENOENT, FAIL_FILE_NOT_FOUND, w->top, "is gone");
}

static int begin(struct watching *w)
{
    struct stat st;
    int r = path_of(w->j, w->j->ask->paths[0], &w->top);
    if (r < 0)
        return r;
    if (stat(w->top, &st) < 0)
        return job_fail(w->j, errno, w->top);
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->fd < 0)
        return errno == EMFILE ? job_refuse(w->j, EMFILE, FAIL_TOO_MANY_WATCHES, NULL,
                                            "this user watches too much already")
                               : job_fail(w->j, errno, w->top);
    if (S_ISDIR(st.st_mode)) {
        w->recursive = ask_is(w->j->ask, WIRE_F_RECURSIVE);
        r = look_through(w, w->top, IN_DELETE_SELF | IN_MOVE_SELF, false);
    } else {
        char *slash = strrchr(w->top, '/');
        _cleanup_free_ char *dir =
            slash == w->top ? strdup("/") : strndup(w->top, (size_t)(slash - w->top));
        w->only = slash + 1;
        r = dir ? watch_dir(w, dir, IN_DELETE_SELF | IN_MOVE_SELF) : -ENOMEM;
        if (r < 0)
            return too_many(w, r, w->top);
    }
    if (r < 0)
        return r;
    (void)talk_begin(&w->j->talk);
    r = talk_end(&w->j->talk, WIRE_OK);
    return r < 0 ? r : talk_flush(&w->j->talk);
}

int op_watch(struct job *j)
{
    static struct watching w;
    w = (struct watching){ .j = j, .fd = -1 };
    int r = begin(&w);
    if (r == 0)
        r = listen_on(&w);
    settle(&w);
    for (size_t i = 0; i < w.n; i++)
        free(w.dirs[i]);
    free(w.dirs);
    free(w.top);
    if (w.fd >= 0)
        (void)close(w.fd);
    return r;
}

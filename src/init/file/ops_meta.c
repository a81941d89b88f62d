/* CHMOD, CHOWN, SYMLINK, TRUNCATE. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/entry.h"
#include "init/file/path.h"
#include "init/file/walk.h"

/* What is done to each, and to what: not through a link unless `follow`. */
struct change {
    int (*fn)(const struct change *c, int dir, const char *name, const struct stat *st,
              bool follow);
    mode_t mode;
    uid_t uid;
    gid_t gid;
    bool late; /* a directory after what is in it: it may be closed to us then */
};

static int change_mode(const struct change *c, int dir, const char *name, const struct stat *st,
                       bool follow)
{
    if (S_ISLNK(st->st_mode) && !follow)
        return 0; /* a link has no mode of its own */
    return fchmodat(dir, name, c->mode, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int change_owner(const struct change *c, int dir, const char *name, const struct stat *st,
                        bool follow)
{
    return fchownat(dir, name, c->uid, c->gid, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Everything below path; the first failure stops it. */
static int change_below(struct job *j, const struct change *c, const char *path)
{
    _cleanup_(walk_done) struct walk w = { 0 };
    struct walk_item *item;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return job_fail(j, errno, path);
    int r = walk_init(&w, fd, path);
    while (r >= 0 && (r = walk_next(&w, &item)) > 0) {
        if (item->kind == WALK_FAIL)
            return job_fail(j, item->code, item->path);
        bool now = item->kind == WALK_LEAF || (item->kind == WALK_LEAVE) == c->late;
        if (now) {
            r = c->fn(c, item->dir, item->name, &item->st, false);
            if (r < 0 && r != -ENOENT)
                return job_fail(j, r, item->path);
        }
        r = talk_beat(&j->talk);
    }
    return r < 0 ? job_fail(j, r, path) : 0;
}

static int change_all(struct job *j, const struct change *c)
{
    _cleanup_free_ char *path = NULL;
    bool follow = !ask_is(j->ask, WIRE_F_NOFOLLOW);
    int flags = follow ? 0 : AT_SYMLINK_NOFOLLOW;
    struct stat st;
    int r = path_of(j, j->ask->paths[0], &path);
    if (r < 0)
        return r;
    if (fstatat(AT_FDCWD, path, &st, flags) < 0)
        return job_fail(j, errno, path);
    bool below = ask_is(j->ask, WIRE_F_RECURSIVE) && S_ISDIR(st.st_mode);
    if (below && c->late)
        r = change_below(j, c, path);
    if (r < 0)
        return r;
    r = c->fn(c, AT_FDCWD, path, &st, follow);
    if (r < 0)
        return job_fail(j, r, path);
    if (below && !c->late)
        r = change_below(j, c, path);
    if (r < 0)
        return r;
    if (fstatat(AT_FDCWD, path, &st, flags) < 0)
        return job_fail(j, errno, path);
    return entry_send(j, AT_FDCWD, path, path, &st);
}

int op_chmod(struct job *j)
{
    struct change c = { .fn = change_mode, .mode = (mode_t)j->ask->mode };
    c.late = (c.mode & 0500) != 0500;
    return change_all(j, &c);
}

int op_chown(struct job *j)
{
    struct change c = { .fn = change_owner, .late = true };
    struct account_text passwd, group;
    char *passwd_memory = account_read("/etc/passwd", &passwd);
    char *group_memory = account_read("/etc/group", &group);
    int r = account_owner(j->ask->owner, passwd, group, &c.uid, &c.gid);
    free(passwd_memory);
    free(group_memory);
    if (r < 0)
        return job_refuse(j, ENOENT, FAIL_USER_NOT_FOUND, NULL,
                          r == -ESRCH ? "owner names no group of the sandbox"
                                      : "owner names no user of the sandbox");
    return change_all(j, &c);
}

int op_symlink(struct job *j)
{
    const struct ask *ask = j->ask;
    _cleanup_(place_done) struct place at = PLACE_INIT;
    struct stat st;
    if (strlen(ask->to) >= PATH_MAX)
        return job_fail(j, ENAMETOOLONG, ask->paths[0]);
    if (*ask->to == '\0')
        return job_refuse(j, EINVAL, FAIL_INVALID_FIELD, NULL, "to is empty");
    int r = place_open(j, ask->paths[0], ask_is(ask, WIRE_F_NO_PARENTS) ? 0 : PLACE_PARENTS, &at);
    if (r < 0)
        return r;
    if (*at.name == '\0')
        return job_fail(j, EEXIST, at.path);
    if (symlinkat(ask->to, at.dir, at.name) < 0)
        return job_fail(j, errno, at.path);
    job_note(j, WIRE_T_COUNT, 1);
    r = place_stat(&at, &st);
    return r < 0 ? job_fail(j, r, at.path) : entry_send(j, at.dir, at.name, at.path, &st);
}

int op_truncate(struct job *j)
{
    _cleanup_free_ char *path = NULL;
    struct stat st;
    int r = path_of(j, j->ask->paths[0], &path);
    if (r < 0)
        return r;
    _cleanup_fd_ int fd = open_regular(AT_FDCWD, path, O_WRONLY);
    if (fd < 0)
        return job_fail(j, fd, path);
    if (ftruncate(fd, (off_t)j->ask->size) < 0)
        return job_fail(j, errno == EINVAL ? EFBIG : errno, path);
    if (fstat(fd, &st) < 0)
        return job_fail(j, errno, path);
    return entry_send(j, AT_FDCWD, path, path, &st);
}

/* XATTRS, XATTR_SET, XATTR_RM. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "init/file/entry.h"
#include "init/file/path.h"

static bool follows(const struct job *j)
{
    return !ask_is(j->ask, WIRE_F_NOFOLLOW);
}

int op_xattrs(struct job *j)
{
    _cleanup_free_ char *path = NULL;
    struct stat st;
    int r = path_of(j, j->ask->paths[0], &path);
    if (r < 0)
        return r;
    if (fstatat(AT_FDCWD, path, &st, follows(j) ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return job_fail(j, errno, path);
    struct buf *b = talk_begin(&j->talk);
    r = entry_put(b, path, &st, NULL);
    if (r == 0)
        r = entry_put_xattrs(b, path, follows(j), false);
    if (r == 0)
        r = talk_end(&j->talk, WIRE_ENTRY);
    return r < 0 ? job_fail(j, r, path) : 0;
}

/* A name that the kernel has no handler for. */
static int named(struct job *j, int code, const char *path)
{
    if (code == EINVAL || code == ERANGE)
        return job_refuse(j, code, FAIL_INVALID_FIELD, path,
                          "cannot have an extended attribute of that name; try user.NAME");
    return job_fail(j, code, path);
}

int op_xattr_set(struct job *j)
{
    const struct ask *ask = j->ask;
    _cleanup_free_ char *path = NULL;
    int r = path_of(j, ask->paths[0], &path);
    if (r < 0)
        return r;
    r = follows(j) ? setxattr(path, ask->xattr, ask->value, ask->value_n, 0)
                   : lsetxattr(path, ask->xattr, ask->value, ask->value_n, 0);
    return r < 0 ? named(j, errno, path) : 0;
}

int op_xattr_rm(struct job *j)
{
    _cleanup_free_ char *path = NULL;
    int r = path_of(j, j->ask->paths[0], &path);
    if (r < 0)
        return r;
    r = follows(j) ? removexattr(path, j->ask->text) : lremovexattr(path, j->ask->text);
    return r < 0 ? named(j, errno, path) : 0;
}

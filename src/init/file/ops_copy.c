/* COPY and MOVE. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/copy.h"
#include "init/file/entry.h"
#include "init/file/path.h"
#include "init/file/remove.h"
#include "init/file/stage.h"

#define NOREPLACE 1 /* RENAME_NOREPLACE */
#define UP_MAX 4096 /* directories above one: more than a path can name */

/* Where to: "dir/" with its slash means into it. */
static int open_target(struct job *j, const struct place *from, unsigned flags, struct place *ret)
{
    const char *to = j->ask->to;
    size_t n = strlen(to);
    struct stat st;
    _cleanup_free_ char *path = NULL, *joined = NULL;
    if (n == 0 || n >= PATH_MAX)
        return job_refuse(j, EINVAL, n ? FAIL_NAME_TOO_LONG : FAIL_INVALID_FIELD, NULL,
                          n ? "to is too long" : "to is empty");
    int r = path_of(j, to, &path);
    if (r < 0)
        return r;
    if (to[n - 1] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        if (path_join(path, from->name, &joined) < 0) {
            joined = NULL;
            return job_fail(j, ENOMEM, path);
        }
    }
    if (!ask_is(j->ask, WIRE_F_NO_PARENTS))
        flags |= PLACE_PARENTS;
    return place_open(j, joined ? joined : path, flags, ret);
}

/* Is `st` a directory that `dir` lies in? */
static bool is_above(const struct stat *st, int dir)
{
    int fd = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool above = false;
    struct stat here, last = { 0 };
    for (int i = 0; fd >= 0 && i < UP_MAX && !above; i++) {
        if (fstat(fd, &here) < 0 || (here.st_dev == last.st_dev && here.st_ino == last.st_ino))
            break;
        above = here.st_dev == st->st_dev && here.st_ino == st->st_ino;
        last = here;
        int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close(fd);
        fd = up;
    }
    if (fd >= 0)
        (void)close(fd);
    return above;
}

static int open_both(struct job *j, unsigned flags, struct place *from, struct place *to)
{
    struct stat st;
    int r = place_open(j, j->ask->paths[0], 0, from);
    if (r < 0)
        return r;
    if (*from->name == '\0')
        return job_refuse(j, EBUSY, FAIL_FILE_BUSY, from->path, "is the root of the sandbox");
    r = place_stat(from, &st);
    if (r < 0)
        return job_fail(j, r, from->path);
    r = open_target(j, from, flags, to);
    if (r < 0)
        return r;
    if (*to->name == '\0')
        return job_fail(j, EISDIR, to->path);
    if (S_ISDIR(st.st_mode) && is_above(&st, to->dir))
        return job_refuse(j, EINVAL, FAIL_INVALID_FIELD, from->path, "cannot go into itself");
    return 0;
}

static int tell(struct job *j, const struct place *at, int is_new)
{
    struct stat st;
    job_note(j, WIRE_T_COUNT, (uint64_t)is_new);
    int r = place_stat(at, &st);
    return r < 0 ? job_fail(j, r, at->path) : entry_send(j, at->dir, at->name, at->path, &st);
}

int op_copy(struct job *j)
{
    _cleanup_(place_done) struct place from = PLACE_INIT, to = PLACE_INIT;
    struct stat a, b;
    int r = open_both(j, PLACE_FOLLOW, &from, &to);
    if (r < 0)
        return r;
    if (place_stat(&from, &a) == 0 && place_stat(&to, &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return job_refuse(j, EINVAL, FAIL_INVALID_FIELD, from.path,
                          "is both what and where to copy");
    struct copy c = {
        .j = j,
        .recursive = ask_is(j->ask, WIRE_F_RECURSIVE),
        .exclusive = ask_is(j->ask, WIRE_F_EXCLUSIVE),
    };
    r = copy_tree(&c, from.dir, from.name, from.path, to.dir, to.name, to.path);
    return r < 0 ? r : tell(j, &to, r);
}

static int rename_at(const struct place *from, int to_dir, const char *to, bool exclusive)
{
    if (syscall(SYS_renameat2, from->dir, from->name, to_dir, to, NOREPLACE) == 0)
        return 1;
    if (exclusive || (errno != EEXIST && errno != EINVAL && errno != ENOSYS))
        return -errno;
    return renameat(from->dir, from->name, to_dir, to) < 0 ? -errno : 0;
}

/* To another filesystem, or of a directory that the image has: copied whole under a name of its
 * own, then put in place, then removed where it was. */
static int move_far(struct job *j, const struct place *from, const struct place *to)
{
    char temp[STAGE_NAME_MAX];
    struct stat old;
    bool exclusive = ask_is(j->ask, WIRE_F_EXCLUSIVE);
    bool there = place_stat(to, &old) == 0;
    if (there && exclusive)
        return job_fail(j, EEXIST, to->path);
    if (there && S_ISDIR(old.st_mode) && unlinkat(to->dir, to->name, AT_REMOVEDIR) < 0)
        return job_fail(j, errno, to->path);
    stage_random_name(temp);
    struct copy c = { .j = j, .recursive = true, .same = true, .exclusive = true };
    int r = copy_tree(&c, from->dir, from->name, from->path, to->dir, temp, to->path);
    if (r >= 0) {
        struct place copy = { .dir = to->dir };
        memcpy(copy.name, temp, sizeof(temp));
        r = rename_at(&copy, to->dir, to->name, exclusive);
        if (r < 0)
            r = job_fail(j, r, to->path);
    }
    if (r < 0) {
        (void)remove_tree(j, to->dir, temp, to->path);
        return r;
    }
    int left = remove_tree(j, from->dir, from->name, from->path);
    return left < 0 ? left : !there;
}

int op_move(struct job *j)
{
    _cleanup_(place_done) struct place from = PLACE_INIT, to = PLACE_INIT;
    int r = open_both(j, 0, &from, &to);
    if (r < 0)
        return r;
    r = rename_at(&from, to.dir, to.name, ask_is(j->ask, WIRE_F_EXCLUSIVE));
    if (r == -EXDEV)
        r = move_far(j, &from, &to);
    else if (r < 0)
        r = job_fail(j, r, to.path);
    return r < 0 ? r : tell(j, &to, r);
}

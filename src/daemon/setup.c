#include "daemon/setup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/sanitized.h"
#include "confine/rights.h"

#define PASS_MODE 0711 /* others may pass through to what they can name, not look around */
#define PARENT_MODE 0755
#define STATE_MODE 0700
#define LOCK_MODE 0600
#define ADOPT_DEPTH 16     /* ACME's state is the deepest there is */
#define FILES_WANTED 65536 /* a descriptor or two a connection and a command */

int setup_user(const char *name, struct setup_user *ret_user, struct err *err)
{
    const char *wanted = name ? name : "warren";
    struct passwd *p = getpwnam(wanted);
    if (!p && !name) {
        wanted = "nobody";
        p = getpwnam(wanted);
    }
    if (!p)
        return err_set(err, ENOENT, "there is no user '%s' on this machine", wanted);
    if (p->pw_uid == 0)
        return err_set(err, EPERM, "--user must not be root: the daemon gives root up");
    *ret_user = (struct setup_user){ p->pw_uid, p->pw_gid, wanted };
    return 0;
}

static int make_parents(const char *of)
{
    char path[PATH_MAX];
    size_t n = strlen(of);
    if (n >= sizeof(path))
        return -ENAMETOOLONG;
    memcpy(path, of, n + 1);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int r = mkdir(path, PARENT_MODE);
        if (r == 0)
            r = chmod(path, PARENT_MODE); /* our umask is strict */
        bool failed = r < 0 && errno != EEXIST;
        *slash = '/';
        if (failed)
            return -errno;
    }
    return 0;
}

int setup_dir(const char *path, char **ret_real, struct err *err)
{
    struct stat st;
    if (path[0] == '\0')
        return err_set(err, EINVAL, "a directory's name is empty");
    int r = make_parents(path);
    if (r >= 0 && mkdir(path, PASS_MODE) < 0 && errno != EEXIST)
        r = -errno;
    if (r < 0)
        return err_set(err, -r, "cannot make the directory '%s': %s", path, strerror(-r));

    _cleanup_fd_ int fd = open(path, O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, errno, "cannot open the directory '%s': %s", path, strerror(errno));
    if (st.st_uid != 0 || (st.st_mode & 022))
        return err_set(err, EPERM,
                       "'%s' must belong to root and not be writable by others: choose another "
                       "directory, or chown and chmod it",
                       path);
    if ((st.st_mode & PASS_MODE) != PASS_MODE && fchmod(fd, (st.st_mode & 07777) | PASS_MODE) < 0)
        return err_set(err, errno, "cannot open '%s' for the daemon's user", path);
    *ret_real = realpath(path, NULL);
    return *ret_real ? 0 : err_set(err, errno, "cannot resolve '%s'", path);
}

/* What a former user of the daemon had becomes ours, a directory after all that is in it, so that a next
 * start goes on where this one was killed; links and other people's files do not. */
static int adopt_files(int dirfd, uid_t former, const struct setup_user *user, unsigned depth,
                       struct err *err)
{
    int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir)
        return err_set(err, errno, "cannot read the state directory");
    int r = 0;
    for (struct dirent *e; r >= 0 && (e = readdir(dir));) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        _cleanup_fd_ int fd =
            openat(dirfd, e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != former)
            continue;
        if (S_ISDIR(st.st_mode) && depth > 0)
            r = adopt_files(fd, former, user, depth - 1, err);
        else if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
            continue;
        if (r >= 0 && fchown(fd, user->uid, user->gid) < 0)
            r = err_set(err, errno, "cannot give '%s' to user '%s'", e->d_name, user->name);
    }
    (void)closedir(dir);
    return r;
}

/* A directory that is the daemon's own, below `parent`; the caller closes *ret_fd. */
static int own_dir(int parent, const char *name, const struct setup_user *user, int *ret_fd,
                   struct err *err)
{
    if (mkdirat(parent, name, STATE_MODE) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s' in the data directory", name);
    _cleanup_fd_ int fd = openat(parent, name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, errno, "cannot open '%s' in the data directory", name);
    int r = st.st_uid == user->uid ? 0 : adopt_files(fd, st.st_uid, user, ADOPT_DEPTH, err);
    if (r >= 0 && st.st_uid != user->uid &&
        (fchown(fd, user->uid, user->gid) < 0 || fchmod(fd, STATE_MODE) < 0))
        r = err_set(err, errno, "cannot give '%s' to user '%s'", name, user->name);
    if (r >= 0)
        *ret_fd = take_fd(fd);
    return r;
}

int setup_state(const char *data, const struct setup_user *user, struct err *err)
{
    _cleanup_fd_ int data_fd = open(data, O_DIRECTORY | O_CLOEXEC);
    if (data_fd < 0)
        return err_set(err, errno, "cannot open '%s'", data);
    _cleanup_fd_ int state = -1, blobs = -1, whole = -1, partial = -1;
    int r = own_dir(data_fd, "state", user, &state, err);
    if (r >= 0)
        r = own_dir(data_fd, "blobs", user, &blobs, err);
    if (r >= 0)
        r = own_dir(blobs, "sha256", user, &whole, err);
    if (r >= 0)
        r = own_dir(blobs, "partial", user, &partial, err);
    return r;
}

int setup_lock(const char *run, struct err *err)
{
    _cleanup_fd_ int dirfd = open(run, O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fd = dirfd < 0 ? -1
                                    : openat(dirfd, "warrend.lock",
                                             O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, LOCK_MODE);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s/warrend.lock': %s", run, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return err_set(
                err, EBUSY,
                "another warrend uses '%s'; give this one its own --run, --data and --listen", run);
        return err_set(err, errno, "cannot lock '%s/warrend.lock'", run);
    }
    return take_fd(fd);
}

int setup_drop(const struct setup_user *user, struct err *err)
{
    struct rlimit files = { FILES_WANTED, FILES_WANTED }, none = { 0, 0 };
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_max > files.rlim_max)
        files.rlim_max = now.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)setrlimit(RLIMIT_CORE, &none); /* memory holds keys */

    int r = rights_become(user->uid, user->gid, err);
    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(err, errno, "cannot set no_new_privs");
#if SANITIZED_ADDRESS
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* the leak checker attaches to its own process */
#else
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
    return 0;
}

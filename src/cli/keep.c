#include "cli/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/xmem.h"

#define NAME "keys.json"
#define FILE_MAX (256 * 1024) /* a thousand daemons */
#define WAIT_MS 50            /* for another process, between looks */
#define WAITS 400             /* its own calls to the daemon are over by then */

struct keep {
    char *path;
    int dir; /* locked */
    json_t *keys;
};

static const char *home(void)
{
    const char *dir = getenv("HOME");
    const struct passwd *pw = dir && *dir ? NULL : getpwuid(geteuid());
    return dir && *dir ? dir : pw ? pw->pw_dir : NULL;
}

/* The directory, made if need be. */
static char *place(struct err *err)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *dir = home();
    bool given = config && *config == '/';
    if (!given && (!dir || *dir != '/')) {
        (void)err_set(err, ENOENT, "there is no home directory");
        return NULL;
    }
    _cleanup_free_ char *above = given ? xstrdup(config) : xasprintf("%s/.config", dir);
    char *path = xasprintf("%s/warren", above);
    if ((mkdir(above, 0700) < 0 && errno != EEXIST) || (mkdir(path, 0700) < 0 && errno != EEXIST)) {
        (void)err_set(err, errno, "cannot make '%s': %s", path, strerror(errno));
        free(path);
        return NULL;
    }
    return path;
}

static int lock(int dir)
{
    for (int i = 0; flock(dir, LOCK_EX | LOCK_NB) < 0; i++) {
        if (errno != EWOULDBLOCK || i == WAITS)
            return -errno;
        (void)poll(NULL, 0, WAIT_MS);
    }
    return 0;
}

/* Read the file if only the caller can read it; otherwise return nothing. */
static json_t *read_keys(int dir)
{
    struct stat st;
    _cleanup_fd_ int fd = openat(dir, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 077) || st.st_size > FILE_MAX)
        return json_object();
    json_t *keys = json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(keys))
        return keys;
    json_decref(keys);
    return json_object();
}

int keep_open(struct keep **ret_keep, struct err *err)
{
    _cleanup_free_ char *path = place(err);
    if (!path)
        return -(err->code ? err->code : ENOENT);
    _cleanup_(keep_freep) struct keep *keep = xcalloc(1, sizeof(*keep));
    keep->path = xasprintf("%s/" NAME, path);
    keep->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = keep->dir < 0 ? -errno : lock(keep->dir);
    if (r < 0)
        return err_set(err, -r, "cannot lock '%s': %s", path, strerror(-r));
    keep->keys = read_keys(keep->dir);
    *ret_keep = take_ptr(keep);
    return 0;
}

void keep_free(struct keep *keep)
{
    if (!keep)
        return;
    if (keep->dir >= 0)
        (void)close(keep->dir);
    json_decref(keep->keys);
    free(keep->path);
    free(keep);
}

const char *keep_file(const struct keep *keep)
{
    return keep->path;
}

bool keep_find(struct keep *keep, const char *of, const char **ret_id, const char **ret_key)
{
    const json_t *entry = json_object_get(keep->keys, of);
    *ret_id = json_string_value(json_object_get(entry, "id"));
    *ret_key = json_string_value(json_object_get(entry, "key"));
    return *ret_id && *ret_key;
}

/* Beside it first: whoever reads finds the old keys or the new ones, whatever happens meanwhile. */
static int write_keys(const struct keep *keep)
{
    _cleanup_free_ char *text = json_dumps(keep->keys, JSON_INDENT(4) | JSON_SORT_KEYS);
    if (!text)
        return -ENOMEM;
    (void)unlinkat(keep->dir, NAME ".new", 0); /* of one that was killed; the lock is ours */
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    _cleanup_fd_ int fd = openat(keep->dir, NAME ".new", flags, 0600);
    int r = fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
    explicit_bzero(text, strlen(text));
    if (r == 0 && (fsync(fd) < 0 || renameat(keep->dir, NAME ".new", keep->dir, NAME) < 0))
        r = -errno;
    if (r < 0 && fd >= 0)
        (void)unlinkat(keep->dir, NAME ".new", 0);
    return r;
}

int keep_put(struct keep *keep, const char *of, const char *id, const char *key, struct err *err)
{
    int r = id ? json_object_set_new(keep->keys, of, json_pack("{s:s,s:s}", "id", id, "key", key))
               : json_object_del(keep->keys, of);
    if (r < 0 && !id)
        return 0; /* it was not there */
    r = r < 0 ? -ENOMEM : write_keys(keep);
    return r < 0 ? err_set(err, -r, "cannot write '%s': %s", keep->path, strerror(-r)) : 0;
}

#include "core/upload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "core/disk.h"
#include "core/private.h"

#define TOTAL_MAX (10ull * 1024 * 1024 * 1024) /* of one owner: a step's disk */
#define KEPT_S (7 * 24 * 3600)
#define TEMP_PREFIX "t-"
#define COUNT_MAX 10000 /* of one owner */
#define UPLOAD_NAME_MAX (UPLOAD_HASH_MAX + 1)

struct upload {
    struct core *core;
    struct room room;
    int dir, fd;
    char temp[ID_SIZE + sizeof(TEMP_PREFIX)], name[UPLOAD_NAME_MAX];
    uint64_t size;
};

bool upload_hash_valid(const char *hash)
{
    size_t n = strnlen(hash, UPLOAD_HASH_MAX + 1);
    return n >= 1 && n <= UPLOAD_HASH_MAX && strspn(hash, "0123456789abcdef") == n;
}

static int disk_failed(struct err *err, int code, const char *doing)
{
    if (code == ENOSPC || code == EDQUOT)
        return err_fail(err, FAIL_NO_SPACE, "cannot %s: the disk of the data directory is full",
                        doing);
    return err_set(err, code, "cannot %s: %s", doing, strerror(code));
}

static int bad_hash(struct err *err, const char *hash)
{
    return err_fail(err, FAIL_INVALID_FIELD,
                    "'%.80s' is no hash of files: it must be 1 to %d hex digits", hash,
                    UPLOAD_HASH_MAX);
}

/* Of one owner; team names are names of files too (name_valid). */
static int open_dir(struct core *core, const char *owner, bool make, struct err *err)
{
    if (make)
        (void)mkdirat(core->uploads_dir, owner, 0700);
    int fd = openat(core->uploads_dir, owner, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? disk_failed(err, errno, "open the directory of uploads") : fd;
}

/* ---- reading ---- */

int upload_open(struct core *core, const char *owner, const char *hash, struct err *err)
{
    if (!upload_hash_valid(hash))
        return bad_hash(err, hash);
    _cleanup_fd_ int dir = open_dir(core, owner, false, NULL);
    int fd = dir < 0 ? -1 : openat(dir, hash, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_fail(err, FAIL_UPLOAD_NOT_FOUND,
                        "the files '%.64s' were not uploaded, or were removed since; upload them",
                        hash);
    (void)futimens(fd, NULL); /* used now: the others go first */
    return fd;
}

bool upload_exists(struct core *core, const char *owner, const char *hash)
{
    _cleanup_fd_ int fd = upload_open(core, owner, hash, NULL);
    return fd >= 0;
}

/* ---- making room ---- */

struct kept {
    char name[UPLOAD_NAME_MAX];
    int64_t used_s;
    uint64_t size;
};

static int by_use(const void *pa, const void *pb)
{
    const struct kept *a = pa, *b = pb;
    return a->used_s < b->used_s ? -1 : a->used_s > b->used_s;
}

static size_t list(int dir, struct kept *all, size_t max)
{
    size_t n = 0;
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        if (copy >= 0)
            (void)close(copy);
        return 0;
    }
    for (struct dirent *e; n < max && (e = readdir(d));) {
        struct stat st;
        if (!upload_hash_valid(e->d_name) || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        (void)snprintf(all[n].name, sizeof(all[n].name), "%.64s", e->d_name);
        all[n].used_s = st.st_mtime;
        all[n++].size = (uint64_t)st.st_size;
    }
    (void)closedir(d);
    return n;
}

/* Remove old uploads until the rest fits; returns the bytes that stay. */
static uint64_t make_room(int dir, const char *keep)
{
    _cleanup_free_ struct kept *all = calloc(COUNT_MAX, sizeof(*all));
    int64_t old_s = clock_now_ms() / 1000 - KEPT_S;
    uint64_t total = 0;
    size_t n = all ? list(dir, all, COUNT_MAX) : 0;
    for (size_t i = 0; i < n; i++)
        total += all[i].size;
    if (n)
        qsort(all, n, sizeof(*all), by_use);
    for (size_t i = 0; i < n; i++) {
        bool goes = all[i].used_s < old_s || total > TOTAL_MAX || n - i >= COUNT_MAX;
        if (!goes || strcmp(all[i].name, keep) == 0)
            continue;
        (void)unlinkat(dir, all[i].name, 0);
        total -= all[i].size;
    }
    return total;
}

/* ---- writing ---- */

int upload_begin(struct core *core, const char *owner, const char *hash, struct upload **ret_up,
                 struct err *err)
{
    char id[ID_SIZE];
    if (!upload_hash_valid(hash))
        return bad_hash(err, hash);
    int r = disk_admit(core, err);
    if (r < 0)
        return r;
    struct upload *up = calloc(1, sizeof(*up));
    if (!up || id_random(id) < 0) {
        free(up);
        return err_set(err, ENOMEM, "cannot allocate an upload");
    }
    up->fd = -1;
    up->core = core;
    room_open(core, owner, &up->room);
    (void)snprintf(up->name, sizeof(up->name), "%s", hash);
    (void)snprintf(up->temp, sizeof(up->temp), TEMP_PREFIX "%s", id);
    r = up->dir = open_dir(core, owner, true, err);
    if (r >= 0) {
        up->fd = openat(up->dir, up->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        r = up->fd < 0 ? disk_failed(err, errno, "keep an upload") : 0;
    }
    if (r < 0) {
        upload_abort(up);
        return r;
    }
    *ret_up = up;
    return 0;
}

int upload_write(struct upload *up, const void *p, size_t n, struct err *err)
{
    if (n > UPLOAD_BYTES_MAX - up->size)
        return err_fail(err, FAIL_BODY_TOO_LARGE, "an upload may have %llu MiB",
                        UPLOAD_BYTES_MAX >> 20);
    int r = disk_go_on(up->core, err);
    if (r >= 0)
        r = room_take(&up->room, n, err);
    if (r < 0)
        return r;
    r = fd_write_full(up->fd, p, n);
    if (r < 0)
        return disk_failed(err, -r, "keep an upload");
    up->size += n;
    return 0;
}

int upload_finish(struct upload *up, struct err *err)
{
    int r = renameat(up->dir, up->temp, up->dir, up->name) < 0
                ? disk_failed(err, errno, "keep an upload")
                : 0;
    if (r >= 0) {
        up->temp[0] = '\0';
        stored_set_uploads(up->core, up->room.owner, make_room(up->dir, up->name));
    }
    upload_abort(up);
    return r;
}

void upload_abort(struct upload *up)
{
    if (!up)
        return;
    if (up->fd >= 0) {
        (void)close(up->fd);
        if (up->temp[0])
            (void)unlinkat(up->dir, up->temp, 0);
    }
    if (up->dir >= 0)
        (void)close(up->dir);
    room_close(&up->room);
    free(up);
}

/* ---- the directory ---- */

static void drop_temps(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        if (copy >= 0)
            (void)close(copy);
        return;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, TEMP_PREFIX, strlen(TEMP_PREFIX)) == 0)
            (void)unlinkat(dir, e->d_name, 0);
    (void)closedir(d);
}

int uploads_open(struct core *core, const char *data_dir, struct err *err)
{
    _cleanup_fd_ int data = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int state = data < 0 ? -1 : openat(data, "state", O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int parent = state;
    if (parent < 0)
        return err_set(err, errno, "cannot open '%s/state'", data_dir);
    (void)mkdirat(parent, "uploads", 0700);
    core->uploads_dir = openat(parent, "uploads", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (core->uploads_dir < 0)
        return err_set(err, errno, "cannot open '%s/state/uploads': %s", data_dir, strerror(errno));
    int copy = openat(core->uploads_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d && copy >= 0)
        (void)close(copy);
    for (struct dirent *e; d && (e = readdir(d));) {
        _cleanup_fd_ int dir = e->d_name[0] == '.' ? -1 : open_dir(core, e->d_name, false, NULL);
        if (dir < 0)
            continue;
        drop_temps(dir);
        stored_set_uploads(core, e->d_name, make_room(dir, ""));
    }
    if (d)
        (void)closedir(d);
    return 0;
}

void uploads_drop(struct core *core, const char *owner)
{
    _cleanup_free_ struct kept *all = calloc(COUNT_MAX, sizeof(*all));
    _cleanup_fd_ int dir = open_dir(core, owner, false, NULL);
    size_t n = all && dir >= 0 ? list(dir, all, COUNT_MAX) : 0;
    for (size_t i = 0; i < n; i++)
        (void)unlinkat(dir, all[i].name, 0);
    (void)unlinkat(core->uploads_dir, owner, AT_REMOVEDIR);
    stored_set_uploads(core, owner, 0);
}

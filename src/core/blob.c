#include "core/blob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "core/private.h"

#define TEMP_PREFIX "t-"
#define PARTIAL_KEPT_MS (24ll * 3600 * 1000) /* nobody goes on with an older one */
#define BLOCK (256 * 1024)

struct blob_writer {
    struct core *core;
    struct room *room; /* NULL: no team's quota counts it */
    int fd;
    char name[DIGEST_SIZE]; /* in blobs/partial */
    bool resumable;
    struct digest *hash;
    uint64_t size;
};

static void writer_free(struct blob_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        (void)close(w->fd);
    digest_free(w->hash);
    free(w);
}
DEFINE_FREEP(struct blob_writer *, writer_free)

static int disk_failed(struct err *err, int code, const char *doing)
{
    if (code == ENOSPC || code == EDQUOT)
        return err_fail(err, FAIL_NO_SPACE, "cannot %s: the disk of the data directory is full",
                        doing);
    return err_set(err, code, "cannot %s: %s", doing, strerror(code));
}

/* ---- the directories ---- */

static int open_dir(int parent, const char *name, struct err *err)
{
    (void)mkdirat(parent, name, 0700);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_set(err, errno, "cannot open the directory '%s' of the data directory: %s",
                            name, strerror(errno))
                  : fd;
}

/* What was being written when a daemon ended has no name to go on under; old downloads go too. */
static void sweep(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    int64_t old = clock_now_ms() - PARTIAL_KEPT_MS;
    if (!d) {
        if (copy >= 0)
            (void)close(copy);
        return;
    }
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (strncmp(e->d_name, TEMP_PREFIX, strlen(TEMP_PREFIX)) == 0 ||
            (int64_t)st.st_mtime * 1000 < old)
            (void)unlinkat(dir, e->d_name, 0);
    }
    (void)closedir(d);
}

int blobs_open(struct core *core, const char *data_dir, struct err *err)
{
    _cleanup_fd_ int data = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (data < 0) /* others may pass through the data directory, not look around */
        data = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (data < 0)
        return err_set(err, errno, "cannot open '%s'", data_dir);
    _cleanup_fd_ int top = open_dir(data, "blobs", err);
    if (top < 0)
        return top;
    int r = core->blobs.dir = open_dir(top, "sha256", err);
    if (r >= 0)
        r = core->blobs.partial = open_dir(top, "partial", err);
    if (r < 0)
        return r;
    sweep(core->blobs.partial);
    return 0;
}

void blobs_close(struct core *core)
{
    if (core->blobs.dir >= 0)
        (void)close(core->blobs.dir);
    if (core->blobs.partial >= 0)
        (void)close(core->blobs.partial);
}

/* One that nobody writes to at the moment, by its lock; a new blob's has none and is left alone. */
static uint64_t drop_partial(int dir, const char *name)
{
    struct stat st;
    if (name[0] == '.' || strncmp(name, TEMP_PREFIX, strlen(TEMP_PREFIX)) == 0)
        return 0;
    _cleanup_fd_ int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
        return 0;
    return unlinkat(dir, name, 0) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

uint64_t blobs_drop_partial(struct core *core)
{
    int copy = openat(core->blobs.partial, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    uint64_t freed = 0;
    if (!d) {
        cleanup_close(&copy);
        return 0;
    }
    for (const struct dirent *e; (e = readdir(d));)
        freed += drop_partial(core->blobs.partial, e->d_name);
    (void)closedir(d);
    return freed;
}

int blobs_each(struct core *core,
               int (*fn)(void *ctx, const char *digest, int64_t touched_ms, uint64_t size),
               void *ctx)
{
    int copy = openat(core->blobs.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d)
        return -errno;
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        char digest[DIGEST_SIZE];
        struct stat st;
        int n = snprintf(digest, sizeof(digest), "sha256:%s", e->d_name);
        if (n < 0 || (size_t)n >= sizeof(digest) || !digest_valid(digest) ||
            fstatat(core->blobs.dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        r = fn(ctx, digest, (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
               (uint64_t)st.st_size);
    }
    (void)closedir(d);
    return r;
}

/* ---- writing ---- */

static struct blob_writer *writer_new(struct core *core, struct room *room)
{
    struct blob_writer *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->core = core;
    w->room = room;
    w->fd = -1;
    w->hash = digest_begin();
    if (!w->hash) {
        writer_free(w);
        return NULL;
    }
    return w;
}

int blob_begin(struct core *core, struct room *room, struct blob_writer **ret_w, struct err *err)
{
    _cleanup_(writer_freep) struct blob_writer *w = writer_new(core, room);
    char unique[ID_SIZE];
    if (!w)
        return err_set(err, ENOMEM, "cannot allocate a blob");
    int r = id_random(unique);
    if (r < 0)
        return err_set(err, -r, "cannot name a blob");
    (void)snprintf(w->name, sizeof(w->name), TEMP_PREFIX "%s", unique);
    w->fd = openat(core->blobs.partial, w->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   0600);
    if (w->fd < 0)
        return disk_failed(err, errno, "begin a blob");
    *ret_w = take_ptr(w);
    return 0;
}

static int hash_again(struct blob_writer *w)
{
    _cleanup_free_ char *block = malloc(BLOCK);
    if (!block)
        return -ENOMEM;
    for (;;) {
        ssize_t n = read(w->fd, block, BLOCK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        int r = digest_add(w->hash, block, (size_t)n);
        if (r < 0)
            return r;
        w->size += (uint64_t)n;
    }
}

/* Between our opening it and locking it, whoever had the file may have named it a blob: writing to
 * it would then change what is finished. */
static bool still_partial(const struct blob_writer *w)
{
    struct stat mine, named;
    return fstat(w->fd, &mine) == 0 &&
           fstatat(w->core->blobs.partial, w->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

int blob_resume(struct core *core, struct room *room, const char *digest,
                struct blob_writer **ret_w, uint64_t *ret_offset, struct err *err)
{
    if (!digest_valid(digest))
        return err_fail(err, FAIL_INVALID_IMAGE, "'%.80s' is not a digest", digest);
    _cleanup_(writer_freep) struct blob_writer *w = writer_new(core, room);
    if (!w)
        return err_set(err, ENOMEM, "cannot allocate a blob");
    (void)snprintf(w->name, sizeof(w->name), "%s", digest + DIGEST_HEX);
    w->resumable = true;
    w->fd = openat(core->blobs.partial, w->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (w->fd < 0)
        return disk_failed(err, errno, "begin a blob");
    if (flock(w->fd, LOCK_EX | LOCK_NB) < 0)
        return err_fail(err, FAIL_BLOB_BUSY, "'%s' is being fetched already", digest);
    if (!still_partial(w))
        return err_fail(err, FAIL_BLOB_BUSY, "'%s' was fetched just now", digest);
    if (blob_exists(core, digest, NULL)) {
        (void)unlinkat(core->blobs.partial, w->name, 0);
        return err_fail(err, FAIL_BLOB_BUSY, "'%s' is there already", digest);
    }
    int r = hash_again(w);
    if (r < 0)
        return disk_failed(err, -r, "read a half-fetched blob");
    r = room ? room_take(room, w->size, err) : 0;
    if (r < 0)
        return r;
    *ret_offset = w->size;
    *ret_w = take_ptr(w);
    return 0;
}

int blob_write(struct blob_writer *w, const void *p, size_t n, struct err *err)
{
    int r = w->room ? room_take(w->room, n, err) : 0;
    if (r < 0)
        return r;
    r = digest_add(w->hash, p, n);
    if (r == 0)
        r = fd_write_full(w->fd, p, n);
    if (r < 0)
        return disk_failed(err, -r, "write a blob");
    w->size += n;
    return 0;
}

int blob_rewind(struct blob_writer *w, struct err *err)
{
    digest_free(w->hash);
    w->hash = digest_begin();
    w->size = 0;
    if (!w->hash)
        return err_set(err, ENOMEM, "cannot begin a hash");
    if (ftruncate(w->fd, 0) < 0 || lseek(w->fd, 0, SEEK_SET) < 0)
        return disk_failed(err, errno, "start a blob over");
    return 0;
}

static int settle(struct blob_writer *w, const char *expected, char ret_digest[DIGEST_SIZE],
                  struct err *err)
{
    struct core *core = w->core;
    int r = digest_end(take_ptr(w->hash), ret_digest);
    if (r < 0)
        return err_set(err, -r, "cannot hash a blob");
    if (expected && strcmp(expected, ret_digest) != 0)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                           "the bytes of '%.80s' have the digest '%s': they were changed or cut",
                           expected, ret_digest);
    if (blob_exists(core, ret_digest, NULL)) {
        (void)unlinkat(core->blobs.partial, w->name, 0);
        return 0;
    }
    /* An image that was acknowledged is whole after a power cut. */
    if (fdatasync(w->fd) < 0)
        return disk_failed(err, errno, "write a blob out");
    if (renameat(core->blobs.partial, w->name, core->blobs.dir, ret_digest + DIGEST_HEX) < 0)
        return disk_failed(err, errno, "name a blob");
    return 0;
}

int blob_finish(struct blob_writer *w, const char *expected, char ret_digest[DIGEST_SIZE],
                uint64_t *ret_size, struct err *err)
{
    char digest[DIGEST_SIZE];
    int r = settle(w, expected, digest, err);
    if (r < 0) {
        (void)unlinkat(w->core->blobs.partial, w->name, 0);
    } else {
        if (ret_digest)
            memcpy(ret_digest, digest, sizeof(digest));
        if (ret_size)
            *ret_size = w->size;
    }
    writer_free(w);
    return r;
}

void blob_abort(struct blob_writer *w)
{
    if (!w)
        return;
    if (!w->resumable || (w->room && room_limited(w->room)))
        (void)unlinkat(w->core->blobs.partial, w->name, 0);
    writer_free(w);
}

/* ---- reading ---- */

/* Found counts as made: see image_hold. */
static void touch(struct core *core, const char *digest)
{
    (void)utimensat(core->blobs.dir, digest + DIGEST_HEX, NULL, AT_SYMLINK_NOFOLLOW);
}

bool blob_exists(struct core *core, const char *digest, uint64_t *ret_size)
{
    struct stat st;
    if (!digest_valid(digest) ||
        fstatat(core->blobs.dir, digest + DIGEST_HEX, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    touch(core, digest);
    if (ret_size)
        *ret_size = (uint64_t)st.st_size;
    return true;
}

int blob_open(struct core *core, const char *digest, int *ret_fd, uint64_t *ret_size,
              struct err *err)
{
    struct stat st;
    if (!digest_valid(digest))
        return err_set(err, ENOENT, "'%.80s' is not a digest", digest);
    _cleanup_fd_ int fd =
        openat(core->blobs.dir, digest + DIGEST_HEX, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, errno, "the blob '%s' is not here", digest);
    touch(core, digest);
    if (ret_size)
        *ret_size = (uint64_t)st.st_size;
    *ret_fd = take_fd(fd);
    return 0;
}

int blob_read(struct core *core, const char *digest, struct buf *out, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    uint64_t size = 0;
    int r = blob_open(core, digest, &fd, &size, err);
    if (r < 0)
        return r;
    r = size > out->max ? -EMSGSIZE : buf_reserve(out, (size_t)size + 1);
    if (r == 0)
        r = fd_read_full(fd, out->data + out->len, (size_t)size);
    if (r < 0)
        return err_set(err, -r, "cannot read the blob '%s'", digest);
    out->len += (size_t)size;
    out->data[out->len] = '\0';
    return 0;
}

int blob_put(struct core *core, const void *p, size_t n, char ret_digest[DIGEST_SIZE],
             struct err *err)
{
    struct blob_writer *w = NULL;
    int r = blob_begin(core, NULL, &w, err);
    if (r < 0)
        return r;
    r = blob_write(w, p, n, err);
    if (r < 0) {
        blob_abort(w);
        return r;
    }
    return blob_finish(w, NULL, ret_digest, NULL, err);
}

void blob_remove(struct core *core, const char *digest)
{
    if (digest_valid(digest))
        (void)unlinkat(core->blobs.dir, digest + DIGEST_HEX, 0);
}

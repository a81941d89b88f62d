/* READ and STAT. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/entry.h"
#include "init/file/path.h"

#define MADE_UP_MAX (64u * 1024 * 1024) /* of what a made-up file is read to, to learn its length */

int op_stat(struct job *j)
{
    _cleanup_free_ char *path = NULL;
    struct stat st;
    int r = path_of(j, j->ask->paths[0], &path);
    if (r < 0)
        return r;
    int flags = ask_is(j->ask, WIRE_F_NOFOLLOW) ? AT_SYMLINK_NOFOLLOW : 0;
    if (fstatat(AT_FDCWD, path, &st, flags) < 0)
        return job_fail(j, errno, path);
    return entry_send(j, AT_FDCWD, path, path, &st);
}

/* Files of proc and sysfs are made up while they are read: their size says nothing. */
static bool is_made_up(int fd, const struct stat *st)
{
    struct statfs fs;
    if (st->st_size == 0)
        return true;
    if (fstatfs(fd, &fs) < 0)
        return false;
    return fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
           fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* A copy in memory, which has a length. */
static int take_copy(int fd, struct stat *st)
{
    static char piece[64 * 1024];
    _cleanup_fd_ int copy = -1;
    uint64_t total = 0;
    for (;;) {
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? -ENXIO : -errno;
        if (n == 0)
            break;
        if (copy < 0)
            copy = memfd_create("copy", MFD_CLOEXEC);
        if (copy < 0 || write(copy, piece, (size_t)n) != n)
            return copy < 0 ? -errno : -ENOMEM;
        total += (size_t)n;
        if (total > MADE_UP_MAX)
            return -EFBIG;
    }
    st->st_size = (off_t)total;
    return copy < 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : take_fd(copy);
}

static int send_bytes(struct job *j, int fd, uint64_t left, const char *path)
{
    while (left > 0) {
        size_t n = left < WIRE_BULK_MAX ? (size_t)left : WIRE_BULK_MAX;
        ssize_t done = talk_data_file(&j->talk, fd, n);
        if (done < 0)
            return (int)done;
        if ((size_t)done < n)
            return job_refuse(j, ESTALE, FAIL_FILE_CHANGED, path,
                              "became shorter while it was read");
        left -= n;
    }
    return 0;
}

int op_read(struct job *j)
{
    const struct ask *ask = j->ask;
    _cleanup_free_ char *path = NULL;
    _cleanup_fd_ int fd = -1, copy = -1;
    struct stat st;
    int r = path_of(j, ask->paths[0], &path);
    if (r < 0)
        return r;
    fd = open_regular(AT_FDCWD, path, O_RDONLY);
    if (fd < 0)
        return job_fail(j, fd, path);
    if (fstat(fd, &st) < 0)
        return job_fail(j, errno, path);
    struct stat told = st;
    if (is_made_up(fd, &st)) {
        copy = take_copy(fd, &st);
        if (copy < 0)
            return job_fail(j, copy, path);
    }
    uint64_t size = (uint64_t)st.st_size, left = ask_has(ask, WIRE_T_LENGTH) ? ask->length : size;
    if (ask->offset > 0 && ask->offset >= size) {
        j->err_size = size;
        return job_refuse(j, ERANGE, FAIL_RANGE_NOT_SATISFIABLE, path, "ends before that offset");
    }
    if (left > size - ask->offset)
        left = size - ask->offset;
    struct entry_more more = { .has_length = true, .length = left };
    r = entry_put(talk_begin(&j->talk), path, &told, &more);
    if (r == 0)
        r = talk_end(&j->talk, WIRE_ENTRY);
    int from = copy >= 0 ? copy : fd;
    if (r == 0 && lseek(from, (off_t)ask->offset, SEEK_SET) < 0 && left > 0)
        r = -errno;
    if (r < 0)
        return job_fail(j, r, path);
    return send_bytes(j, from, left, path);
}

#include "unpack/split.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "unpack/stream.h"
#include "wire/unpack.h"

#define MEMBERS_MAX 10000 /* a docker archive has three a layer */

/* First parts of a path that an image archive does not have. */
static const char *const rootfs_dirs[] = {
    "bin", "boot", "dev",  "etc", "home", "init", "lib", "lib64", "media", "mnt",
    "opt", "proc", "root", "run", "sbin", "srv",  "sys", "tmp",   "usr",   "var",
};

static bool is_rootfs(const char *path)
{
    size_t n = strcspn(path, "/");
    for (size_t i = 0; i < ARRAY_LEN(rootfs_dirs); i++)
        if (strlen(rootfs_dirs[i]) == n && strncmp(path, rootfs_dirs[i], n) == 0)
            return true;
    return false;
}

static int put_head(int out, enum split_kind kind, const char *name, uint64_t size, struct err *err)
{
    struct split_head head = { .kind = kind, .name_len = (uint32_t)strlen(name), .size = size };
    int r = fd_write_full(out, &head, sizeof(head));
    if (r == 0)
        r = fd_write_full(out, name, head.name_len);
    return r < 0 ? err_set(err, -r, "cannot pass a member on") : 0;
}

static int put_zeros(int out, uint64_t n)
{
    static const char zeros[4096];
    int r = 0;
    for (; r == 0 && n > 0; n -= n < sizeof(zeros) ? n : sizeof(zeros))
        r = fd_write_full(out, zeros, n < sizeof(zeros) ? n : sizeof(zeros));
    return r;
}

/* Exactly as many bytes as the head promised: holes become zeros. */
static int put_data(struct stream *in, int out, uint64_t size, struct err *err)
{
    const void *p;
    size_t n;
    int64_t offset = 0;
    uint64_t at = 0;
    int r;
    while ((r = stream_data(in, &p, &n, &offset, err)) > 0) {
        if (offset < 0 || (uint64_t)offset < at || (uint64_t)offset > size ||
            n > size - (uint64_t)offset)
            return err_fail(err, FAIL_INVALID_IMAGE, "a member is not as long as it says");
        int w = put_zeros(out, (uint64_t)offset - at);
        if (w == 0)
            w = fd_write_full(out, p, n);
        if (w < 0)
            return err_set(err, -w, "cannot pass a member on");
        at = (uint64_t)offset + n;
    }
    if (r == 0 && put_zeros(out, size - at) < 0)
        r = err_set(err, EPIPE, "cannot pass a member on");
    return r;
}

static int put_member(struct stream *in, struct archive_entry *e, const char *path, int out,
                      struct err *err)
{
    const char *target = archive_entry_hardlink(e);
    if (!target && archive_entry_filetype(e) == AE_IFLNK)
        target = archive_entry_symlink(e);
    if (target && strlen(target) <= SPLIT_NAME_MAX) {
        int r = put_head(out, SPLIT_LINK, path, strlen(target), err);
        return r < 0 ? r : fd_write_full(out, target, strlen(target));
    }
    if (archive_entry_filetype(e) != AE_IFREG)
        return 0;
    uint64_t size = (uint64_t)archive_entry_size(e);
    int r = put_head(out, SPLIT_FILE, path, size, err);
    return r < 0 ? r : put_data(in, out, size, err);
}

static int split(struct stream *in, int out, struct err *err)
{
    struct archive_entry *e;
    unsigned members = 0;
    int r;
    while ((r = stream_next(in, &e, err)) > 0) {
        char path[SPLIT_NAME_MAX];
        if (stream_path(archive_entry_pathname(e), path, sizeof(path)) < 0)
            return put_head(out, SPLIT_ROOTFS, "", 0, err); /* which is refused, with the name */
        if (path[0] == '\0')
            continue;
        if (is_rootfs(path))
            return put_head(out, SPLIT_ROOTFS, "", 0, err);
        if (++members > MEMBERS_MAX)
            return err_fail(err, FAIL_INVALID_IMAGE, "more than %d members", MEMBERS_MAX);
        r = put_member(in, e, path, out, err);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : put_head(out, SPLIT_END, "", 0, err);
}

int split_write(int archive, int out, uint64_t ratio, struct err *err)
{
    _cleanup_(stream_freep) struct stream *in = NULL;
    int r = stream_open(archive, ratio, &in, err);
    return r < 0 ? r : split(in, out, err);
}

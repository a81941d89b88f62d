/* Checkpoints of volumes, where quotas count a block for all who have it (full quotas).
 *
 * A group of a volume and its checkpoints would count what they have together, but the kernel loses count when a copy
 * joins a group. So the volume alone has limits: on all that it has, and on what it alone has, which is what it wrote
 * since the last checkpoint. The second one leaves room for what the checkpoints keep. A record of each says how much
 * it was the first to keep; when one goes, the next takes over what is not gone with it. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "keeper/storage_private.h"
#include "kernel/btrfs.h"

#define LOG_MODULE "storage"
#define KEPT "trusted.warren.kept." /* of the directory of checkpoints, for the one of that name */
#define KEPT_SIZE (sizeof(KEPT) + STORAGE_NAME_SIZE)
#define OWN_MIN (256 * 1024) /* to delete files takes some */

struct kept {
    uint64_t bytes; /* little-endian */
    char of[ID_SIZE];
};

static void kept_name(const char *point, char out[KEPT_SIZE])
{
    (void)snprintf(out, KEPT_SIZE, KEPT "%s", point);
}

static int kept_read(const struct storage *st, const char *point, struct kept *ret_k)
{
    char name[KEPT_SIZE];
    kept_name(point, name);
    ssize_t n = fgetxattr(st->volume_points, name, ret_k, sizeof(*ret_k));
    return n == (ssize_t)sizeof(*ret_k) ? 0 : n < 0 ? -errno : -EINVAL;
}

static int kept_write(const struct storage *st, const char *point, const char *of, uint64_t bytes,
                      struct err *err)
{
    struct kept k = { .bytes = htole64(bytes) };
    char name[KEPT_SIZE];
    kept_name(point, name);
    (void)snprintf(k.of, sizeof(k.of), "%s", of);
    if (fsetxattr(st->volume_points, name, &k, sizeof(k), 0) < 0)
        return err_set(err, errno, "cannot write down how much checkpoint '%s' keeps", point);
    return 0;
}

static int open_point(const struct storage *st, const char *point)
{
    return openat(st->volume_points, point, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- the checkpoints of one volume ---- */

struct tally {
    const struct storage *st;
    const char *of;
    uint64_t kept, used; /* sums */
    uint64_t after;      /* the number of a checkpoint: */
    uint64_t next;       /* that of the one made next after it, and */
    char next_name[STORAGE_NAME_SIZE];
};

static int add_point(const char *name, void *arg)
{
    struct tally *t = arg;
    struct kept k;
    uint64_t used = 0, number = 0;
    if (kept_read(t->st, name, &k) < 0 || strncmp(k.of, t->of, sizeof(k.of)) != 0)
        return 0;
    _cleanup_fd_ int fd = open_point(t->st, name);
    if (fd < 0 || btrfs_quota_used(fd, &used) < 0 || btrfs_quota_entry(fd, &number) < 0)
        return 0;
    t->kept += le64toh(k.bytes);
    t->used += used;
    if (number > t->after && (!t->next || number < t->next)) {
        t->next = number;
        (void)snprintf(t->next_name, sizeof(t->next_name), "%s", name);
    }
    return 0;
}

static struct tally tally(const struct storage *st, const char *id, uint64_t after)
{
    struct tally t = { .st = st, .of = id, .after = after };
    (void)storage_each_in(st->volume_points, add_point, &t);
    return t;
}

/* ---- the volume ---- */

/* Subvolumes inside of one, which an earlier version let sandboxes make, count as kept and may not grow further. */
static uint64_t hold_nested(const struct storage *st, uint64_t outer, int levels)
{
    uint64_t sum = 0, used;
    for (uint64_t inner = 0; btrfs_subvol_nested(st->pool, outer, inner, &inner) == 0;) {
        if (btrfs_quota_used_by(st->pool, inner, &used) == 0) {
            (void)btrfs_quota_limit_by(st->pool, inner, used + OWN_MIN, NULL);
            sum += used;
        }
        if (levels > 0)
            sum += hold_nested(st, inner, levels - 1);
    }
    return sum;
}

int storage_kept_limit(const struct storage *st, const char *id, int volume_fd, uint64_t disk_bytes,
                       struct err *err)
{
    struct tally t = tally(st, id, 0);
    uint64_t kept = t.kept < t.used ? t.kept : t.used, number = 0;
    if (btrfs_quota_entry(volume_fd, &number) == 0)
        kept += hold_nested(st, number, STORAGE_NESTED_MAX);
    uint64_t own = disk_bytes > kept + OWN_MIN ? disk_bytes - kept : OWN_MIN;
    return btrfs_quota_limit_own(volume_fd, disk_bytes, kept ? own : UINT64_MAX, err);
}

uint64_t storage_kept_used(int volume_fd)
{
    uint64_t limit = 0, own_limit = 0, used = 0, own = 0;
    (void)btrfs_quota_used(volume_fd, &used);
    if (btrfs_quota_limits(volume_fd, &limit, &own_limit) < 0 || own_limit > limit ||
        btrfs_quota_own(volume_fd, &own) < 0)
        return used;
    uint64_t all = limit - own_limit + own;
    return all > used ? all : used;
}

int storage_kept_limit_again(const struct storage *st, const char *id, struct err *err)
{
    uint64_t limit = 0, own = 0;
    _cleanup_fd_ int fd = openat(st->volumes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || btrfs_quota_limits(fd, &limit, &own) < 0 || limit == UINT64_MAX)
        return 0;
    return storage_kept_limit(st, id, fd, limit, err);
}

/* ---- making one, deleting one ---- */

int storage_kept_snapshot(const struct storage *st, const char *point, const char *id,
                          int volume_fd, struct err *err)
{
    bool first = tally(st, id, 0).kept == 0;
    uint64_t bytes = 0, used = 0;
    int r = btrfs_quota_own_now(volume_fd, &bytes);
    if (r < 0)
        return err_set(err, -r, "cannot see how much checkpoint '%s' will keep", point);
    r = btrfs_subvol_snapshot(st->volume_points, point, volume_fd, true, err);
    if (r < 0)
        return r;
    (void)btrfs_quota_used(volume_fd, &used);
    r = kept_write(st, point, id, first || bytes > used ? used : bytes, err);
    return r < 0 ? r : storage_kept_limit_again(st, id, err);
}

/* What it keeps and does not take along goes to the next one's account. Without a next one only the volume can have
 * that, and it counts there. */
static int hand_on(const struct storage *st, const char *point, const struct kept *k,
                   struct err *err)
{
    struct kept next;
    uint64_t own = 0, number = 0, bytes = le64toh(k->bytes);
    _cleanup_fd_ int fd = open_point(st, point);
    if (fd < 0 || btrfs_quota_own(fd, &own) < 0 || btrfs_quota_entry(fd, &number) < 0)
        return 0;
    struct tally t = tally(st, k->of, number);
    if (bytes <= own || !t.next || kept_read(st, t.next_name, &next) < 0)
        return 0;
    return kept_write(st, t.next_name, k->of, le64toh(next.bytes) + bytes - own, err);
}

/* A pool that is full may refuse to write any of it down, and yet must let go of the checkpoint. */
void storage_kept_forget(const struct storage *st, const char *point)
{
    struct err err = ERR_INIT;
    struct kept k;
    char name[KEPT_SIZE];
    if (kept_read(st, point, &k) < 0)
        return; /* an earlier version's, or forgotten already */
    k.of[sizeof(k.of) - 1] = '\0';
    int r = hand_on(st, point, &k, &err);
    kept_name(point, name);
    if (r == 0 && fremovexattr(st->volume_points, name) < 0)
        r = err_set(&err, errno, "cannot forget checkpoint '%s'", point);
    if (r == 0)
        r = storage_kept_limit_again(st, k.of, &err);
    if (r < 0)
        log_warn("a volume's limit is not exact: %s volume=%s err=%s", err.msg, k.of,
                 strerror(err.code));
}

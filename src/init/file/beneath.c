#include "init/file/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define TRIES 128 /* a rename on the way makes the kernel ask us to try again */

int beneath_open(const struct beneath *b, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
        .resolve = RESOLVE_NO_MAGICLINKS | (b->is_root ? RESOLVE_IN_ROOT : RESOLVE_BENEATH),
    };
    for (int i = 0; i < TRIES; i++) {
        int fd = (int)syscall(SYS_openat2, b->top, *path ? path : ".", &how, sizeof(how));
        if (fd >= 0)
            return fd;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return -ESTALE;
}

/* A directory below; O_NOFOLLOW would refuse one that a link leads to, O_PATH with a slash and a
 * dot behind it does not, and stays below all the same. */
static int open_dir(const struct beneath *b, const char *path)
{
    char dotted[PATH_MAX + 3];
    if (*path == '\0')
        return beneath_open(b, ".", O_PATH | O_DIRECTORY);
    (void)snprintf(dotted, sizeof(dotted), "%s/.", path);
    return beneath_open(b, dotted, O_PATH | O_DIRECTORY);
}

/* The same, each missing name on the way made. */
static int make_dirs(const struct beneath *b, const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path), from = 0;
    memcpy(part, path, n + 1);
    int dir = open_dir(b, "");
    for (size_t i = 1; dir >= 0 && i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        part[i] = '\0';
        int next = open_dir(b, part);
        if (next == -ENOENT) {
            next = mkdirat(dir, part + from, 0777) < 0 && errno != EEXIST ? -errno : 0;
            if (next == 0)
                next = open_dir(b, part);
        }
        (void)close(dir);
        dir = next;
        part[i] = path[i];
        from = i + 1;
    }
    return dir;
}

int beneath_parent(struct beneath *b, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    *ret_name = slash ? slash + 1 : path;
    if (b->dir >= 0 && strlen(b->kept) == n && memcmp(b->kept, path, n) == 0)
        return b->dir;
    beneath_forget(b);
    memcpy(b->kept, path, n);
    b->kept[n] = '\0';
    b->dir = open_dir(b, b->kept);
    if (b->dir == -ENOENT)
        b->dir = make_dirs(b, b->kept);
    int r = b->dir;
    if (r < 0)
        b->dir = -1;
    return r;
}

void beneath_forget(struct beneath *b)
{
    if (b->dir >= 0)
        (void)close(b->dir);
    b->dir = -1;
}

void beneath_done(struct beneath *b)
{
    beneath_forget(b);
    if (b->top >= 0)
        (void)close(b->top);
    b->top = -1;
}

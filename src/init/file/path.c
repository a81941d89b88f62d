#include "init/file/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LINKS_MAX 40 /* as the kernel counts them */
#define DIR_MODE 0777

/* Squeeze slashes and single dots out of an absolute path, in place; where it holds "..", the end
 * of the last of them is *ret_up, else NULL. */
static void squeeze(char *path, char **ret_up)
{
    char *to = path, *from = path;
    *ret_up = NULL;
    while (*from) {
        while (*from == '/')
            from++;
        size_t n = strcspn(from, "/");
        if (n == 0)
            break;
        if (!(n == 1 && from[0] == '.')) {
            *to++ = '/';
            memmove(to, from, n);
            to += n;
            if (n == 2 && to[-1] == '.' && to[-2] == '.')
                *ret_up = to;
        }
        from += n;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

/* ".." behind a symbolic link is not where it seems: ask the kernel's view of what leads up. */
static char *without_up(char *path, char *up)
{
    char real[PATH_MAX];
    char *out = NULL, rest = *up;
    *up = '\0';
    bool known = realpath(path, real) != NULL;
    *up = rest;
    if (!known || (real[1] == '\0' && rest == '\0'))
        return strdup(known ? real : path);
    if (asprintf(&out, "%s%s", real[1] ? real : "", up) < 0)
        return NULL;
    return out;
}

int path_of(struct job *j, const char *asked, char **ret_path)
{
    _cleanup_free_ char *path = NULL;
    char *up;
    int n;
    if (asked[0] == '~' && (asked[1] == '/' || asked[1] == '\0'))
        n = asprintf(&path, "%s/%s", j->home, asked + (asked[1] ? 2 : 1));
    else if (asked[0] != '/')
        n = asprintf(&path, "%s/%s", j->home, asked);
    else
        n = asprintf(&path, "%s", asked);
    if (n < 0) {
        path = NULL;
        return job_fail(j, ENOMEM, asked);
    }
    squeeze(path, &up);
    char *out = up ? without_up(path, up) : take_ptr(path);
    if (!out)
        return job_fail(j, ENOMEM, asked);
    if (strlen(out) >= PATH_MAX) {
        free(out);
        return job_fail(j, ENAMETOOLONG, asked);
    }
    *ret_path = out;
    return 0;
}

int path_join(const char *dir, const char *name, char **ret_path)
{
    const char *slash = strcmp(dir, "/") == 0 || *name == '\0' ? "" : "/";
    return asprintf(ret_path, "%s%s%s", dir, slash, name) < 0 ? -ENOMEM : 0;
}

int path_make(const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof(part))
        return -ENAMETOOLONG;
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        part[i] = '\0';
        if (mkdir(part, DIR_MODE) < 0 && errno != EEXIST)
            return -errno;
        part[i] = path[i];
    }
    return 0;
}

static int open_dir(const char *path, bool make)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT || !make)
        return fd < 0 ? -errno : fd;
    int r = path_make(path);
    if (r < 0)
        return r;
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Split an absolute squeezed path at its last slash, and hold the directory. */
static int hold(const char *path, bool make, struct place *p)
{
    const char *slash = strrchr(path, '/');
    size_t name_n = strlen(slash + 1);
    if (name_n > NAME_MAX)
        return -ENAMETOOLONG;
    _cleanup_free_ char *dir = slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
    if (!dir)
        return -ENOMEM;
    int fd = open_dir(dir, make);
    if (fd < 0)
        return fd;
    if (p->dir >= 0)
        (void)close(p->dir);
    p->dir = fd;
    memcpy(p->name, slash + 1, name_n + 1);
    return 0;
}

/* Where a link's text leads from the directory it lies in. */
static int hold_link(struct job *j, char *text, bool make, struct place *p)
{
    char *up;
    size_t n = strlen(text);
    while (n > 1 && text[n - 1] == '/')
        text[--n] = '\0';
    if (text[0] == '/') {
        squeeze(text, &up);
        return hold(text, make, p);
    }
    char *slash = strrchr(text, '/');
    const char *name = slash ? slash + 1 : text;
    if (strlen(name) > NAME_MAX)
        return -ENAMETOOLONG;
    bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (slash && !dots)
        *slash = '\0';
    if (slash || dots) { /* a missing directory here is not made: that is the link's own fault */
        int fd = openat(p->dir, text, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return -errno;
        (void)close(p->dir);
        p->dir = fd;
    }
    (void)snprintf(p->name, sizeof(p->name), "%s", dots ? "" : name);
    return 0;
}

static int follow(struct job *j, bool make, struct place *p)
{
    char text[PATH_MAX];
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t n = *p->name ? readlinkat(p->dir, p->name, text, sizeof(text) - 1) : -1;
        if (n < 0)
            return 0; /* no link, or nothing there: what is done next will tell */
        text[n] = '\0';
        int r = n == 0 ? -ENOENT : hold_link(j, text, make, p);
        if (r < 0)
            return r;
    }
    return -ELOOP;
}

int place_open(struct job *j, const char *asked, unsigned flags, struct place *ret_place)
{
    _cleanup_(place_done) struct place p = PLACE_INIT;
    bool make = (flags & PLACE_PARENTS) != 0;
    int r = path_of(j, asked, &p.path);
    if (r < 0)
        return r;
    r = hold(p.path, make, &p);
    if (r == 0 && (flags & PLACE_FOLLOW))
        r = follow(j, make, &p);
    if (r < 0)
        return job_fail(j, r, p.path);
    *ret_place = p;
    p = (struct place)PLACE_INIT;
    return 0;
}

void place_done(struct place *p)
{
    if (p->dir >= 0)
        (void)close(p->dir);
    free(p->path);
    p->dir = -1;
    p->path = NULL;
}

int place_stat(const struct place *p, struct stat *ret_st)
{
    return fstatat(p->dir, p->name, ret_st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0 ? -errno : 0;
}

int open_regular(int dir, const char *name, int flags)
{
    struct stat st;
    /* Without O_NONBLOCK a pipe would wait for its other end. */
    _cleanup_fd_ int fd = openat(dir, name, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return -ENXIO;
    return take_fd(fd);
}

/* LIST: entries in the order of their paths, a page at a time, however many there are. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "init/file/entry.h"
#include "init/file/names.h"
#include "init/file/path.h"
#include "init/file/walk.h"

#define PATH_BYTES_MAX (64u * 1024) /* of a path that is told */

struct list {
    struct job *j;
    struct buf path; /* of the directory being listed */
    uint64_t left;   /* entries that may still be told */
    char *last;      /* the path told last; NULL: none yet */
    bool more;
};

/* The first name of `after`, and what is behind its slash. */
static const char *first_of(const char *after, char out[NAME_MAX + 1])
{
    size_t n = strcspn(after, "/");
    if (n > NAME_MAX)
        n = NAME_MAX;
    memcpy(out, after, n);
    out[n] = '\0';
    after += n;
    return after + strspn(after, "/");
}

static int list_dir(struct list *l, int fd, uint64_t depth, const char *after);

static int tell(struct list *l, int dir, const char *name, const struct stat *st)
{
    if (l->left == 0) {
        l->more = true;
        return 0;
    }
    l->left--;
    free(l->last);
    l->last = strdup(l->path.data);
    return entry_send(l->j, dir, name, l->path.data, st);
}

/* One name: its entry unless it was told on the page before, then what is in it. */
static int list_name(struct list *l, int dir, const char *name, uint64_t depth, bool told,
                     const char *after)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : job_skip(l->j, errno, l->path.data);
    int r = told ? 0 : tell(l, dir, name, &st);
    if (r < 0 || l->more || !S_ISDIR(st.st_mode) || depth <= 1)
        return r;
    int sub = walk_open_dir(dir, name);
    if (sub < 0)
        return sub == -ENOENT ? 0 : job_skip(l->j, sub, l->path.data);
    return list_dir(l, sub, depth - 1, after);
}

/* Takes the descriptor. `after` is relative to it: "" begins at the beginning. */
static int list_dir(struct list *l, int taken, uint64_t depth, const char *after)
{
    _cleanup_fd_ int fd = taken;
    _cleanup_(names_done) struct names names = { 0 };
    char from[NAME_MAX + 1];
    const char *behind = first_of(after, from);
    size_t path_n = l->path.len;
    size_t keep = l->left < SIZE_MAX / 4 ? (size_t)l->left + 2 : SIZE_MAX / 4;
    int r = names_least(&names, fd, *from ? from : NULL, keep);
    if (r == -E2BIG)
        return job_refuse(l->j, E2BIG, FAIL_TOO_MANY_ENTRIES, l->path.data,
                          "holds too many entries for one answer: ask with a limit");
    if (r < 0)
        return job_skip(l->j, r, l->path.data);
    for (size_t i = 0; r == 0 && !l->more && i < names.n; i++) {
        const char *name = names_get(&names, i);
        bool told = *from && strcmp(name, from) == 0;
        if (path_n > 1)
            r = buf_append(&l->path, "/", 1);
        if (r == 0)
            r = buf_puts(&l->path, name);
        if (r < 0)
            r = job_fail(l->j, r == -EMSGSIZE ? ENAMETOOLONG : -r, name);
        else
            r = list_name(l, fd, name, depth, told, told ? behind : "");
        if (r == 0)
            r = talk_beat(&l->j->talk);
        l->path.len = path_n;
    }
    return r;
}

/* What of `after` lies below the top. */
static const char *below(const char *after, const char *top)
{
    size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
    if (after[0] != '/')
        return after;
    if (strncmp(after, top, n) != 0 || after[n] != '/')
        return NULL;
    return after + n + 1;
}

int op_list(struct job *j)
{
    const struct ask *ask = j->ask;
    _cleanup_free_ char *path = NULL;
    int r = path_of(j, ask->paths[0], &path);
    if (r < 0)
        return r;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return job_fail(j, errno, path);
    const char *after = below(ask->after, path);
    if (!after) {
        (void)close(fd);
        return job_refuse(j, EINVAL, FAIL_INVALID_FIELD, NULL, "after is not a path below path");
    }
    struct list l = { .j = j, .path = BUF_INIT(PATH_BYTES_MAX) };
    l.left = ask_has(ask, WIRE_T_LIMIT) ? ask->limit : UINT32_MAX;
    uint64_t limit = l.left;
    r = buf_puts(&l.path, path);
    if (r < 0)
        (void)close(fd);
    else
        r = list_dir(&l, fd, ask->depth ? ask->depth : 1, after);
    job_note(j, WIRE_T_COUNT, limit - l.left);
    if (l.more)
        j->after = take_ptr(l.last);
    free(l.last);
    buf_done(&l.path);
    return r;
}

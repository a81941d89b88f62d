/* REMOVE. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/names.h"
#include "init/file/path.h"
#include "init/file/remove.h"
#include "init/file/walk.h"

#define PIECE_BYTES (256u * 1024) /* of names removed before the directory is read again */
#define PATH_BYTES_MAX (600u * 1024)
#define PASSES 8 /* someone may put files in while we empty it */

struct removal {
    struct job *j;
    struct buf path;
    int code; /* the first failure; the rest is removed all the same */
};

static void note(struct removal *m, int code)
{
    if (m->code == 0) {
        m->code = code;
        (void)job_fail(m->j, code, m->path.data);
    }
}

static int remove_dir(struct removal *m, int parent, const char *name, size_t depth);

/* 1: it is gone. */
static int remove_name(struct removal *m, int dir, const char *name, size_t depth)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 1;
    if (errno == EISDIR || errno == EPERM) {
        struct stat st;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
            return remove_dir(m, dir, name, depth);
        errno = EPERM;
    }
    note(m, errno);
    return 0;
}

/* 1: something went, so there may be more behind it; 0: nothing more can be done here. */
static int remove_piece(struct removal *m, int fd, struct names *names, size_t depth)
{
    size_t path_n = m->path.len;
    int r = names_more(names, fd, PIECE_BYTES), gone = 0;
    if (r < 0)
        note(m, -r);
    for (size_t i = 0; r >= 0 && i < names->n; i++) {
        r = buf_append(&m->path, "/", path_n > 1 ? 1 : 0);
        if (r == 0)
            r = buf_puts(&m->path, names_get(names, i));
        if (r == 0)
            r = remove_name(m, fd, names_get(names, i), depth);
        if (r > 0)
            gone = 1;
        m->path.len = path_n;
        m->path.data[path_n] = '\0';
        if (r >= 0)
            r = talk_beat(&m->j->talk);
    }
    return r < 0 ? r : gone;
}

static int remove_dir(struct removal *m, int parent, const char *name, size_t depth)
{
    _cleanup_(names_done) struct names names = { 0 };
    if (depth > WALK_DEPTH_MAX) {
        note(m, EMFILE);
        return 0;
    }
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
        return 1; /* empty: nothing to look at */
    _cleanup_fd_ int fd = walk_open_dir(parent, name);
    if (fd < 0) {
        if (fd != -ENOENT)
            note(m, fd == -ELOOP || fd == -ENOTDIR ? ESTALE : -fd);
        return fd == -ENOENT;
    }
    for (int pass = 0; pass < PASSES;) {
        int r = remove_piece(m, fd, &names, depth + 1);
        if (r < 0)
            return r;
        if (r > 0 && names.n > 0) { /* a large directory goes on for as many pieces as it has */
            (void)lseek(fd, 0, SEEK_SET);
            continue;
        }
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 1;
        if (errno != ENOTEMPTY || m->code != 0)
            break;
        (void)lseek(fd, 0, SEEK_SET);
        pass++;
    }
    note(m, errno);
    return 0;
}

int remove_tree(struct job *j, int dir, const char *name, const char *path)
{
    struct removal m = { .j = j, .path = BUF_INIT(PATH_BYTES_MAX) };
    int r = buf_puts(&m.path, path);
    if (r == 0)
        r = remove_name(&m, dir, name, 1);
    buf_done(&m.path);
    if (r < 0)
        return job_fail(j, r, path);
    return m.code ? -m.code : 0;
}

int op_remove(struct job *j)
{
    const struct ask *ask = j->ask;
    _cleanup_(place_done) struct place at = PLACE_INIT;
    struct stat st = { 0 };
    int r = place_open(j, ask->paths[0], 0, &at);
    if (r == 0) {
        if (*at.name == '\0')
            return job_refuse(j, EBUSY, FAIL_FILE_BUSY, at.path, "is the root of the sandbox");
        r = place_stat(&at, &st);
        if (r < 0)
            r = job_fail(j, r, at.path);
    }
    if (r == -ENOENT && ask_is(ask, WIRE_F_FORCE)) {
        j->err = (struct err)ERR_INIT;
        return 0;
    }
    if (r < 0)
        return r;
    if (S_ISDIR(st.st_mode) && ask_is(ask, WIRE_F_RECURSIVE))
        return remove_tree(j, at.dir, at.name, at.path);
    if (unlinkat(at.dir, at.name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
        return job_fail(j, errno, at.path);
    return 0;
}

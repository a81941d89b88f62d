/* WRITE and MKDIR. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/entry.h"
#include "init/file/path.h"
#include "init/file/stage.h"

/* Whatever the client sends up to its END, into fd. */
static int take_bytes(struct job *j, int fd, const char *path)
{
    for (;;) {
        struct wire_header h;
        const char *p;
        ssize_t n;
        int failure = 0, r = talk_next(&j->talk, &h, &p);
        if (r < 0 || h.type == WIRE_END)
            return r;
        if (h.type != WIRE_DATA)
            return -EPROTO;
        while ((n = talk_into(&j->talk, fd, &failure)) > 0)
            ;
        if (failure < 0)
            return job_fail(j, failure, path);
        if (n < 0)
            return (int)n;
    }
}

/* What there is may be replaced: as the client last saw it, if it says how that was. */
static int check_old(struct job *j, const struct place *at, bool there, const struct stat *old)
{
    const struct ask *ask = j->ask;
    char etag[ETAG_MAX];
    if (there && S_ISDIR(old->st_mode))
        return job_fail(j, EISDIR, at->path);
    if (there && S_ISLNK(old->st_mode))
        return job_fail(j, ELOOP, at->path); /* it came while we looked */
    if (there && !S_ISREG(old->st_mode))
        return job_fail(j, ENXIO, at->path);
    if (there && ask_is(ask, WIRE_F_EXCLUSIVE))
        return job_fail(j, EEXIST, at->path);
    if (!ask_has(ask, WIRE_T_ETAG))
        return 0;
    if (there)
        etag_of(old, etag);
    if (!there || (strcmp(ask->etag, "*") != 0 && strcmp(ask->etag, etag) != 0))
        return job_refuse(j, ESTALE, FAIL_PRECONDITION_FAILED, at->path,
                          "is not as it was when its etag was read");
    return 0;
}

static int look(struct job *j, const struct place *at, bool *ret_there, struct stat *ret_old)
{
    int r = *at->name ? place_stat(at, ret_old) : -EISDIR;
    if (r < 0 && r != -ENOENT)
        return job_fail(j, r, at->path);
    *ret_there = r == 0;
    return check_old(j, at, r == 0, ret_old);
}

static int append(struct job *j, const struct place *at, bool there)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW;
    if (ask_is(j->ask, WIRE_F_EXCLUSIVE))
        flags |= O_EXCL;
    _cleanup_fd_ int fd = open_regular(at->dir, at->name, flags);
    if (fd < 0)
        return job_fail(j, fd, at->path);
    if (ask_has(j->ask, WIRE_T_MODE) && fchmod(fd, (mode_t)j->ask->mode) < 0)
        return job_fail(j, errno, at->path);
    int r = take_bytes(j, fd, at->path);
    return r < 0 ? r : !there;
}

static int replace(struct job *j, const struct place *at, bool there)
{
    _cleanup_(stage_done) struct stage s = STAGE_INIT;
    struct stat old;
    /* A file that the user may not write to is not replaced by one he may, either. */
    if (there && faccessat(at->dir, at->name, W_OK, AT_EACCESS) < 0)
        return job_fail(j, errno, at->path);
    int r = stage_open(at->dir, there, &s);
    if (r < 0)
        return job_fail(j, r, at->path);
    r = take_bytes(j, s.fd, at->path);
    if (r == 0)
        r = look(j, at, &there, &old);
    if (r < 0)
        return r;
    if (there)
        r = stage_like(&s, at->name, &old, !ask_is(j->ask, WIRE_F_FOR_USER));
    if (r == 0 && ask_has(j->ask, WIRE_T_MODE) && fchmod(s.fd, (mode_t)j->ask->mode) < 0)
        r = -errno;
    if (r == 0)
        r = stage_commit(&s, at->name, ask_is(j->ask, WIRE_F_EXCLUSIVE));
    if (r >= 0 && s.spooled && ask_has(j->ask, WIRE_T_MODE) &&
        fchmodat(at->dir, at->name, (mode_t)j->ask->mode, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    return r < 0 ? job_fail(j, r, at->path) : r;
}

int op_write(struct job *j)
{
    const struct ask *ask = j->ask;
    _cleanup_(place_done) struct place at = PLACE_INIT;
    struct stat st;
    bool there;
    unsigned flags = PLACE_FOLLOW | (ask_is(ask, WIRE_F_NO_PARENTS) ? 0 : PLACE_PARENTS);
    int r = place_open(j, ask->paths[0], flags, &at);
    if (r < 0)
        return r;
    r = look(j, &at, &there, &st);
    if (r < 0)
        return r;
    r = ask_is(ask, WIRE_F_APPEND) ? append(j, &at, there) : replace(j, &at, there);
    if (r < 0)
        return r;
    job_note(j, WIRE_T_COUNT, (uint64_t)r);
    r = place_stat(&at, &st);
    return r < 0 ? job_fail(j, r, at.path) : entry_send(j, at.dir, at.name, at.path, &st);
}

/* ---- MKDIR ---- */

/* Something was there: fine if it is a directory, also behind a link. */
static int accept_dir(struct job *j, const struct place *at)
{
    struct stat st;
    if (ask_is(j->ask, WIRE_F_EXCLUSIVE))
        return job_fail(j, EEXIST, at->path);
    if (fstatat(at->dir, at->name, &st, AT_EMPTY_PATH) < 0)
        return job_fail(j, errno, at->path);
    return S_ISDIR(st.st_mode) ? 0 : job_fail(j, EEXIST, at->path);
}

int op_mkdir(struct job *j)
{
    const struct ask *ask = j->ask;
    _cleanup_(place_done) struct place at = PLACE_INIT;
    struct stat st;
    int r = place_open(j, ask->paths[0], ask_is(ask, WIRE_F_NO_PARENTS) ? 0 : PLACE_PARENTS, &at);
    if (r < 0)
        return r;
    bool made = *at.name && mkdirat(at.dir, at.name, 0777) == 0;
    if (!made && *at.name && errno != EEXIST)
        return job_fail(j, errno, at.path);
    if (!made)
        r = accept_dir(j, &at);
    else if (ask_has(ask, WIRE_T_MODE) &&
             fchmodat(at.dir, at.name, (mode_t)ask->mode, AT_SYMLINK_NOFOLLOW) < 0)
        r = job_fail(j, errno, at.path);
    if (r < 0)
        return r;
    job_note(j, WIRE_T_COUNT, made);
    if (fstatat(at.dir, at.name, &st, AT_EMPTY_PATH) < 0)
        return job_fail(j, errno, at.path);
    return entry_send(j, at.dir, at.name, at.path, &st);
}

/* FIND and USAGE. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "init/file/entry.h"
#include "init/file/globs.h"
#include "init/file/links.h"
#include "init/file/path.h"
#include "init/file/walk.h"

static int find_below(struct job *j, struct walk *w, const struct globs *globs)
{
    const struct ask *ask = j->ask;
    uint64_t left = ask_has(ask, WIRE_T_LIMIT) ? ask->limit : UINT32_MAX, count = 0;
    struct walk_item *item;
    int r;
    while ((r = walk_next(w, &item)) > 0) {
        if (item->kind == WALK_FAIL) {
            r = job_skip(j, item->code, item->path);
        } else if (item->kind != WALK_LEAVE) {
            if (item->kind == WALK_ENTER && ask->depth && item->depth >= ask->depth)
                walk_skip(w);
            bool wanted = !ask->type || ask->type == entry_type(item->st.st_mode);
            if (wanted && globs_match(globs, item->rel, item->path, ask_is(ask, WIRE_F_ICASE))) {
                if (count == left) { /* there is more: this one, and who knows what else */
                    j->after = strdup(item->path);
                    break;
                }
                count++;
                r = entry_send(j, item->dir, item->name, item->path, &item->st);
            }
        }
        if (r >= 0)
            r = talk_beat(&j->talk);
        if (r < 0)
            return r;
    }
    job_note(j, WIRE_T_COUNT, count);
    return r < 0 ? r : 0;
}

/* The walk below the asked path; a file there is *ret_st and no walk. 1: there is a walk. */
static int begin(struct job *j, struct walk *w, char **ret_path, struct stat *ret_st)
{
    int r = path_of(j, j->ask->paths[0], ret_path);
    if (r < 0)
        return r;
    if (stat(*ret_path, ret_st) < 0)
        return job_fail(j, errno, *ret_path);
    if (!S_ISDIR(ret_st->st_mode))
        return 0;
    int fd = open(*ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return job_fail(j, errno, *ret_path);
    r = walk_init(w, fd, *ret_path);
    return r < 0 ? job_fail(j, r, *ret_path) : 1;
}

int op_find(struct job *j)
{
    _cleanup_(walk_done) struct walk w = { 0 };
    _cleanup_(globs_done) struct globs globs = { 0 };
    _cleanup_free_ char *path = NULL;
    struct stat st;
    int r = globs_init(&globs, j->ask->patterns, j->ask->n_patterns);
    if (r < 0)
        return r == -ENOMEM ? job_fail(j, ENOMEM, NULL)
                            : job_refuse(j, EINVAL, FAIL_INVALID_PATTERN, NULL,
                                         "a pattern has too many alternatives in braces");
    r = begin(j, &w, &path, &st);
    if (r == 0)
        return job_fail(j, ENOTDIR, path);
    if (r > 0)
        r = find_below(j, &w, &globs);
    return r < 0 ? job_fail(j, r, path) : 0;
}

/* ---- USAGE ---- */

struct usage {
    struct links links;
    uint64_t bytes, size, files, dirs;
};

static void count(struct usage *u, const struct stat *st)
{
    bool dir = S_ISDIR(st->st_mode);
    u->files += !dir;
    u->dirs += dir;
    if (!dir && st->st_nlink > 1 && links_seen(&u->links, st, ""))
        return; /* its bytes were counted under another name */
    u->bytes += (uint64_t)st->st_blocks * 512;
    u->size += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
}

int op_usage(struct job *j)
{
    _cleanup_(walk_done) struct walk w = { 0 };
    _cleanup_free_ char *path = NULL;
    struct usage u = { 0 };
    struct walk_item *item;
    struct stat st;
    int r = begin(j, &w, &path, &st);
    if (r >= 0)
        count(&u, &st);
    while (r > 0 && (r = walk_next(&w, &item)) > 0) {
        if (item->kind == WALK_FAIL) {
            r = job_skip(j, item->code, item->path);
        } else if (item->kind != WALK_LEAVE) {
            count(&u, &item->st);
        }
        if (r >= 0)
            r = talk_beat(&j->talk);
        if (r == 0)
            r = 1;
    }
    links_done(&u.links);
    job_note(j, WIRE_T_BYTES, u.bytes);
    job_note(j, WIRE_T_SIZE, u.size);
    job_note(j, WIRE_T_FILES, u.files);
    job_note(j, WIRE_T_DIRS, u.dirs);
    return r < 0 ? job_fail(j, r, path) : 0;
}

#include "init/file/seek.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sanitized.h"
#include "init/file/path.h"
#include "init/file/walk.h"

#define BINARY_LOOK 8192u
#define MEMORY_MAX (512ul * 1024 * 1024) /* an expression may ask for any amount */

bool seek_is_binary(const char *p, size_t n)
{
    return memchr(p, 0, n < BINARY_LOOK ? n : BINARY_LOOK) != NULL;
}

static int one_file(struct seek *k, int dir, const char *name, const char *path)
{
    _cleanup_fd_ int fd = open_regular(dir, name, O_RDONLY | O_NOFOLLOW);
    struct seek_file f = { .fd = fd, .dir = dir, .name = name, .path = path };
    if (fd == -ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &f.st) < 0)
        return job_skip(k->j, fd < 0 ? (fd == -ELOOP ? ESTALE : fd) : errno, path);
    return k->fn(k, &f);
}

static int all_below(struct seek *k, int fd, const char *path)
{
    _cleanup_(walk_done) struct walk w = { 0 };
    struct walk_item *item;
    int r = walk_init(&w, fd, path);
    while (r >= 0 && !k->stop && (r = walk_next(&w, &item)) > 0) {
        if (item->kind == WALK_FAIL)
            r = job_skip(k->j, item->code, item->path);
        else if (item->kind == WALK_ENTER && k->j->ask->depth && item->depth >= k->j->ask->depth)
            walk_skip(&w);
        else if (item->kind == WALK_LEAF && S_ISREG(item->st.st_mode) &&
                 globs_match(&k->globs, item->rel, item->path, false))
            r = one_file(k, item->dir, item->name, item->path);
        if (r >= 0)
            r = talk_beat(&k->j->talk);
    }
    return r < 0 ? r : 0;
}

static int one_path(struct seek *k, const char *asked)
{
    struct job *j = k->j;
    _cleanup_(place_done) struct place at = PLACE_INIT;
    struct stat st;
    int r = place_open(j, asked, PLACE_FOLLOW, &at);
    if (r < 0)
        return r;
    r = place_stat(&at, &st);
    if (r < 0)
        return job_fail(j, r, at.path);
    if (!S_ISDIR(st.st_mode))
        return S_ISREG(st.st_mode) ? one_file(k, at.dir, at.name, at.path)
                                   : job_fail(j, ENXIO, at.path);
    int fd = walk_open_dir(at.dir, *at.name ? at.name : ".");
    return fd < 0 ? job_fail(j, fd, at.path) : all_below(k, fd, at.path);
}

/* What asks for too much is refused then, not killed. */
static void bound_memory(void)
{
#if !SANITIZED /* they take more than that */
    struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
    (void)setrlimit(RLIMIT_AS, &memory);
#endif
}

int seek_run(struct seek *k)
{
    struct job *j = k->j;
    const struct ask *ask = j->ask;
    char why[256];
    if (ask_is(ask, WIRE_F_REGEX))
        bound_memory();
    int r = globs_init(&k->globs, ask->patterns, ask->n_patterns);
    if (r == -EINVAL)
        return job_refuse(j, EINVAL, FAIL_INVALID_PATTERN, NULL,
                          "a pattern has too many alternatives in braces");
    if (r == 0)
        r = needle_init(&k->needle, ask->text, ask_is(ask, WIRE_F_REGEX), ask_is(ask, WIRE_F_ICASE),
                        why, sizeof(why));
    if (r == -EINVAL)
        r = job_refuse(j, EINVAL, FAIL_INVALID_PATTERN, NULL, why);
    else if (r < 0)
        r = job_refuse(j, ENOMEM, FAIL_OUT_OF_MEMORY, NULL, "the expression needs too much memory");
    for (size_t i = 0; r == 0 && !k->stop && i < ask->n_paths; i++)
        r = one_path(k, ask->paths[i]);
    needle_done(&k->needle);
    globs_done(&k->globs);
    return r < 0 ? job_fail(j, r, NULL) : 0;
}

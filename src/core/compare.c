#include "core/compare.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "core/checkpoints.h"
#include "core/table.h"

#define CLOCK_SLACK_MS 1000 /* clocks are set back, a little */

struct state {
    struct compare_end end;
    char at[ID_SIZE]; /* the checkpoint that it is, or came from; "": none */
    char tree[KEEPER_IMAGE_SIZE];
};

/* ---- with the table's lock held ---- */

static int find_state(struct core *core, const char *owner, const char *who, struct state *s,
                      struct err *err)
{
    struct checkpoint *c = checkpoints_find(core, owner, NULL, who);
    const struct box *b = c ? NULL : box_find(&core->table, owner, who);
    if (b) {
        s->end.sandbox = true;
        memcpy(s->end.id, b->s.id, ID_SIZE);
        memcpy(s->at, b->s.spec.checkpoint, ID_SIZE);
        memcpy(s->tree, b->tree, sizeof(s->tree));
        return 0;
    }
    int r = c ? 0 : checkpoints_resolve(core, owner, NULL, who, &c, err);
    if (r == -ENOENT)
        return err_fail(err, FAIL_CHECKPOINT_NOT_FOUND, "no checkpoint and no sandbox '%.64s' here",
                        who);
    if (r < 0)
        return r;
    memcpy(s->end.id, c->id, ID_SIZE);
    memcpy(s->at, c->id, ID_SIZE);
    memcpy(s->tree, c->tree, sizeof(s->tree));
    return 0;
}

static bool came_from(struct core *core, const char *at, const char *ancestor)
{
    const struct checkpoint *c;
    for (size_t i = 0; at[0] && i <= core->checkpoints.n; i++) {
        if (strcmp(at, ancestor) == 0)
            return true;
        c = checkpoints_find_any(core, at);
        if (!c)
            return false;
        at = c->parent;
    }
    return false;
}

/* When the two parted: what did not change since is one and the same. 0: not known. */
static int64_t parted_ms(struct core *core, const struct state *a, const struct state *b)
{
    const struct checkpoint *c = a->at[0] ? checkpoints_find_any(core, a->at) : NULL;
    for (size_t i = 0; c && i <= core->checkpoints.n; i++) {
        if (came_from(core, b->at, c->id))
            return c->created_ms - CLOCK_SLACK_MS;
        c = c->parent[0] ? checkpoints_find_any(core, c->parent) : NULL;
    }
    return 0;
}

/* ---- the question ---- */

static int add_path(struct buf *b, const char *path, struct err *err)
{
    char clean[PATH_MAX + 2];
    size_t n = strlen(path);
    if (path[0] != '/' || n >= PATH_MAX)
        return err_fail(err, FAIL_INVALID_PATH, "'%.200s' is not an absolute path", path);
    memcpy(clean, path, n + 1);
    path_clean(clean);
    if (buf_append(b, clean, strlen(clean) + 1) < 0)
        return err_fail(err, FAIL_INVALID_PATH, "the paths are too long together");
    return 0;
}

static int write_query(const struct compare_ask *ask, int64_t shared_before_ms, int *ret_fd,
                       struct err *err)
{
    _cleanup_(buf_done) struct buf paths = BUF_INIT(COMPARE_PATHS_BYTES);
    if (ask->n_paths > COMPARE_PATHS_MAX)
        return err_fail(err, FAIL_INVALID_PATH, "more than %d paths", COMPARE_PATHS_MAX);
    int r = 0;
    for (size_t i = 0; r == 0 && i < ask->n_paths; i++)
        r = add_path(&paths, ask->paths[i], err);
    if (r < 0)
        return r;
    const struct compare_query q = { .n_paths = (uint32_t)ask->n_paths,
                                     .paths_len = (uint32_t)paths.len,
                                     .text = ask->text,
                                     .shared_before_ms = shared_before_ms };
    _cleanup_fd_ int fd = memfd_create("query", MFD_CLOEXEC);
    if (fd < 0 || fd_write_full(fd, &q, sizeof(q)) < 0 ||
        (paths.len && fd_write_full(fd, paths.data, paths.len) < 0) || lseek(fd, 0, SEEK_SET) < 0)
        return err_set(err, errno, "cannot write a query");
    *ret_fd = take_fd(fd);
    return 0;
}

static int ask_keeper(struct core *core, const struct state *from, const struct state *to,
                      const struct compare_ask *ask, int query, struct trace_changes *ret_changes,
                      struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_COMPARE };
    memcpy(q.id, to->end.id, sizeof(q.id));
    memcpy(q.point, from->end.id, sizeof(q.point));
    memcpy(q.image, to->tree, sizeof(q.image));
    q.flags = (to->end.sandbox ? KEEPER_COMPARE_BOX : 0u) |
              (from->end.sandbox ? KEEPER_COMPARE_BOX_BEFORE : 0u);
    return trace_ask(core, &q, &query, 1, ask->max, ret_changes, err);
}

/* Archived ones are fetched; the files of both stay until they are let go. */
static int pin(struct core *core, const char *owner, const struct state *s,
               struct archive_busy **ret_pin, struct err *err)
{
    struct checkpoint c = { 0 };
    if (s->end.sandbox)
        return 0;
    memcpy(c.id, s->end.id, sizeof(c.id));
    (void)snprintf(c.owner, sizeof(c.owner), "%s", owner);
    return checkpoints_pin(core, &c, ret_pin, err);
}

int compare(struct core *core, const char *owner, const char *from, const char *to,
            const struct compare_ask *ask, struct comparison *ret_c, struct err *err)
{
    struct state a = { 0 }, b = { 0 };
    struct archive_busy *pins[2] = { NULL, NULL };
    _cleanup_fd_ int query = -1;
    (void)pthread_mutex_lock(&core->table.lock);
    int r = find_state(core, owner, from, &a, err);
    if (r >= 0)
        r = find_state(core, owner, to, &b, err);
    int64_t parted = r < 0 ? 0 : parted_ms(core, &a, &b);
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r >= 0 && strcmp(a.tree, b.tree) != 0)
        r = err_fail(err, FAIL_DIFFERENT_IMAGES,
                     "'%.64s' and '%.64s' lie on different images; only states of one image can be "
                     "compared",
                     from, to);
    if (r >= 0)
        r = write_query(ask, parted, &query, err);
    if (r >= 0)
        r = pin(core, owner, &a, &pins[0], err);
    if (r >= 0)
        r = pin(core, owner, &b, &pins[1], err);
    if (r >= 0)
        r = ask_keeper(core, &a, &b, ask, query, &ret_c->changes, err);
    checkpoints_unpin(core, pins[0]);
    checkpoints_unpin(core, pins[1]);
    if (r < 0)
        return r;
    ret_c->from = a.end;
    ret_c->to = b.end;
    return 0;
}

void comparison_done(struct comparison *c)
{
    trace_changes_done(&c->changes);
}

#include "core/trace.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "core/keeper.h"
#include "core/table.h"

#define ANSWER_WAIT_S 60
#define READ_MS (CHANGES_WALK_MS + 60000) /* whoever walks ends by itself first */
#define BLOCK (64 * 1024)

/* Its id, and its image's tree. */
static int find(struct core *core, const char *owner, const char *who, struct keeper_request *ret_q,
                struct err *err)
{
    struct sandbox s = { 0 };
    int r = sandbox_get(core, owner, who, &s, err);
    if (r == 0) {
        *ret_q = (struct keeper_request){ .version = KEEPER_VERSION };
        memcpy(ret_q->id, s.id, sizeof(ret_q->id));
        (void)pthread_mutex_lock(&core->table.lock);
        const struct box *b = box_find(&core->table, NULL, s.id);
        if (b)
            memcpy(ret_q->image, b->tree, sizeof(ret_q->image));
        (void)pthread_mutex_unlock(&core->table.lock);
        if (!b)
            r = err_fail(err, FAIL_SANDBOX_NOT_FOUND, "no sandbox '%s'", s.id);
    }
    sandbox_done(&s);
    return r;
}

static int answer(int sock, struct err *err)
{
    return keeper_ask_finish(sock, ANSWER_WAIT_S, "looked", NULL, err);
}

/* ---- programs ---- */

static int more_often(const void *a, const void *b)
{
    const struct keeper_program *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->path, y->path);
}

static int read_programs(int fd, struct keeper_program **ret_items, size_t *ret_n)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    size_t n = (size_t)st.st_size / sizeof(struct keeper_program);
    if (n > KEEPER_PROGRAMS_MAX)
        return -EMSGSIZE;
    struct keeper_program *items = calloc(n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_full(fd, items, n * sizeof(*items));
    if (r < 0) {
        free(items);
        return r;
    }
    for (size_t i = 0; i < n; i++)
        items[i].path[sizeof(items[i].path) - 1] = '\0';
    qsort(items, n, sizeof(*items), more_often);
    *ret_items = items;
    *ret_n = n;
    return 0;
}

int trace_programs(struct core *core, const char *owner, const char *who,
                   struct keeper_program **ret_items, size_t *ret_n, bool *ret_counted,
                   struct err *err)
{
    struct keeper_request q;
    struct keeper_reply probe;
    _cleanup_fd_ int fd = -1, sock = -1;
    int r = find(core, owner, who, &q, err);
    if (r < 0)
        return r;
    const struct keeper_request ask = { .version = KEEPER_VERSION, .op = KEEPER_PROBE };
    r = keeper_ask(core, &ask, &probe, err);
    if (r < 0)
        return r;
    *ret_counted = (probe.probe & KEEPER_HAS_PROGRAMS) != 0;
    fd = memfd_create("programs", MFD_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot make room for an answer");
    q.op = KEEPER_PROGRAMS;
    r = keeper_ask_begin(core, &q, &fd, 1, &sock, err);
    if (r == 0)
        r = answer(sock, err);
    if (r < 0)
        return r;
    r = read_programs(fd, ret_items, ret_n);
    return r < 0 ? err_set(err, -r, "cannot read what '%s' ran", q.id) : 0;
}

/* ---- files ---- */

static void count(struct trace_changes *c, const struct change_head *h)
{
    c->added += h->kind == CHANGE_ADDED;
    c->changed += h->kind == CHANGE_CHANGED;
    c->removed += h->kind == CHANGE_REMOVED;
    c->bytes += h->size;
}

/* Takes the text. */
static int keep(struct trace_changes *c, const struct change_head *h, const char *path, char *text)
{
    if ((c->n & (c->n - 1)) == 0) { /* full at each power of two */
        struct trace_change *items = reallocarray(c->items, c->n ? c->n * 2 : 1, sizeof(*items));
        if (!items)
            return -ENOMEM;
        c->items = items;
    }
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    c->items[c->n++] = (struct trace_change){ *h, copy, text };
    return 0;
}

/* NULL where there is none. */
static int read_text(FILE *in, const struct change_head *h, char **ret_text)
{
    if (h->text >= CHANGE_TEXTS || h->text_len > CHANGE_TEXT_MAX)
        return -EPROTO;
    if (h->text != CHANGE_TEXT_WHOLE && h->text != CHANGE_TEXT_CUT)
        return h->text_len ? -EPROTO : 0;
    char *text = calloc(1, (size_t)h->text_len + 1);
    if (!text)
        return -ENOMEM;
    if ((h->text_len && fread(text, h->text_len, 1, in) != 1) || strlen(text) != h->text_len ||
        !utf8_valid(text, h->text_len)) {
        free(text);
        return -EPROTO;
    }
    *ret_text = text;
    return 0;
}

/* 1: one was read, 0: that was the last. What comes was written by a process that read hostile
 * files, and is checked. */
static int read_change(FILE *in, size_t max, struct trace_changes *c)
{
    struct change_head h;
    char path[PATH_MAX], *text = NULL;
    if (fread(&h, sizeof(h), 1, in) != 1)
        return -EPIPE;
    if (h.kind == CHANGE_END) {
        c->cut = h.mode == CHANGES_CUT;
        return 0;
    }
    if (h.kind < CHANGE_ADDED || h.kind > CHANGE_END || h.path_len == 0 ||
        h.path_len >= sizeof(path) || fread(path, h.path_len, 1, in) != 1)
        return -EPROTO;
    path[h.path_len] = '\0';
    count(c, &h);
    int r = read_text(in, &h, &text);
    if (r == 0 && c->n < max)
        r = keep(c, &h, path, text);
    if (r < 0 || c->n == 0 || c->items[c->n - 1].text != text)
        free(text);
    return r < 0 ? r : 1;
}

/* The end of a pipe that warren-unpack writes to, and until when. */
struct source {
    int fd;
    int64_t until_ms;
};

static ssize_t source_read(void *cookie, char *out, size_t max)
{
    const struct source *s = cookie;
    int r = fd_wait_by(s->fd, POLLIN, s->until_ms);
    if (r >= 0)
        return read(s->fd, out, max);
    errno = -r;
    return -1;
}

static int read_changes(int fd, size_t max, struct trace_changes *c)
{
    struct source source = { fd, clock_mono_ms() + READ_MS };
    _cleanup_file_ FILE *in =
        fopencookie(&source, "r", (cookie_io_functions_t){ .read = source_read });
    int r = in ? 1 : -errno;
    for (size_t i = 0; r > 0; i++)
        r = i <= CHANGES_MAX ? read_change(in, max, c) : -EMSGSIZE;
    return r;
}

int trace_ask(struct core *core, const struct keeper_request *q, const int *fds, size_t nfds,
              size_t max, struct trace_changes *ret_changes, struct err *err)
{
    struct trace_changes c = { 0 };
    _cleanup_fd_ int sock = -1;
    _cleanup_fd_ int in = -1;
    int r = keeper_ask_piped(core, q, fds, nfds, &in, &sock, err);
    if (r < 0)
        return r;
    int read = read_changes(in, max, &c);
    (void)close(take_fd(in)); /* whoever still writes ends */
    r = answer(sock, err);    /* why it ended early, if it did, is said here */
    if (r == -ETIMEDOUT)
        r = err_fail(err, FAIL_CHANGES_TIMEOUT,
                     "what '%s' changed was not found within %d s: name fewer paths, or compare "
                     "checkpoints, which nobody changes meanwhile",
                     q->id, CHANGES_WALK_MS / 1000);
    if (r == 0 && read < 0)
        r = err_set(err, -read, "cannot read what '%s' changed", q->id);
    if (r < 0)
        trace_changes_done(&c);
    else
        *ret_changes = c;
    return r;
}

int trace_changes(struct core *core, const char *owner, const char *who, size_t max,
                  struct trace_changes *ret_changes, struct err *err)
{
    struct keeper_request q;
    int r = find(core, owner, who, &q, err);
    if (r < 0)
        return r;
    q.op = KEEPER_CHANGES;
    return trace_ask(core, &q, NULL, 0, max, ret_changes, err);
}

void trace_changes_done(struct trace_changes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->items[i].path);
        free(c->items[i].text);
    }
    free(c->items);
    *c = (struct trace_changes){ 0 };
}

/* ---- volumes ---- */

static bool sees(const struct sandbox_spec *spec, const char *volume)
{
    for (size_t i = 0; i < spec->n_mounts; i++)
        if (strcmp(spec->mounts[i].volume, volume) == 0)
            return true;
    return false;
}

size_t trace_sharers(struct core *core, const char *volume, const char *except,
                     char out[TRACE_SHARERS_MAX][ID_SIZE])
{
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    for (size_t i = 0; i < core->table.n && n < TRACE_SHARERS_MAX; i++) {
        const struct box *b = core->table.sorted[i];
        if (strcmp(b->s.id, except) != 0 && sees(&b->s.spec, volume))
            memcpy(out[n++], b->s.id, ID_SIZE);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    return n;
}

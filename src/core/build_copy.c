#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "core/build_private.h"

#define PROBE "/dev/shm/warren-owner" /* memory of the cell's own: no layer has it */
#define MAGIC_BYTES 512

/* Files on their way into a step's cell. */
struct copy {
    struct build *b;
    const struct dockerfile_step *step;
    struct build_cell *cell;
    struct file_call *call; /* TREE_IN at the cell's root */
    char dest[PATH_MAX];    /* absolute, cleaned */
    bool into_dir;          /* dest is, or is to be, a directory */
    bool own;               /* give everything to uid, gid */
    uint32_t uid, gid;
    bool has_mode;
    unsigned mode;
    const struct build_source *src; /* the one at hand */
};

static int no_memory(struct err *err)
{
    return err_set(err, ENOMEM, "cannot allocate a copy");
}

/* ---- what the step says ---- */

static int parse_mode(struct copy *c, struct err *err)
{
    const char *text = c->step->chmod;
    size_t n = text ? strlen(text) : 0;
    if (!text)
        return 0;
    if (n < 1 || n > 4 || strspn(text, "01234567") != n)
        return err_fail(err, FAIL_INVALID_DOCKERFILE,
                        "line %u: --chmod takes an octal mode such as 755, not '%.60s'",
                        c->step->line, text);
    c->mode = (unsigned)strtoul(text, NULL, 8);
    c->has_mode = true;
    return 0;
}

/* Who it is, is the image's to say: a file that the user makes has its owner. */
static int find_owner(struct copy *c, struct err *err)
{
    const char *const path = PROBE;
    const char *who = c->step->chown;
    char twice[64];
    c->own = who || !c->step->from;
    if (!who)
        return 0;
    if (strspn(who, "0123456789") == strlen(who)) { /* a number is both, as docker has it */
        (void)snprintf(twice, sizeof(twice), "%.20s:%.20s", who, who);
        who = twice;
    }
    struct file_ask ask = { .op = WIRE_FILE_WRITE, .paths = &path, .n_paths = 1, .user = who };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    int r = file_begin(c->b->core, &c->cell->s, &ask, &call, err);
    if (r >= 0)
        (void)file_put_end(call); /* a refusal is read below */
    for (bool done = false; r >= 0 && !done;) {
        struct file_event ev;
        r = file_next(call, -1, c->b->alive[0], &ev, err);
        if (r < 0)
            break;
        if (ev.type == FILE_ENTRY) {
            c->uid = ev.entry.uid;
            c->gid = ev.entry.gid;
        }
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    if (r < 0) {
        struct err why = *err;
        return err_fail_as(err, -r, FAIL_BUILD_FAILED, "line %u: --chown=%.60s: %.200s",
                           c->step->line, c->step->chown, why.msg);
    }
    return 0;
}

static int stat_in(struct copy *c, const char *path, struct file_entry *ret_e, struct err *err)
{
    struct file_ask ask = { .op = WIRE_FILE_STAT, .paths = &path, .n_paths = 1 };
    return file_do(c->b->core, &c->cell->s, &ask, ret_e, NULL, err);
}

static int resolve_dest(struct build *b, const struct build_stage *st,
                        const struct dockerfile_step *step, char out[PATH_MAX], struct err *err)
{
    _cleanup_(buf_done) struct buf path = BUF_INIT(PATH_MAX - 2);
    const char *word = step->words[step->n_words - 1];
    const char *cwd = st->config.workdir && *st->config.workdir ? st->config.workdir : "/";
    int r = path_resolve(cwd, *word ? word : ".", &path);
    if (r < 0)
        return err_fail_as(err, -r, FAIL_INVALID_DOCKERFILE, "line %u: the destination is too long",
                           b->line);
    memcpy(out, path.data, path.len + 1);
    return 0;
}

static bool says_dir(const char *word)
{
    size_t n = strlen(word);
    const char *last = path_base(word);
    return n == 0 || word[n - 1] == '/' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
}

/* Is the destination a directory, by what was written or by what is there? */
static int look_at_dest(struct copy *c, const struct build_sources *sources, struct err *err)
{
    const char *word = c->step->words[c->step->n_words - 1];
    struct file_entry e = { 0 };
    c->into_dir = says_dir(word) || strcmp(c->dest, "/") == 0;
    if (c->step->files && sources->n > 1)
        c->into_dir = true; /* these clients never say so */
    for (size_t i = 0; i < sources->n && !c->into_dir; i++)
        c->into_dir = sources->items[i].is_dir && sources->n == 1;
    if (sources->n > 1 && !c->into_dir)
        return err_fail(err, FAIL_INVALID_DOCKERFILE,
                        "line %u: several files need a directory, and its name must end in '/': "
                        "'%.100s/'",
                        c->step->line, word);
    if (c->into_dir)
        return 0;
    int r = stat_in(c, c->dest, &e, err);
    c->into_dir = r >= 0 && e.type == WIRE_DIRECTORY;
    if (r >= 0)
        file_entry_done(&e);
    if (r < 0 && (r == -ENOENT || r == -ENOTDIR)) {
        *err = (struct err)ERR_INIT;
        return 0;
    }
    return r;
}

/* ---- writing ---- */

static int put_entry(struct copy *c, const struct file_entry *e, const char *path, const char *link,
                     struct err *err)
{
    struct file_entry out = *e;
    out.path = (char *)(uintptr_t)path; /* only read */
    out.link = (char *)(uintptr_t)link;
    if (c->own) {
        out.uid = c->uid;
        out.gid = c->gid;
    }
    if (c->has_mode && e->type != WIRE_SYMLINK)
        out.mode = c->mode;
    int r = file_put_entry(c->call, &out);
    return r < 0 && r != -EPIPE ? err_set(err, -r, "cannot copy '%.200s'", path) : r;
}

/* Where an entry of the source at hand goes, relative to the root. */
static int place(const struct copy *c, const char *entry, char out[PATH_MAX], struct err *err)
{
    const char *dir = c->dest + 1; /* "" for the root */
    const char *name = c->src->is_dir ? entry : c->src->name;
    int n = c->into_dir ? snprintf(out, PATH_MAX, "%s%s%s", dir, *dir ? "/" : "", name)
                        : snprintf(out, PATH_MAX, "%s", dir);
    if (n < 0 || n >= PATH_MAX)
        return err_fail_as(err, ENAMETOOLONG, FAIL_BUILD_FAILED, "line %u: a path is too long",
                           c->step->line);
    return 0;
}

static int copy_one(void *ctx, const struct file_entry *e, const char *p, size_t n, struct err *err)
{
    struct copy *c = ctx;
    char path[PATH_MAX], link[PATH_MAX];
    if (!e) {
        int r = file_put_data(c->call, p, n);
        return r < 0 && r != -EPIPE ? err_set(err, -r, "cannot copy a file") : r;
    }
    int r = place(c, e->path, path, err);
    if (r >= 0 && e->type == WIRE_HARDLINK && e->link)
        r = place(c, e->link, link, err);
    if (r < 0)
        return r;
    return put_entry(c, e, path, e->type == WIRE_HARDLINK ? link : e->link, err);
}

/* The directories of the destination that are missing, with the owner that was asked for. */
static int put_dirs(struct copy *c, struct err *err)
{
    char path[PATH_MAX];
    size_t n = strlen(c->dest);
    memcpy(path, c->dest, n + 1);
    if (!c->into_dir)
        *strrchr(path, '/') = '\0';
    for (char *at = path; *at && at[1];) {
        at = strchrnul(at + 1, '/');
        char was = *at;
        struct file_entry e = { 0 };
        *at = '\0';
        int r = stat_in(c, path, &e, err);
        if (r >= 0) {
            file_entry_done(&e);
        } else if (r == -ENOENT) {
            struct file_entry dir = { .type = WIRE_DIRECTORY, .mode = 0755 };
            bool has_mode = c->has_mode; /* what was asked for is for what is copied */
            c->has_mode = false;
            r = put_entry(c, &dir, path + 1, NULL, err);
            c->has_mode = has_mode;
        }
        *at = was;
        if (r < 0 && r != -EPIPE)
            return r;
    }
    return 0;
}

static int read_result(struct copy *c, struct err *err)
{
    for (bool done = false; !done;) {
        struct file_event ev;
        int r = file_next(c->call, -1, c->b->alive[0], &ev, err);
        if (r < 0) {
            struct err why = *err;
            return err->failure ? err_fail_as(err, -r, FAIL_BUILD_FAILED, "line %u: %.350s",
                                              c->step->line, why.msg)
                                : r;
        }
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    return 0;
}

/* ---- ADD of an archive ---- */

static bool looks_packed(const unsigned char *p, size_t n)
{
    static const struct {
        size_t at, n;
        const char *bytes;
    } magics[] = { { 0, 2, "\x1f\x8b" }, { 0, 4, "\x28\xb5\x2f\xfd" }, { 257, 5, "ustar" } };
    for (size_t i = 0; i < ARRAY_LEN(magics); i++)
        if (n >= magics[i].at + magics[i].n &&
            memcmp(p + magics[i].at, magics[i].bytes, magics[i].n) == 0)
            return true;
    return false;
}

struct peek {
    unsigned char bytes[MAGIC_BYTES];
    size_t n;
};

static int peek_one(void *ctx, const struct file_entry *e, const char *p, size_t n, struct err *err)
{
    struct peek *k = ctx;
    size_t room = sizeof(k->bytes) - k->n;
    if (!e) {
        memcpy(k->bytes + k->n, p, n < room ? n : room);
        k->n += n < room ? n : room;
    }
    return k->n == sizeof(k->bytes) ? -EALREADY : 0; /* enough was seen */
}

static int feed_archive(void *ctx, const struct file_entry *e, const char *p, size_t n,
                        struct err *err)
{
    int r = e ? 0 : archiver_write(ctx, p, n);
    return r < 0 && r != -EPIPE ? err_set(err, -r, "cannot unpack an archive") : r;
}

/* 1: it was an archive and is unpacked; 0: it is none. */
static int add_archive(struct copy *c, const struct build_source *src, struct err *err)
{
    struct peek k = { .n = 0 };
    struct archiver *a = NULL;
    struct file_call *call = NULL;
    uint64_t files = 0;
    const char *const path = c->dest;
    int r = build_source_each(c->b, src, peek_one, &k, err);
    if (r < 0 && r != -EALREADY)
        return r;
    if (!looks_packed(k.bytes, k.n))
        return 0;
    if (c->step->chown || c->has_mode)
        return err_fail(err, FAIL_INVALID_DOCKERFILE,
                        "line %u: --chown and --chmod do not work on an archive", c->step->line);
    struct file_ask ask = {
        .op = WIRE_FILE_TREE_IN, .paths = &path, .n_paths = 1, .flags = WIRE_F_NUMERIC
    };
    r = file_begin(c->b->core, &c->cell->s, &ask, &call, err);
    if (r >= 0)
        r = archiver_unpack(c->b->core, call, "auto", &a, err);
    if (r >= 0)
        r = build_source_each(c->b, src, feed_archive, a, err);
    for (bool done = false; (r >= 0 || r == -EPIPE) && !done;) {
        struct file_event ev;
        r = archiver_next(a, c->b->alive[0], &ev, err);
        if (r < 0)
            break;
        files += ev.type == FILE_ENTRY;
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    archiver_free(a);
    if (r >= 0)
        return 1;
    bool other = err->failure == FAIL_INVALID_ARCHIVE && files == 0;
    bool tar = k.n >= 262 && memcmp(k.bytes + 257, "ustar", 5) == 0;
    if (other && !tar && !strstr(src->name, ".tar") && !strstr(src->name, ".tgz")) {
        *err = (struct err)ERR_INIT;
        return 0; /* packed, but no archive: a file like others */
    }
    return err_wrap(err, r, "line %u: '%.100s'", c->step->line, src->name);
}

/* ---- one step ---- */

static int copy_sources(struct copy *c, const struct build_sources *sources, struct err *err)
{
    const char *const root = "/";
    struct file_ask ask = {
        .op = WIRE_FILE_TREE_IN, .paths = &root, .n_paths = 1, .flags = WIRE_F_NUMERIC
    };
    _cleanup_free_ bool *done = calloc(sources->n + 1, sizeof(*done));
    if (!done)
        return no_memory(err);
    for (size_t i = 0; c->step->kind == DOCKERFILE_ADD && i < sources->n; i++) {
        const struct build_source *src = &sources->items[i];
        int r = src->cell && !src->is_dir ? add_archive(c, src, err) : 0;
        if (r < 0)
            return r;
        done[i] = r > 0;
    }
    int r = file_begin(c->b->core, &c->cell->s, &ask, &c->call, err);
    if (r >= 0)
        r = put_dirs(c, err);
    for (size_t i = 0; i < sources->n && r >= 0; i++) {
        c->src = &sources->items[i];
        if (!done[i])
            r = build_source_each(c->b, c->src, copy_one, c, err);
    }
    if (r >= 0)
        r = file_put_end(c->call);
    if (r >= 0 || r == -EPIPE) /* then it says why itself */
        r = read_result(c, err);
    file_call_free(c->call);
    c->call = NULL;
    return r;
}

static int copy_into(struct copy *c, const struct build_sources *sources, struct err *err)
{
    int r = find_owner(c, err);
    if (r >= 0)
        r = look_at_dest(c, sources, err);
    return r < 0 ? r : copy_sources(c, sources, err);
}

static int key_of(struct build *b, const struct build_stage *st, const struct copy *c,
                  const struct build_sources *sources, char ret_key[DIGEST_SIZE], struct err *err)
{
    struct build_key key;
    int r = 0;
    build_key_begin(&key, b, dockerfile_kind_name(c->step->kind), build_chain(st));
    build_key_text(&key, c->dest);
    build_key_number(&key, says_dir(c->step->words[c->step->n_words - 1]));
    build_key_text(&key, c->step->chown);
    build_key_text(&key, c->step->chmod);
    build_key_number(&key, sources->n);
    for (size_t i = 0; i < sources->n && r >= 0; i++)
        r = build_source_hash(b, &sources->items[i], c->step->from && !c->step->chown, &key, err);
    if (r < 0) {
        digest_free(key.hash);
        return r;
    }
    return build_key_end(&key, ret_key, err);
}

int build_copy(struct build *b, size_t stage, const struct dockerfile_step *step, struct err *err)
{
    struct build_stage *st = &b->stages[stage];
    struct copy c = { .b = b, .step = step };
    struct build_cell cell = { 0 };
    _cleanup_(build_sources_done) struct build_sources sources = { NULL, 0 };
    char key[DIGEST_SIZE];
    int r = parse_mode(&c, err);
    if (r >= 0)
        r = resolve_dest(b, st, step, c.dest, err);
    if (r >= 0)
        r = build_sources_find(b, stage, step, &sources, err);
    if (r >= 0)
        r = key_of(b, st, &c, &sources, key, err);
    if (r >= 0)
        r = build_from_cache(b, st, key, step->text, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = build_work_cell(b, st, &cell, err);
    c.cell = &cell;
    if (r >= 0)
        r = copy_into(&c, &sources, err);
    if (r >= 0)
        r = build_commit(b, st, &cell, key, step->text, err);
    build_cell_done(b, &cell);
    return r;
}

/* ---- WORKDIR ---- */

/* `owner` NULL: root's; one that is there stays whose it is. */
static int make_dir(struct build *b, struct build_cell *cell, const char *path, const char *owner,
                    struct err *err)
{
    struct file_ask ask = { .op = WIRE_FILE_MKDIR, .paths = &path, .n_paths = 1, .mode = 0755 };
    struct file_ask give = { .op = WIRE_FILE_CHOWN, .paths = &path, .n_paths = 1, .owner = owner };
    struct file_entry e = { 0 };
    struct file_event done = { 0 };
    int r = file_do(b->core, &cell->s, &ask, &e, &done, err);
    if (r >= 0)
        file_entry_done(&e);
    if (r >= 0 && owner && done.count > 0) {
        r = file_do(b->core, &cell->s, &give, &e, NULL, err);
        if (r >= 0)
            file_entry_done(&e);
    }
    return r < 0 ? err_wrap(err, r, "line %u", b->line) : 0;
}

int build_workdir(struct build *b, struct build_stage *st, const struct dockerfile_step *step,
                  struct err *err)
{
    char path[PATH_MAX], key[DIGEST_SIZE];
    struct build_cell cell = { 0 };
    struct build_key k;
    int r = resolve_dest(b, st, step, path, err);
    if (r < 0)
        return r;
    char *copy = strdup(path);
    if (!copy)
        return no_memory(err);
    free(st->config.workdir);
    st->config.workdir = copy;
    build_key_begin(&k, b, "WORKDIR", build_chain(st));
    build_key_text(&k, path);
    if (step->chown)
        build_key_text(&k, step->chown);
    r = build_key_end(&k, key, err);
    if (r >= 0)
        r = build_from_cache(b, st, key, step->text, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = build_work_cell(b, st, &cell, err);
    if (r >= 0)
        r = make_dir(b, &cell, path, step->chown, err);
    if (r >= 0)
        r = build_commit(b, st, &cell, key, step->text, err);
    build_cell_done(b, &cell);
    return r;
}

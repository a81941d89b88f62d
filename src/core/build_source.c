#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/glob.h"
#include "base/path.h"
#include "core/build_private.h"

#define SOURCES_MAX 100000 /* that patterns may find */

static int no_memory(struct err *err)
{
    return err_set(err, ENOMEM, "cannot allocate what is copied");
}

void build_sources_done(struct build_sources *sources)
{
    for (size_t i = 0; i < sources->n; i++) {
        free(sources->items[i].path);
        free(sources->items[i].relative);
        free(sources->items[i].link);
    }
    free(sources->items);
    *sources = (struct build_sources){ NULL, 0 };
}

/* ---- where to look ---- */

static int image_cell(struct build *b, const char *name, struct build_cell **ret_cell,
                      struct err *err)
{
    struct image image;
    for (size_t i = 0; i < b->n_others; i++)
        if (strcmp(b->others[i].name, name) == 0) {
            *ret_cell = &b->others[i].cell;
            return 0;
        }
    if (b->n_others == ARRAY_LEN(b->others) || strlen(name) >= IMAGE_NAME_MAX)
        return err_fail_as(err, E2BIG, FAIL_INVALID_DOCKERFILE,
                           "line %u: copies from over %zu images; begin stages from them instead",
                           b->line, ARRAY_LEN(b->others));
    int r = image_resolve(b->core, b->owner, name, &image, NULL, err);
    if (r == -ENOENT) {
        r = build_pull(b, name, err);
        if (r >= 0)
            r = image_resolve(b->core, b->owner, name, &image, NULL, err);
    }
    if (r >= 0)
        r = build_cell_make(b, image.tree, false, &b->others[b->n_others].cell, err);
    if (r < 0)
        return r;
    (void)snprintf(b->others[b->n_others].name, sizeof(b->others[0].name), "%s", name);
    *ret_cell = &b->others[b->n_others++].cell;
    return 0;
}

/* The cell that a --from names. */
static int from_cell(struct build *b, size_t at, const struct dockerfile_step *step,
                     struct build_cell **ret_cell, struct err *err)
{
    int stage;
    int r = plan_source(&b->file, at, step->from, step->line, &stage, err);
    if (r < 0)
        return r;
    if (stage < 0)
        return image_cell(b, step->from, ret_cell, err);
    struct build_stage *st = &b->stages[stage];
    if (!st->cell.s.id[0])
        r = build_work_cell(b, st, &st->cell, err);
    *ret_cell = &st->cell;
    return r;
}

/* ---- finding them ---- */

struct finder {
    struct build *b;
    const struct dockerfile_step *step;
    struct build_cell *cell;
    const char *root; /* before each path; "" where the cell's root is meant */
    bool context;     /* the context's rules apply */
    struct build_sources found;
};

static bool ignored(const struct finder *f, const char *relative)
{
    return f->context && (strcmp(relative, BUILD_OUTSIDE) == 0 ||
                          (strcmp(relative, ".") != 0 && ignore_match(&f->b->ignore, relative)));
}

static int add(struct finder *f, const char *relative, bool is_dir, struct err *err)
{
    struct build_sources *s = &f->found;
    if (s->n == SOURCES_MAX)
        return err_fail_as(err, E2BIG, FAIL_BUILD_FAILED, "line %u: over %d files match",
                           f->step->line, SOURCES_MAX);
    struct build_source *items = reallocarray(s->items, s->n + 1, sizeof(*items));
    if (!items)
        return no_memory(err);
    s->items = items;
    struct build_source *src = &items[s->n];
    *src = (struct build_source){ .cell = f->cell, .is_dir = is_dir };
    if (asprintf(&src->path, "%s/%s", f->root, relative) < 0) {
        src->path = NULL;
        return no_memory(err);
    }
    s->n++;
    src->relative = f->context ? strdup(relative) : NULL;
    if (f->context && !src->relative)
        return no_memory(err);
    src->name = path_base(src->path);
    return 0;
}

static int missing(const struct finder *f, const char *word, bool by_rule, struct err *err)
{
    return err_fail_as(err, ENOENT, FAIL_BUILD_FAILED, "line %u: '%.200s' is not there%s",
                       f->step->line, word, by_rule ? ": " IGNORE_FILE " leaves it out" : "");
}

/* What a link names, not the link itself: that much a source says. */
static int add_plain(struct finder *f, const char *word, const char *relative, struct err *err)
{
    char path[PATH_MAX];
    const char *const paths = path;
    int n = snprintf(path, sizeof(path), "%s/%s", f->root, relative);
    if (n < 0 || (size_t)n >= sizeof(path))
        return missing(f, word, false, err);
    struct file_ask ask = { .op = WIRE_FILE_STAT, .paths = &paths, .n_paths = 1 };
    struct file_entry e = { 0 };
    if (ignored(f, relative) && !f->b->ignore.brings_back)
        return missing(f, word, true, err);
    int r = file_do(f->b->core, &f->cell->s, &ask, &e, NULL, err);
    if (r == -ENOENT && f->step->files) { /* a link that was sent alone */
        ask.flags = WIRE_F_NOFOLLOW;
        r = file_do(f->b->core, &f->cell->s, &ask, &e, NULL, err);
    }
    if (r == -ENOENT || r == -ENOTDIR)
        return missing(f, word, false, err);
    if (r < 0)
        return err_wrap(err, r, "line %u", f->step->line);
    bool is_dir = e.type == WIRE_DIRECTORY;
    _cleanup_free_ char *link = e.type == WIRE_SYMLINK ? take_ptr(e.link) : NULL;
    file_entry_done(&e);
    if (!is_dir && ignored(f, relative))
        return missing(f, word, true, err);
    r = add(f, relative, is_dir, err);
    if (r >= 0)
        f->found.items[f->found.n - 1].link = take_ptr(link);
    return r;
}

/* The directory before the first part that is a pattern, and how many parts follow it. */
static size_t plain_part(const char *pattern, unsigned *ret_depth)
{
    size_t dir = 0;
    unsigned depth = 1;
    for (size_t i = 0; pattern[i]; i++) {
        if (strchr("*?[\\", pattern[i]))
            break;
        if (pattern[i] == '/')
            dir = i + 1;
    }
    for (const char *p = pattern + dir; *p; p++)
        depth += *p == '/';
    *ret_depth = depth;
    return dir;
}

static int match_entry(struct finder *f, const char *pattern, const struct file_entry *e,
                       struct err *err)
{
    size_t root = strlen(f->root);
    if (!e->path || strncmp(e->path, f->root, root) != 0 || e->path[root] != '/')
        return err_set(err, EPROTO, "a cell told of a path that was not asked for");
    const char *relative = e->path + root + 1;
    if (!glob_match(pattern, relative, 0) || ignored(f, relative))
        return 0;
    if (e->type == WIRE_SYMLINK)
        return add_plain(f, relative, relative, err);
    return add(f, relative, e->type == WIRE_DIRECTORY, err);
}

static int add_matches(struct finder *f, const char *pattern, struct err *err)
{
    char path[PATH_MAX];
    const char *const paths = path;
    unsigned depth;
    size_t dir = plain_part(pattern, &depth), before = f->found.n;
    int n = snprintf(path, sizeof(path), "%s/%.*s", f->root, (int)dir, pattern);
    if (n < 0 || (size_t)n >= sizeof(path) || !glob_valid(pattern))
        return err_fail(err, FAIL_INVALID_DOCKERFILE, "line %u: '%.100s' is not a pattern",
                        f->step->line, pattern);
    struct file_ask ask = { .op = WIRE_FILE_LIST, .paths = &paths, .n_paths = 1, .depth = depth };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    int r = file_begin(f->b->core, &f->cell->s, &ask, &call, err);
    for (bool done = false; r >= 0 && !done;) {
        struct file_event ev;
        r = file_next(call, -1, f->b->alive[0], &ev, err);
        if (r < 0)
            break;
        if (ev.type == FILE_ENTRY)
            r = match_entry(f, pattern, &ev.entry, err);
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    if (r == -ENOENT && f->found.n == before)
        return missing(f, pattern, false, err);
    return r >= 0 && f->found.n == before ? missing(f, pattern, false, err) : r;
}

/* Patterns of which glob.h knows nothing. */
static bool wide(const char *pattern)
{
    return strstr(pattern, "**") || strpbrk(pattern, "{(");
}

/* An upload holds what its pattern found and nothing else: all of it, below what is no pattern. */
static int add_all_below(struct finder *f, const char *pattern, struct err *err)
{
    char dir[PATH_MAX];
    size_t n = 0;
    for (size_t i = 0; pattern[i] && !strchr("*?[{(!+@\\", pattern[i]); i++)
        if (pattern[i] == '/')
            n = i;
    (void)snprintf(dir, sizeof(dir), "%.*s", n ? (int)n : 1, n ? pattern : ".");
    return add(f, dir, true, err);
}

/* Below its root, whatever it says: `..` in front would lead out. */
static int add_word(struct finder *f, const char *word, struct err *err)
{
    char relative[PATH_MAX];
    const char *p = word + strspn(word, "/");
    int n = snprintf(relative, sizeof(relative) - 1, "%s", p);
    if (n < 0 || (size_t)n >= sizeof(relative) - 1)
        return missing(f, word, false, err);
    path_clean(relative);
    if (strncmp(relative, "..", 2) == 0 && (!relative[2] || relative[2] == '/'))
        return err_fail(err, FAIL_INVALID_DOCKERFILE, "line %u: '%.100s' lies outside of the %s",
                        f->step->line, word, f->context ? "context" : "image");
    if (f->step->files && wide(relative))
        return add_all_below(f, relative, err);
    return glob_magic(relative) ? add_matches(f, relative, err) : add_plain(f, word, relative, err);
}

static int add_heredoc(struct finder *f, const struct dockerfile_heredoc *doc, struct err *err)
{
    struct build_source *items =
        reallocarray(f->found.items, f->found.n + 1, sizeof(*f->found.items));
    if (!items)
        return no_memory(err);
    f->found.items = items;
    items[f->found.n++] = (struct build_source){ .text = doc, .name = doc->name };
    return 0;
}

int build_sources_find(struct build *b, size_t stage, const struct dockerfile_step *step,
                       struct build_sources *ret_sources, struct err *err)
{
    struct finder f = { .b = b, .step = step };
    int r = 0;
    f.context = !step->from;
    f.cell = &b->context;
    f.root = step->files ? step->files : f.context ? BUILD_CONTEXT_DIR : "";
    if (step->from)
        r = from_cell(b, stage, step, &f.cell, err);
    for (size_t i = 0; i + 1 < step->n_words && r >= 0; i++)
        r = add_word(&f, step->words[i], err);
    for (size_t i = 0; i < step->n_heredocs && r >= 0; i++)
        r = add_heredoc(&f, &step->heredocs[i], err);
    if (r < 0) {
        build_sources_done(&f.found);
        return r;
    }
    *ret_sources = f.found;
    return 0;
}

/* ---- reading them ---- */

static int each_heredoc(const struct build_source *src, build_source_fn *fn, void *ctx,
                        struct err *err)
{
    char *path = strdup(src->text->name);
    struct file_entry e = { .path = path, .type = WIRE_REGULAR, .mode = 0644 };
    if (!path)
        return no_memory(err);
    e.size = src->text->len;
    int r = fn(ctx, &e, NULL, 0, err);
    if (r >= 0 && src->text->len)
        r = fn(ctx, NULL, src->text->text, src->text->len, err);
    free(path);
    return r;
}

static int each_link(const struct build_source *src, build_source_fn *fn, void *ctx,
                     struct err *err)
{
    struct file_entry e = { .path = (char *)(uintptr_t)src->name, /* only read */
                            .type = WIRE_SYMLINK,
                            .mode = 0777,
                            .link = src->link };
    return fn(ctx, &e, NULL, 0, err);
}

/* Does the context leave this entry of the source out? */
static int left_out(struct build *b, const struct build_source *src, const struct file_entry *e,
                    bool *ret_out, struct err *err)
{
    char path[PATH_MAX];
    *ret_out = e->type == WIRE_SOCKET;
    if (!src->relative || !src->is_dir)
        return 0;
    bool top = strcmp(src->relative, ".") == 0;
    int n =
        snprintf(path, sizeof(path), "%s%s%s", top ? "" : src->relative, top ? "" : "/", e->path);
    if (n < 0 || (size_t)n >= sizeof(path))
        return err_fail_as(err, ENAMETOOLONG, FAIL_BUILD_FAILED, "line %u: a path is too long",
                           b->line);
    *ret_out = *ret_out || strcmp(path, BUILD_OUTSIDE) == 0 || ignore_match(&b->ignore, path);
    return 0;
}

static int one_event(struct build *b, const struct build_source *src, const struct file_event *ev,
                     bool *skip, build_source_fn *fn, void *ctx, struct err *err)
{
    int r = 0;
    switch (ev->type) {
    case FILE_ENTRY:
        if (!ev->entry.path)
            return err_set(err, EPROTO, "a cell told of an entry without a name");
        r = left_out(b, src, &ev->entry, skip, err);
        return r < 0 || *skip ? r : fn(ctx, &ev->entry, NULL, 0, err);
    case FILE_DATA: return *skip ? 0 : fn(ctx, NULL, ev->data, ev->len, err);
    case FILE_SKIPPED:
        if (ev->err.failure == FAIL_NOT_SUPPORTED)
            return 0; /* a socket */
        return err_fail_as(err, EIO, FAIL_BUILD_FAILED, "line %u: '%.100s': %.200s", b->line,
                           ev->entry.path ? ev->entry.path : "?", ev->err.msg);
    default: return 0;
    }
}

int build_source_each(struct build *b, const struct build_source *src, build_source_fn *fn,
                      void *ctx, struct err *err)
{
    if (!src->cell)
        return each_heredoc(src, fn, ctx, err);
    if (src->link)
        return each_link(src, fn, ctx, err);
    const char *const path = src->path;
    struct file_ask ask = { .op = WIRE_FILE_TREE_OUT, .paths = &path, .n_paths = 1 };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    /* With rules, the name that others are links to may be left out. */
    ask.flags = (src->is_dir ? WIRE_F_CONTENTS : 0) | (b->ignore.n ? WIRE_F_WHOLE : 0);
    bool skip = false;
    int r = file_begin(b->core, &src->cell->s, &ask, &call, err);
    for (bool done = false; r >= 0 && !done;) {
        struct file_event ev;
        r = file_next(call, -1, b->alive[0], &ev, err);
        if (r < 0)
            return r;
        r = one_event(b, src, &ev, &skip, fn, ctx, err);
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    return r < 0 ? r : 0;
}

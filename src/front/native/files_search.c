/* Text in files: found, and replaced. */
#include <errno.h>
#include <string.h>

#include "front/http/fields.h"
#include "front/native/files.h"

#define LIMIT 1000
#define LIMIT_MAX 100000
#define TEXT_MAX 65536
#define SKIPPED_MAX 1000 /* files that the answer names one by one */

struct body {
    char *path, *user, *text, *replacement;
    char **paths, **include;
    bool regex, ignore_case, dry_run;
    uint64_t limit;
};

#define ROW(member_, ...) FIELD(struct body, member_, #member_, __VA_ARGS__)
#define ROWS_OF_BOTH                                                                          \
    ROW(path, as_text, .max = FILES_PATH_MAX - 1), ROW(paths, as_texts),                      \
        ROW(user, as_text, .max = 256, .null_ok = true), ROW(text, as_text, .max = TEXT_MAX), \
        ROW(regex, as_bool), ROW(ignore_case, as_bool), ROW(include, as_texts)

static const struct field search_fields[] = {
    ROWS_OF_BOTH,
    ROW(limit, as_u64, .min = 1, .max = LIMIT_MAX),
};
static const struct field replace_fields[] = {
    ROWS_OF_BOTH,
    ROW(replacement, as_text, .max = TEXT_MAX),
    ROW(dry_run, as_bool),
};

static void texts_free(char **texts)
{
    for (char **p = texts; p && *p; p++)
        free(*p);
    free(texts);
}

static void body_done(struct body *b)
{
    free(b->path);
    free(b->user);
    free(b->text);
    free(b->replacement);
    texts_free(b->paths);
    texts_free(b->include);
}

static size_t count(char **texts)
{
    size_t n = 0;
    while (texts && texts[n])
        n++;
    return n;
}

static int read_body(struct request *req, enum wire_file_op op, struct body *b,
                     struct file_ask *ret_ask, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    bool search = op == WIRE_FILE_SEARCH;
    uint32_t seen = 0;

    b->limit = LIMIT;
    int r = request_json(req, &object, err);
    if (r >= 0)
        r = fields_decode(object, search ? search_fields : replace_fields,
                          search ? ARRAY_LEN(search_fields) : ARRAY_LEN(replace_fields), b, &seen,
                          err);
    if (r < 0)
        return r;
    if (!b->path == !count(b->paths))
        return err_fail(err, b->path ? FAIL_INVALID_FIELD : FAIL_MISSING_FIELD,
                        "one of 'path' and 'paths' is needed");
    if (count(b->paths) > FILES_PATHS_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'paths' has over %d paths", FILES_PATHS_MAX);
    if (!b->text || !*b->text)
        return err_fail(err, FAIL_MISSING_FIELD, "'text' is needed");
    if (!search && !b->replacement)
        return err_fail(err, FAIL_MISSING_FIELD, "'replacement' is needed");
    *ret_ask = (struct file_ask){
        .op = op,
        .user = b->user,
        .paths = (const char *const *)(b->path ? &b->path : b->paths),
        .n_paths = b->path ? 1 : count(b->paths),
        .patterns = (const char *const *)b->include,
        .n_patterns = count(b->include),
        .text = b->text,
        .to = b->replacement,
        .limit = search ? b->limit + 1 : 0,
        .flags = (b->regex ? WIRE_F_REGEX : 0) | (b->ignore_case ? WIRE_F_ICASE : 0) |
                 (b->dry_run ? WIRE_F_DRY_RUN : 0),
    };
    return 0;
}

static void put_match(struct jout *j, const struct file_event *ev)
{
    jout_open(j, NULL, '{');
    jout_str(j, "path", ev->entry.path);
    jout_uint(j, "line", ev->line);
    jout_uint(j, "column", ev->column);
    jout_uint(j, "offset", ev->offset);
    jout_strn(j, "text", ev->data ? ev->data : "", ev->len);
    jout_close(j, '}');
}

static void put_changed(struct jout *j, const struct file_event *ev)
{
    jout_open(j, NULL, '{');
    jout_str(j, "path", ev->entry.path);
    jout_uint(j, "count", ev->count);
    jout_close(j, '}');
}

static void put_skipped(struct jout *j, const struct file_event *ev)
{
    jout_open(j, NULL, '{');
    jout_str(j, "path", ev->entry.path);
    jout_str(j, "code", failure_name(ev->err.failure));
    jout_str(j, "message", ev->err.msg);
    jout_close(j, '}');
}

struct found {
    uint64_t n, limit;
    bool truncated;
    struct file_event done;
    struct buf skipped;
    struct jout j_skipped;
    unsigned n_skipped;
};

static int collect(struct request *req, struct file_call *call, struct found *f, struct jout *j,
                   struct err *err)
{
    for (;;) {
        struct file_event ev;
        int r = file_next(call, -1, req->fd, &ev, err);
        if (r < 0)
            return r;
        bool item = ev.type == FILE_MATCH || ev.type == FILE_CHANGE;
        f->truncated = item && f->limit && f->n == f->limit;
        if (ev.type == FILE_MATCH && !f->truncated)
            put_match(j, &ev);
        else if (ev.type == FILE_CHANGE)
            put_changed(j, &ev);
        else if (ev.type == FILE_SKIPPED && f->n_skipped++ < SKIPPED_MAX)
            put_skipped(&f->j_skipped, &ev);
        f->n += item;
        file_event_done(&ev);
        if (ev.type == FILE_DONE)
            f->done = ev;
        if (ev.type == FILE_DONE || f->truncated) /* closing ends the search */
            return 0;
    }
}

static int run(struct request *req, enum wire_file_op op, struct err *err)
{
    _cleanup_(body_done) struct body body = { 0 };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    bool search = op == WIRE_FILE_SEARCH;
    struct file_ask ask;

    int r = read_body(req, op, &body, &ask, err);
    if (r < 0)
        return r;
    struct found f = { .limit = search ? body.limit : 0, .skipped = BUF_INIT(REPLY_MAX / 4) };
    f.j_skipped = (struct jout)JOUT_INIT(&f.skipped);
    jout_open(&j, NULL, '{');
    jout_open(&j, search ? "matches" : "changed", '[');
    r = native_enter(req, &visit, err);
    if (r >= 0)
        r = file_begin(req->core, &visit.s, &ask, &call, err);
    if (r >= 0)
        r = collect(req, call, &f, &j, err);
    jout_close(&j, ']');
    jout_uint(&j, "files", f.done.files);
    if (search)
        jout_bool(&j, "truncated", f.truncated);
    else
        jout_uint(&j, "count", f.done.count);
    jout_open(&j, "skipped", '[');
    if (f.skipped.len)
        jout_raw(&j, NULL, f.skipped.data);
    jout_close(&j, ']');
    jout_close(&j, '}');
    buf_done(&f.skipped);
    return r < 0 ? files_error(req, r, err) : reply_json(req, 200, &j);
}

int native_file_search(struct request *req, struct err *err)
{
    return run(req, WIRE_FILE_SEARCH, err);
}

int native_file_replace(struct request *req, struct err *err)
{
    return run(req, WIRE_FILE_REPLACE, err);
}

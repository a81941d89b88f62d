/* What there is: stat, list, find, usage, links and attributes. */
#include <errno.h>
#include <string.h>

#include "front/native/files.h"

#define LIST_LIMIT 1000
#define DEPTH_MAX 64
#define FIND_LIMIT 10000
#define FIND_LIMIT_MAX 100000
#define FIND_PATTERNS_MAX 32

int native_file_stat(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", "follow", NULL };
    static const struct files_flag flags[] = { { "follow", WIRE_F_NOFOLLOW, true } };
    struct files_query q;
    struct file_ask ask = { .op = WIRE_FILE_STAT, .n_paths = 1, .client_fd = req->fd };

    int r = files_query(req, known, &q, err);
    if (r >= 0)
        r = files_query_flags(req, flags, ARRAY_LEN(flags), &ask.flags, err);
    if (r < 0)
        return r;
    ask.user = q.user;
    ask.paths = &q.path;
    return files_reply_do(req, &ask, 200, err);
}

/* Entries until the operation ends, `limit` of them at most: then one more was there. */
struct listing {
    uint64_t limit, n;
    char *last; /* the path of the last one put */
    bool more;
};

static int put_entries(struct request *req, const struct sandbox *s, const struct file_ask *ask,
                       struct listing *l, struct jout *j, struct err *err)
{
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    int r = file_begin(req->core, s, ask, &call, err);
    while (r >= 0) {
        struct file_event ev;
        r = file_next(call, -1, req->fd, &ev, err);
        if (r < 0)
            break;
        bool done = ev.type == FILE_DONE;
        if (ev.type == FILE_ENTRY && l->n == l->limit) {
            l->more = done = true; /* closing ends the walk */
        } else if (ev.type == FILE_ENTRY) {
            files_put_entry(j, NULL, &ev.entry);
            l->n++;
            free(l->last);
            l->last = take_ptr(ev.entry.path);
        }
        file_event_done(&ev);
        if (done)
            return 0;
    }
    return r;
}

int native_file_list(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", "depth", "limit", "cursor", NULL };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct listing l = { .limit = LIST_LIMIT };
    struct files_query q;
    uint64_t depth = 1;

    int r = files_query(req, known, &q, err);
    if (r >= 0)
        r = request_param_u64(req, "depth", 1, DEPTH_MAX, &depth, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 1, LIST_LIMIT, &l.limit, err);
    if (r < 0)
        return r;
    struct file_ask ask = { .op = WIRE_FILE_LIST,
                            .user = q.user,
                            .paths = &q.path,
                            .n_paths = 1,
                            .depth = depth,
                            .limit = l.limit + 1,
                            .after = uri_param(&req->uri, "cursor") };
    jout_open(&j, NULL, '{');
    jout_open(&j, "entries", '[');
    r = native_enter(req, &visit, err);
    if (r >= 0)
        r = put_entries(req, &visit.s, &ask, &l, &j, err);
    jout_close(&j, ']');
    jout_str(&j, "next_cursor", l.more ? l.last : NULL);
    jout_close(&j, '}');
    free(l.last);
    return r < 0 ? files_error(req, r, err) : reply_json(req, 200, &j);
}

static int read_type(const struct request *req, uint64_t *ret_type, struct err *err)
{
    static const struct {
        const char *name;
        enum wire_file_type type;
    } types[] = { { "file", WIRE_REGULAR },
                  { "directory", WIRE_DIRECTORY },
                  { "symlink", WIRE_SYMLINK } };
    const char *text = uri_param(&req->uri, "type");
    for (size_t i = 0; text && i < ARRAY_LEN(types); i++)
        if (strcmp(text, types[i].name) == 0) {
            *ret_type = types[i].type;
            return 0;
        }
    return text ? err_fail(err, FAIL_INVALID_QUERY, "'type' must be file, directory or symlink")
                : 0;
}

int native_file_find(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", "name+", "type", "limit", NULL };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct listing l = { .limit = FIND_LIMIT };
    const char *patterns[FIND_PATTERNS_MAX];
    struct files_query q;
    struct file_ask ask = { .op = WIRE_FILE_FIND, .n_paths = 1, .patterns = patterns };

    int r = files_query(req, known, &q, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 1, FIND_LIMIT_MAX, &l.limit, err);
    if (r >= 0)
        r = read_type(req, &ask.type, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < req->uri.nparams; i++) {
        if (strcmp(req->uri.params[i].name, "name") != 0)
            continue;
        if (ask.n_patterns == FIND_PATTERNS_MAX)
            return err_fail(err, FAIL_INVALID_QUERY, "'name' is given over %d times",
                            FIND_PATTERNS_MAX);
        patterns[ask.n_patterns++] = req->uri.params[i].value;
    }
    ask.user = q.user;
    ask.paths = &q.path;
    ask.limit = l.limit + 1;
    jout_open(&j, NULL, '{');
    jout_open(&j, "entries", '[');
    r = native_enter(req, &visit, err);
    if (r >= 0)
        r = put_entries(req, &visit.s, &ask, &l, &j, err);
    jout_close(&j, ']');
    jout_bool(&j, "truncated", l.more);
    jout_close(&j, '}');
    free(l.last);
    return r < 0 ? files_error(req, r, err) : reply_json(req, 200, &j);
}

int native_file_usage(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", NULL };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    struct file_event done;
    struct files_query q;

    int r = files_query(req, known, &q, err);
    if (r < 0)
        return r;
    struct file_ask ask = {
        .op = WIRE_FILE_USAGE, .user = q.user, .paths = &q.path, .n_paths = 1, .client_fd = req->fd
    };
    r = native_enter(req, &visit, err);
    if (r >= 0)
        r = file_do(req->core, &visit.s, &ask, NULL, &done, err);
    if (r < 0)
        return files_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_uint(&j, "disk_bytes", done.bytes);
    jout_uint(&j, "size", done.size);
    jout_uint(&j, "files", done.files);
    jout_uint(&j, "directories", done.dirs);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

/* One entry of the query's path, by an operation without more of its own. */
static int one(struct request *req, enum wire_file_op op, uint64_t flags, struct file_entry *ret_e,
               struct err *err)
{
    static const char *const known[] = { "path", "user", NULL };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    struct files_query q;

    int r = files_query(req, known, &q, err);
    if (r < 0)
        return r;
    struct file_ask ask = { .op = op,
                            .user = q.user,
                            .paths = &q.path,
                            .n_paths = 1,
                            .flags = flags,
                            .client_fd = req->fd };
    r = native_enter(req, &visit, err);
    return r < 0 ? r : file_do(req->core, &visit.s, &ask, ret_e, NULL, err);
}

int native_file_readlink(struct request *req, struct err *err)
{
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024);
    struct jout j = JOUT_INIT(&b);

    int r = one(req, WIRE_FILE_STAT, WIRE_F_NOFOLLOW, &e, err);
    if (r >= 0 && e.type != WIRE_SYMLINK)
        r = err_fail(err, FAIL_NOT_A_FILE, "'%.200s' is not a symbolic link", e.path);
    if (r < 0)
        return files_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_str(&j, "target", e.link);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int native_file_xattrs(struct request *req, struct err *err)
{
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);

    int r = one(req, WIRE_FILE_XATTRS, 0, &e, err);
    if (r < 0)
        return files_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_open(&j, "xattrs", '{');
    for (size_t i = 0; i < e.n_xattrs; i++)
        if (text_valid(e.xattrs[i].value, e.xattrs[i].len))
            jout_member(&j, e.xattrs[i].name, e.xattrs[i].value);
    jout_close(&j, '}');
    jout_open(&j, "xattrs_b64", '{');
    for (size_t i = 0; i < e.n_xattrs; i++)
        if (!text_valid(e.xattrs[i].value, e.xattrs[i].len))
            jout_member_b64(&j, e.xattrs[i].name, e.xattrs[i].value, e.xattrs[i].len);
    jout_close(&j, '}');
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

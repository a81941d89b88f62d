/* Changes to what there is: one JSON body, one operation, the entry that came of it. */
#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "front/http/fields.h"
#include "front/native/files.h"

struct body {
    char *path, *user, *from, *to, *mode, *owner, *target, *name, *value;
    struct file_xattr raw; /* value_b64, decoded */
    bool parents, exist_ok, overwrite, recursive, follow;
    uint64_t size;
};

static int as_b64(const json_t *v, const struct field *f, void *at, struct err *err);

#define PATH_LIMIT (FILES_PATH_MAX - 1)
#define XATTR_NAME_MAX 255
#define XATTR_VALUE_MAX 65536 /* the kernel's own limits */
#define ROW(member_, ...) FIELD(struct body, member_, #member_, __VA_ARGS__)
#define USER ROW(user, as_text, .max = 256, .null_ok = true)
#define PATH ROW(path, as_text, .max = PATH_LIMIT)
#define FROM_TO ROW(from, as_text, .max = PATH_LIMIT), ROW(to, as_text, .max = PATH_LIMIT)
#define MODE ROW(mode, as_text, .max = 5, .null_ok = true)

static const struct field mkdir_fields[] = {
    PATH, USER, MODE, ROW(parents, as_bool), ROW(exist_ok, as_bool),
};
static const struct field move_fields[] = {
    FROM_TO,
    USER,
    ROW(overwrite, as_bool),
    ROW(parents, as_bool),
};
static const struct field copy_fields[] = {
    FROM_TO, USER, ROW(overwrite, as_bool), ROW(parents, as_bool), ROW(recursive, as_bool),
};
static const struct field chmod_fields[] = {
    PATH,
    USER,
    ROW(mode, as_text, .max = 5),
    ROW(recursive, as_bool),
};
static const struct field chown_fields[] = {
    PATH, USER, ROW(owner, as_text, .max = 256), ROW(recursive, as_bool), ROW(follow, as_bool),
};
static const struct field symlink_fields[] = {
    PATH,
    USER,
    ROW(target, as_text, .max = PATH_LIMIT),
    ROW(parents, as_bool),
};
static const struct field truncate_fields[] = {
    PATH,
    USER,
    ROW(size, as_u64, .max = 9007199254740991.0),
};
static const struct field xattr_fields[] = {
    PATH,
    USER,
    ROW(name, as_text, .max = XATTR_NAME_MAX),
    ROW(value, as_text, .max = XATTR_VALUE_MAX),
    FIELD(struct body, raw, "value_b64", as_b64),
};

static void body_done(struct body *b)
{
    char *texts[] = { b->path,  b->user,   b->from, b->to,    b->mode,
                      b->owner, b->target, b->name, b->value, b->raw.value };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
}

static int as_b64(const json_t *v, const struct field *f, void *at, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(XATTR_VALUE_MAX + 1);
    struct file_xattr *x = at;

    if (!json_is_string(v) || base64_decode(json_string_value(v), json_string_length(v), &b) < 0 ||
        buf_append(&b, "", 0) < 0)
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be base64 of %d bytes at most", f->name,
                        XATTR_VALUE_MAX);
    free(x->value);
    x->len = b.len;
    x->value = buf_steal(&b);
    return 0;
}

static int missing(struct err *err, const char *name)
{
    return err_fail(err, FAIL_MISSING_FIELD, "'%s' is needed", name);
}

/* Read the body by its table; *ret_ask is what all have in common. Members in `required` must
 * be there and not empty. */
static int read_body(struct request *req, enum wire_file_op op, const struct field *fields,
                     size_t n, struct body *b, struct file_ask *ret_ask, struct err *err)
{
    b->parents = b->exist_ok = b->overwrite = b->follow = true;
    b->recursive = op == WIRE_FILE_COPY;
    int r = request_fields(req, fields, n, b, NULL, err);
    if (r < 0)
        return r;
    bool two = fields[0].offset == offsetof(struct body, from);
    if (two && (!b->from || !*b->from))
        return missing(err, "from");
    if (two && (!b->to || !*b->to))
        return missing(err, "to");
    if (!two && (!b->path || !*b->path))
        return missing(err, "path");
    struct file_ask ask = { .op = op, .user = b->user, .n_paths = 1, .client_fd = req->fd };
    if (b->mode && files_mode_parse(b->mode, &ask.mode) < 0)
        return err_fail(err, FAIL_INVALID_FIELD, "'mode' must be octal text, as in \"0644\"");
    if (b->mode)
        ask.have |= FILE_HAVE(WIRE_T_MODE);
    ask.paths = (const char *const *)(two ? &b->from : &b->path);
    ask.to = b->to;
    ask.flags = (b->parents ? 0 : WIRE_F_NO_PARENTS) | (b->recursive ? WIRE_F_RECURSIVE : 0) |
                (b->exist_ok && b->overwrite ? 0 : WIRE_F_EXCLUSIVE) |
                (b->follow ? 0 : WIRE_F_NOFOLLOW);
    *ret_ask = ask;
    return 0;
}

static int run(struct request *req, enum wire_file_op op, const struct field *fields, size_t n,
               unsigned status, struct err *err)
{
    _cleanup_(body_done) struct body b = { 0 };
    struct file_ask ask;

    int r = read_body(req, op, fields, n, &b, &ask, err);
    if (r < 0)
        return r;
    if (op == WIRE_FILE_CHMOD && !b.mode)
        return missing(err, "mode");
    if (op == WIRE_FILE_CHOWN && !b.owner)
        return missing(err, "owner");
    if (op == WIRE_FILE_SYMLINK && (!b.target || !*b.target))
        return missing(err, "target");
    if (op == WIRE_FILE_SYMLINK)
        ask.to = b.target;
    ask.owner = b.owner;
    ask.size = b.size;
    if (op == WIRE_FILE_TRUNCATE)
        ask.have |= FILE_HAVE(WIRE_T_SIZE);
    return files_reply_do(req, &ask, status, err);
}

#define RUN(name_, op_, status_)                                                       \
    int native_file_##name_(struct request *req, struct err *err)                      \
    {                                                                                  \
        return run(req, op_, name_##_fields, ARRAY_LEN(name_##_fields), status_, err); \
    }

RUN(mkdir, WIRE_FILE_MKDIR, 201)
RUN(move, WIRE_FILE_MOVE, 200)
RUN(copy, WIRE_FILE_COPY, 200)
RUN(chmod, WIRE_FILE_CHMOD, 200)
RUN(chown, WIRE_FILE_CHOWN, 200)
RUN(symlink, WIRE_FILE_SYMLINK, 201)
RUN(truncate, WIRE_FILE_TRUNCATE, 200)

/* One that answers with nothing. */
static int reply_done(struct request *req, const struct file_ask *ask, struct err *err)
{
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    int r = native_enter(req, &visit, err);
    if (r >= 0)
        r = file_do(req->core, &visit.s, ask, NULL, NULL, err);
    return r < 0 ? files_error(req, r, err) : reply_empty(req);
}

int native_file_delete(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", "recursive", "force", NULL };
    static const struct files_flag flags[] = { { "recursive", WIRE_F_RECURSIVE, false },
                                               { "force", WIRE_F_FORCE, false } };
    struct file_ask ask = { .op = WIRE_FILE_REMOVE, .n_paths = 1, .client_fd = req->fd };
    struct files_query q;

    int r = files_query(req, known, &q, err);
    if (r >= 0)
        r = files_query_flags(req, flags, ARRAY_LEN(flags), &ask.flags, err);
    if (r < 0)
        return r;
    ask.user = q.user;
    ask.paths = &q.path;
    return reply_done(req, &ask, err);
}

int native_file_xattr_set(struct request *req, struct err *err)
{
    _cleanup_(body_done) struct body b = { 0 };
    struct file_ask ask;

    int r =
        read_body(req, WIRE_FILE_XATTR_SET, xattr_fields, ARRAY_LEN(xattr_fields), &b, &ask, err);
    if (r < 0)
        return r;
    if (!b.name || !*b.name)
        return missing(err, "name");
    if (!b.value == !b.raw.value)
        return err_fail(err, b.value ? FAIL_INVALID_FIELD : FAIL_MISSING_FIELD,
                        "one of 'value' and 'value_b64' is needed");
    struct file_xattr x = { b.name, b.value ? b.value : b.raw.value,
                            b.value ? strlen(b.value) : b.raw.len };
    ask.xattr = &x;
    return reply_done(req, &ask, err);
}

int native_file_xattr_remove(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", "name", NULL };
    struct file_ask ask = { .op = WIRE_FILE_XATTR_RM, .n_paths = 1, .client_fd = req->fd };
    struct files_query q;

    int r = files_query(req, known, &q, err);
    if (r < 0)
        return r;
    ask.text = uri_param(&req->uri, "name");
    if (!ask.text || !*ask.text)
        return err_fail(err, FAIL_INVALID_QUERY, "'name' is needed");
    ask.user = q.user;
    ask.paths = &q.path;
    return reply_done(req, &ask, err);
}

/* What is in a volume: its files, by the volume's own token. */
#include <errno.h>
#include <string.h>

#include "core/file.h"
#include "core/token.h"
#include "core/volume.h"
#include "front/e2b/volumes.h"

#define PATH_LEN_MAX 4096
#define ENTRIES_MAX 10000
#define DEPTH_MAX 100
#define OWNER_TEXT 32

struct content {
    struct core *core; /* NULL: not entered */
    struct sandbox s;
    const char *path;
};

static void content_leave(struct content *c)
{
    if (c->core)
        volume_leave(c->core, &c->s);
    c->core = NULL;
    sandbox_done(&c->s);
}

static int content_enter(struct request *req, struct content *ret_c, struct err *err)
{
    const char *path = uri_param(&req->uri, "path");
    if (!path || strlen(path) >= PATH_LEN_MAX)
        return err_fail(err, FAIL_INVALID_QUERY, "path is required, of at most %d bytes",
                        PATH_LEN_MAX - 1);
    int r = volume_enter(req->core, NULL, req->subject, &ret_c->s, err);
    if (r < 0)
        return r;
    ret_c->core = req->core;
    ret_c->path = *path ? path : "/";
    return 0;
}

/* What went wrong on the way is no sandbox's end, which these errors would be taken for. */
static int content_fail(int r, struct err *err)
{
    if (err->failure == FAIL_NO_SPACE)
        return err_fail(err, FAIL_NO_SPACE, "the volume is full");
    if (r == -ENOTCONN || r == -ECONNRESET || r == -ESRCH)
        return err_fail(err, FAIL_VOLUME_IN_USE, "the way to the volume was cut; try again");
    return r;
}

static struct file_ask content_ask(const struct content *c, enum wire_file_op op)
{
    return (struct file_ask){ .op = op, .paths = &c->path, .n_paths = 1 };
}

/* ---- out ---- */

static void put_entry(struct jout *j, const struct file_entry *e)
{
    const char *slash = strrchr(e->path, '/');
    const char *type = e->type == WIRE_REGULAR     ? "file"
                       : e->type == WIRE_DIRECTORY ? "directory"
                       : e->type == WIRE_SYMLINK   ? "symlink"
                                                   : "unknown";
    jout_open(j, NULL, '{');
    jout_str(j, "name", slash && slash[1] ? slash + 1 : e->path);
    jout_str(j, "path", e->path);
    jout_str(j, "type", type);
    jout_uint(j, "size", e->size);
    jout_uint(j, "mode", e->mode);
    jout_uint(j, "uid", e->uid);
    jout_uint(j, "gid", e->gid);
    jout_time(j, "atime", e->atime_ns / 1000000);
    jout_time(j, "mtime", e->mtime_ns / 1000000);
    jout_time(j, "ctime", e->ctime_ns / 1000000);
    if (e->link)
        jout_str(j, "target", e->link);
    jout_close(j, '}');
}

static int reply_entry(struct request *req, unsigned status, const struct file_entry *e)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024);
    struct jout j = JOUT_INIT(&b);
    put_entry(&j, e);
    return reply_json(req, status, &j);
}

/* ---- owner and rights ---- */

enum right { RIGHT_UID, RIGHT_GID, RIGHT_MODE, RIGHTS };

struct rights {
    uint64_t value[RIGHTS];
    bool has[RIGHTS];
};

static const struct {
    const char *name;
    uint64_t max;
} right_rows[RIGHTS] = {
    [RIGHT_UID] = { "uid", 65535 },
    [RIGHT_GID] = { "gid", 65535 },
    [RIGHT_MODE] = { "mode", 07777 },
};

static int take_right(struct rights *rights, int i, int64_t value, struct err *err)
{
    if (value < 0 || (uint64_t)value > right_rows[i].max)
        return err_fail(err, FAIL_INVALID_QUERY, "%s must be a whole number from 0 to %llu",
                        right_rows[i].name, (unsigned long long)right_rows[i].max);
    rights->value[i] = (uint64_t)value;
    rights->has[i] = true;
    return 0;
}

static int rights_query(const struct request *req, struct rights *ret, struct err *err)
{
    int r = 0;
    for (int i = 0; i < RIGHTS && r >= 0; i++) {
        const char *text = uri_param(&req->uri, right_rows[i].name);
        char *end = NULL;
        if (!text)
            continue;
        bool digits = text[0] >= '0' && text[0] <= '9' && strlen(text) < 8;
        int64_t value = digits ? strtoll(text, &end, 10) : -1;
        r = take_right(ret, i, digits && !*end ? value : -1, err);
    }
    return r;
}

static int rights_body(const json_t *object, struct rights *ret, struct err *err)
{
    int r = 0;
    for (int i = 0; i < RIGHTS && r >= 0; i++) {
        const json_t *v = json_object_get(object, right_rows[i].name);
        if (v && !json_is_null(v))
            r = take_right(ret, i, json_is_integer(v) ? json_integer_value(v) : -1, err);
    }
    return r;
}

/* Then the entry as it is. The owner first: changing it may take bits of the mode away. */
static int give_rights(struct request *req, const struct content *c, const struct rights *rights,
                       struct file_entry *e, struct err *err)
{
    char owner[OWNER_TEXT] = "";
    int r = 0;
    if (rights->has[RIGHT_UID])
        (void)snprintf(owner, sizeof(owner), "%llu", (unsigned long long)rights->value[RIGHT_UID]);
    if (rights->has[RIGHT_GID])
        (void)snprintf(owner + strlen(owner), sizeof(owner) - strlen(owner), ":%llu",
                       (unsigned long long)rights->value[RIGHT_GID]);
    struct file_ask ask = content_ask(c, WIRE_FILE_CHOWN);
    ask.owner = owner;
    if (owner[0]) {
        file_entry_done(e);
        r = file_do(req->core, &c->s, &ask, e, NULL, err);
    }
    if (r >= 0 && rights->has[RIGHT_MODE]) {
        ask = content_ask(c, WIRE_FILE_CHMOD);
        ask.mode = rights->value[RIGHT_MODE];
        ask.have = FILE_HAVE(WIRE_T_MODE);
        file_entry_done(e);
        r = file_do(req->core, &c->s, &ask, e, NULL, err);
    }
    return r;
}

/* ---- requests ---- */

int e2b_content_stat(struct request *req, struct err *err)
{
    _cleanup_(content_leave) struct content c = { 0 };
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    int r = content_enter(req, &c, err);
    if (r < 0)
        return r;
    struct file_ask ask = content_ask(&c, WIRE_FILE_STAT);
    ask.flags = WIRE_F_NOFOLLOW;
    r = file_do(req->core, &c.s, &ask, &e, NULL, err);
    return r < 0 ? content_fail(r, err) : reply_entry(req, 200, &e);
}

int e2b_content_change(struct request *req, struct err *err)
{
    _cleanup_(content_leave) struct content c = { 0 };
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    _cleanup_json_ json_t *object = NULL;
    struct rights rights = { 0 };
    int r = content_enter(req, &c, err);
    if (r >= 0)
        r = request_json(req, &object, err);
    if (r >= 0)
        r = rights_body(object, &rights, err);
    if (r < 0)
        return r;
    struct file_ask ask = content_ask(&c, WIRE_FILE_STAT);
    r = file_do(req->core, &c.s, &ask, &e, NULL, err);
    if (r >= 0)
        r = give_rights(req, &c, &rights, &e, err);
    return r < 0 ? content_fail(r, err) : reply_entry(req, 200, &e);
}

int e2b_content_remove(struct request *req, struct err *err)
{
    _cleanup_(content_leave) struct content c = { 0 };
    int r = content_enter(req, &c, err);
    if (r < 0)
        return r;
    struct file_ask ask = content_ask(&c, WIRE_FILE_REMOVE);
    ask.flags = WIRE_F_RECURSIVE;
    r = file_do(req->core, &c.s, &ask, NULL, NULL, err);
    return r < 0 ? content_fail(r, err) : reply_empty(req);
}

int e2b_content_make_dir(struct request *req, struct err *err)
{
    _cleanup_(content_leave) struct content c = { 0 };
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    struct rights rights = { 0 };
    bool force = false;
    int r = content_enter(req, &c, err);
    if (r >= 0)
        r = request_param_bool(req, "force", &force, err);
    if (r >= 0)
        r = rights_query(req, &rights, err);
    if (r < 0)
        return r;
    struct file_ask ask = content_ask(&c, WIRE_FILE_MKDIR);
    ask.flags = force ? 0 : WIRE_F_EXCLUSIVE | WIRE_F_NO_PARENTS;
    r = file_do(req->core, &c.s, &ask, &e, NULL, err);
    if (r >= 0)
        r = give_rights(req, &c, &rights, &e, err);
    return r < 0 ? content_fail(r, err) : reply_entry(req, 201, &e);
}

static int read_depth(const struct request *req, uint64_t *ret_depth, struct err *err)
{
    const char *text = uri_param(&req->uri, "depth");
    char *end = NULL;
    *ret_depth = text && strlen(text) < 8 ? strtoull(text, &end, 10) : 1;
    if (text && (!end || *end || *ret_depth < 1 || *ret_depth > DEPTH_MAX))
        return err_fail(err, FAIL_INVALID_QUERY, "depth must be from 1 to %d", DEPTH_MAX);
    return 0;
}

int e2b_content_list(struct request *req, struct err *err)
{
    _cleanup_(content_leave) struct content c = { 0 };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    uint64_t depth = 1;
    int r = content_enter(req, &c, err);
    if (r >= 0)
        r = read_depth(req, &depth, err);
    if (r < 0)
        return r;
    struct file_ask ask = content_ask(&c, WIRE_FILE_LIST);
    ask.depth = depth;
    ask.limit = ENTRIES_MAX;
    r = file_begin(req->core, &c.s, &ask, &call, err);
    jout_open(&j, NULL, '[');
    for (bool done = false; r >= 0 && !done;) {
        struct file_event ev;
        r = file_next(call, -1, req->fd, &ev, err);
        if (r < 0)
            break;
        if (ev.type == FILE_ENTRY)
            put_entry(&j, &ev.entry);
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    jout_close(&j, ']');
    return r < 0 ? content_fail(r, err) : reply_json(req, 200, &j);
}

/* ---- reading ---- */

struct reading {
    struct content c;
    struct file_call *call;
    int fd;
};

static void reading_free(void *arg)
{
    struct reading *rd = arg;
    file_call_free(rd->call);
    content_leave(&rd->c);
    free(rd);
}

static ssize_t reading_read(void *arg, char *out, size_t max)
{
    struct reading *rd = arg;
    return file_read(rd->call, out, max, rd->fd, NULL);
}

int e2b_content_read(struct request *req, struct err *err)
{
    static const struct reply_reader reader = { reading_read, reading_free };
    struct reading *rd = calloc(1, sizeof(*rd));
    struct file_event ev;
    if (!rd)
        return err_set(err, ENOMEM, "cannot allocate a download");
    rd->fd = req->fd;
    int r = content_enter(req, &rd->c, err);
    if (r >= 0) {
        struct file_ask ask = content_ask(&rd->c, WIRE_FILE_READ);
        r = file_begin(req->core, &rd->c.s, &ask, &rd->call, err);
    }
    if (r >= 0)
        r = file_next(rd->call, -1, req->fd, &ev, err);
    if (r >= 0 && ev.type != FILE_ENTRY) {
        file_event_done(&ev);
        r = err_set(err, EPROTO, "a read was answered with something else");
    }
    if (r < 0) {
        reading_free(rd);
        return content_fail(r, err);
    }
    uint64_t length = ev.entry.length;
    file_event_done(&ev);
    return reply_bytes(req, 200, "application/octet-stream", length, &reader, rd);
}

/* ---- writing ---- */

struct writing {
    struct content c;
    struct file_call *call;
    struct rights rights;
};

static void writing_free(struct writing *w)
{
    if (!w)
        return;
    file_call_free(w->call); /* before its end: the old file stays as it was */
    content_leave(&w->c);
    free(w);
}
DEFINE_FREEP(struct writing *, writing_free)

static int write_begin(struct request *req, struct err *err)
{
    _cleanup_(writing_freep) struct writing *w = calloc(1, sizeof(*w));
    const char *coding = request_header(req, "Content-Encoding");
    bool force = false;
    if (!w)
        return err_set(err, ENOMEM, "cannot allocate a write");
    if (coding && strcasecmp(coding, "identity") != 0)
        return err_fail_as(err, EINVAL, FAIL_NOT_SUPPORTED, "Content-Encoding must be identity");
    int r = content_enter(req, &w->c, err);
    if (r >= 0)
        r = request_param_bool(req, "force", &force, err);
    if (r >= 0)
        r = rights_query(req, &w->rights, err);
    if (r < 0)
        return r;
    struct file_ask ask = content_ask(&w->c, WIRE_FILE_WRITE);
    ask.flags = force ? 0 : WIRE_F_EXCLUSIVE;
    r = file_begin(req->core, &w->c.s, &ask, &w->call, err);
    if (r < 0)
        return content_fail(r, err);
    req->sink = take_ptr(w);
    return 0;
}

/* What init says, to the end. */
static int write_finish(struct request *req, struct writing *w, struct file_entry *ret_e,
                        struct err *err)
{
    for (;;) {
        struct file_event ev;
        int r = file_next(w->call, -1, req->fd, &ev, err);
        if (r < 0)
            return content_fail(r, err);
        if (ev.type == FILE_ENTRY && !ret_e->path) {
            *ret_e = ev.entry;
            continue;
        }
        file_event_done(&ev);
        if (ev.type == FILE_DONE)
            return ret_e->path ? 0 : err_set(err, EPROTO, "the write was not told of");
    }
}

static int write_some(struct request *req, const char *p, size_t n, struct err *err)
{
    struct writing *w = req->sink;
    int r = file_put_data(w->call, p, n);
    if (r == -EPIPE) { /* init has refused: it says why */
        _cleanup_(file_entry_done) struct file_entry e = { 0 };
        r = write_finish(req, w, &e, err);
        return r < 0 ? r : err_set(err, EIO, "the write ended early");
    }
    return r < 0 ? err_set(err, -r, "cannot pass the body on to the volume") : 0;
}

static void write_end(struct request *req)
{
    writing_free(req->sink);
    req->sink = NULL;
}

const struct route_sink e2b_content_sink = { write_begin, write_some, write_end, NULL };

int e2b_content_write(struct request *req, struct err *err)
{
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    struct writing *w = req->sink;
    (void)file_put_end(w->call); /* if it fails, init says why */
    int r = write_finish(req, w, &e, err);
    if (r >= 0)
        r = content_fail(give_rights(req, &w->c, &w->rights, &e, err), err);
    return r < 0 ? r : reply_entry(req, 201, &e);
}

#include "core/file_codec.h"

#include <errno.h>
#include <string.h>

#define MODE_MASK 07777u
#define XATTRS_MAX 1024 /* more names than a file's attribute block holds */

void file_entry_done(struct file_entry *e)
{
    for (size_t i = 0; i < e->n_xattrs; i++) {
        free(e->xattrs[i].name);
        free(e->xattrs[i].value);
    }
    free(e->xattrs);
    free(e->path);
    free(e->owner);
    free(e->group);
    free(e->link);
    free(e->etag);
    *e = (struct file_entry){ 0 };
}

void file_event_done(struct file_event *ev)
{
    file_entry_done(&ev->entry);
}

/* ---- out ---- */

static int put_xattr(struct buf *b, const struct file_xattr *x)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(WIRE_PAYLOAD_MAX);
    int r = buf_append(&text, x->name, strlen(x->name) + 1);
    if (r >= 0 && x->len)
        r = buf_append(&text, x->value, x->len);
    return r < 0 ? r : wire_put(b, WIRE_T_XATTR, text.data, text.len);
}

static int put_texts(struct buf *b, enum wire_tag tag, const char *const *texts, size_t n)
{
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = wire_put_str(b, tag, texts[i]);
    return r;
}

int file_encode_ask(struct buf *b, const struct sandbox *s, const struct file_ask *ask)
{
    const struct {
        enum wire_tag tag;
        const char *text;
    } texts[] = {
        { WIRE_T_USER, ask->user ? ask->user : s->spec.user },
        { WIRE_T_ROOT, s->root },
        { WIRE_T_TO, ask->to },
        { WIRE_T_TEXT, ask->text },
        { WIRE_T_OWNER, ask->owner },
        { WIRE_T_ETAG, ask->etag },
        { WIRE_T_AFTER, ask->after },
    };
    const struct {
        enum wire_tag tag;
        uint64_t value;
    } numbers[] = {
        { WIRE_T_FLAGS, ask->flags },   { WIRE_T_OFFSET, ask->offset },
        { WIRE_T_LENGTH, ask->length }, { WIRE_T_MODE, ask->mode },
        { WIRE_T_SIZE, ask->size },     { WIRE_T_DEPTH, ask->depth },
        { WIRE_T_LIMIT, ask->limit },   { WIRE_T_TYPE, ask->type },
    };
    int r = wire_put_u64(b, WIRE_T_OP, ask->op);

    for (size_t i = 0; i < ARRAY_LEN(texts) && r >= 0; i++)
        r = wire_put_str(b, texts[i].tag, texts[i].text);
    for (size_t i = 0; i < ARRAY_LEN(numbers) && r >= 0; i++) {
        bool have = numbers[i].tag >= WIRE_T_OP && (ask->have & FILE_HAVE(numbers[i].tag));
        if (numbers[i].value || have)
            r = wire_put_u64(b, numbers[i].tag, numbers[i].value);
    }
    if (r >= 0)
        r = put_texts(b, WIRE_T_PATH, ask->paths, ask->n_paths);
    if (r >= 0)
        r = put_texts(b, WIRE_T_PATTERN, ask->patterns, ask->n_patterns);
    if (r >= 0 && ask->xattr)
        r = put_xattr(b, ask->xattr);
    return r;
}

int file_encode_entry(struct buf *b, const struct file_entry *e)
{
    int r = wire_put_str(b, WIRE_T_PATH, e->path);
    if (r >= 0)
        r = wire_put_u64(b, WIRE_T_TYPE, e->type);
    if (r >= 0 && e->mode)
        r = wire_put_u64(b, WIRE_T_MODE, e->mode & MODE_MASK);
    if (r >= 0 && e->uid)
        r = wire_put_u64(b, WIRE_T_UID, e->uid);
    if (r >= 0 && e->gid)
        r = wire_put_u64(b, WIRE_T_GID, e->gid);
    if (r >= 0 && e->size)
        r = wire_put_u64(b, WIRE_T_SIZE, e->size);
    if (r >= 0 && e->mtime_ns)
        r = wire_put_u64(b, WIRE_T_MTIME_NS, (uint64_t)e->mtime_ns);
    if (r >= 0)
        r = wire_put_str(b, WIRE_T_LINK, e->link);
    for (size_t i = 0; i < e->n_xattrs && r >= 0; i++)
        r = put_xattr(b, &e->xattrs[i]);
    return r;
}

/* ---- in ---- */

static int take_text(const struct wire_field *f, char **at)
{
    char *s = NULL;
    int r = wire_field_str(f, &s);
    if (r < 0)
        return r == -EINVAL ? -EPROTO : r;
    free(*at); /* the last one counts */
    *at = s;
    return 0;
}

static int take_xattr(const struct wire_field *f, struct file_entry *e)
{
    const char *nul = memchr(f->p, 0, f->n);
    if (!nul || nul == f->p || e->n_xattrs == XATTRS_MAX)
        return -EPROTO;
    size_t name = (size_t)(nul - f->p), len = f->n - name - 1;
    struct file_xattr *more = reallocarray(e->xattrs, e->n_xattrs + 1, sizeof(*more));
    if (!more)
        return -ENOMEM;
    e->xattrs = more;
    struct file_xattr x = { strndup(f->p, name), malloc(len + 1), len };
    if (!x.name || !x.value) {
        free(x.name);
        free(x.value);
        return -ENOMEM;
    }
    if (len)
        memcpy(x.value, nul + 1, len);
    x.value[len] = '\0';
    e->xattrs[e->n_xattrs++] = x;
    return 0;
}

static int take_number(const struct wire_field *f, struct file_event *ev)
{
    struct file_entry *e = &ev->entry;
    uint64_t v = 0;
    int r = wire_field_u64(f, &v);
    if (r < 0)
        return r;
    switch (f->tag) {
    case WIRE_T_TYPE:
        if (v < WIRE_REGULAR || v > WIRE_HARDLINK)
            return -EPROTO;
        e->type = (enum wire_file_type)v;
        return 0;
    case WIRE_T_CHANGE:
        if (v < WIRE_CREATED || v > WIRE_OVERFLOW)
            return -EPROTO;
        ev->change = (enum wire_change)v;
        return 0;
    case WIRE_T_MODE: e->mode = (unsigned)v & MODE_MASK; return 0;
    case WIRE_T_UID: e->uid = (uint32_t)v; return 0;
    case WIRE_T_GID: e->gid = (uint32_t)v; return 0;
    case WIRE_T_SIZE: e->size = ev->size = v; return 0;
    case WIRE_T_BLOCKS: e->blocks_bytes = v; return 0;
    case WIRE_T_MTIME_NS: e->mtime_ns = (int64_t)v; return 0;
    case WIRE_T_ATIME_NS: e->atime_ns = (int64_t)v; return 0;
    case WIRE_T_CTIME_NS: e->ctime_ns = (int64_t)v; return 0;
    case WIRE_T_INODE: e->inode = v; return 0;
    case WIRE_T_NLINK: e->nlink = v; return 0;
    case WIRE_T_RDEV: e->rdev = v; return 0;
    case WIRE_T_LENGTH: e->length = v; return 0;
    case WIRE_T_LINE: ev->line = v; return 0;
    case WIRE_T_COLUMN: ev->column = v; return 0;
    case WIRE_T_OFFSET: ev->offset = v; return 0;
    case WIRE_T_COUNT: ev->count = v; return 0;
    case WIRE_T_FILES: ev->files = v; return 0;
    case WIRE_T_DIRS: ev->dirs = v; return 0;
    case WIRE_T_BYTES: ev->bytes = v; return 0;
    case WIRE_T_COOKIE: ev->cookie = v; return 0;
    default: return 0; /* a newer init may say more */
    }
}

static int take_field(const struct wire_field *f, struct file_event *ev)
{
    struct file_entry *e = &ev->entry;
    switch (f->tag) {
    case WIRE_T_PATH: return take_text(f, &e->path);
    case WIRE_T_OWNER: return take_text(f, &e->owner);
    case WIRE_T_GROUP: return take_text(f, &e->group);
    case WIRE_T_LINK: return take_text(f, &e->link);
    case WIRE_T_ETAG: return take_text(f, &e->etag);
    case WIRE_T_XATTR: return take_xattr(f, e);
    case WIRE_T_TEXT:
        ev->data = f->p;
        ev->len = f->n;
        return 0;
    case WIRE_T_CODE:
    case WIRE_T_WHAT:
    case WIRE_T_MESSAGE: return 0; /* init_conn_error reads those */
    default: return take_number(f, ev);
    }
}

int file_decode(const char *p, size_t n, struct file_event *ret_ev)
{
    struct wire_reader reader = { p, n };
    struct wire_field f;
    struct file_event ev = { 0 };
    int r;

    while ((r = wire_next(&reader, &f)) > 0) {
        r = take_field(&f, &ev);
        if (r < 0)
            break;
    }
    if (r < 0) {
        file_event_done(&ev);
        return r;
    }
    *ret_ev = ev;
    return 0;
}

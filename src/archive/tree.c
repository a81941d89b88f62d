#include "archive/tree.h"

#include <errno.h>
#include <string.h>

int tree_put_entry(const struct tree_entry *e, const struct buf *xattrs)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(WIRE_PAYLOAD_MAX);
    int r = wire_put_str(&b, WIRE_T_PATH, e->path);
    if (r >= 0)
        r = wire_put_u64(&b, WIRE_T_TYPE, e->type);
    if (r >= 0)
        r = wire_put_str(&b, WIRE_T_LINK, e->link);
    if (r >= 0 && e->has_mode)
        r = wire_put_u64(&b, WIRE_T_MODE, e->mode);
    if (r >= 0 && e->has_size)
        r = wire_put_u64(&b, WIRE_T_SIZE, e->size);
    if (r >= 0 && e->has_mtime)
        r = wire_put_u64(&b, WIRE_T_MTIME_NS, (uint64_t)e->mtime_ns);
    if (r >= 0 && xattrs && xattrs->len)
        r = buf_append(&b, xattrs->data, xattrs->len);
    return r < 0 ? r : wire_send(TREE_INIT_FD, WIRE_ENTRY, &b);
}

int tree_put_data(const void *p, size_t n)
{
    const char *at = p;
    for (size_t piece; n > 0; at += piece, n -= piece) {
        piece = n < WIRE_BULK_MAX ? n : WIRE_BULK_MAX;
        int r = wire_send_raw(TREE_INIT_FD, WIRE_DATA, at, piece);
        if (r < 0)
            return r;
    }
    return 0;
}

int tree_put_hole(uint64_t n)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64);
    int r = wire_put_u64(&b, WIRE_T_LENGTH, n);
    return r < 0 ? r : wire_send(TREE_INIT_FD, WIRE_HOLE, &b);
}

int tree_put_end(void)
{
    return wire_send(TREE_INIT_FD, WIRE_END, NULL);
}

int tree_next(struct buf *payload, uint8_t *ret_type)
{
    struct wire_header h;
    int r = wire_recv(TREE_INIT_FD, &h, payload, -1);
    if (r >= 0)
        *ret_type = h.type;
    return r;
}

/* A copy of a field's text, at an offset that survives the buffer's growth; 0 is no text. */
static int keep(struct buf *texts, const struct wire_field *f, size_t *ret_at)
{
    if (memchr(f->p, 0, f->n))
        return -EPROTO;
    *ret_at = texts->len;
    int r = buf_append(texts, f->p, f->n);
    return r < 0 ? r : buf_append(texts, "", 1);
}

static int take_number(const struct wire_field *f, struct tree_entry *e)
{
    uint64_t v = 0;
    int r = wire_field_u64(f, &v);
    if (r < 0)
        return r;
    switch (f->tag) {
    case WIRE_T_TYPE:
        if (v < WIRE_REGULAR || v > WIRE_HARDLINK)
            return -EPROTO;
        e->type = (enum wire_file_type)v;
        break;
    case WIRE_T_MODE:
        e->mode = v & 07777;
        e->has_mode = true;
        break;
    case WIRE_T_SIZE:
        e->size = v;
        e->has_size = true;
        break;
    case WIRE_T_MTIME_NS:
        e->mtime_ns = (int64_t)v;
        e->has_mtime = true;
        break;
    case WIRE_T_UID: e->uid = v; break;
    case WIRE_T_GID: e->gid = v; break;
    case WIRE_T_RDEV: e->rdev = v; break;
    default: break;
    }
    return 0;
}

int tree_entry_read(const struct buf *payload, struct buf *texts, struct tree_entry *ret_e)
{
    struct wire_reader reader = { payload->data, payload->len };
    struct wire_field f;
    struct tree_entry e = { 0 };
    size_t path = 0, link = 0, owner = 0, group = 0;
    int r = buf_append(texts, "", 1); /* so that no text begins at 0 */

    while (r >= 0 && (r = wire_next(&reader, &f)) > 0) {
        switch (f.tag) {
        case WIRE_T_PATH: r = keep(texts, &f, &path); break;
        case WIRE_T_LINK: r = keep(texts, &f, &link); break;
        case WIRE_T_OWNER: r = keep(texts, &f, &owner); break;
        case WIRE_T_GROUP: r = keep(texts, &f, &group); break;
        case WIRE_T_XATTR:
        case WIRE_T_ETAG: break;
        default: r = take_number(&f, &e); break;
        }
    }
    if (r < 0)
        return r;
    if (!path || !e.type)
        return -EPROTO;
    e.path = texts->data + path;
    e.link = link ? texts->data + link : NULL;
    e.owner = owner ? texts->data + owner : NULL;
    e.group = group ? texts->data + group : NULL;
    *ret_e = e;
    return 0;
}

void tree_report_frame(uint8_t type, const struct buf *payload)
{
    (void)wire_send(TREE_REPORT_FD, type, payload);
}

void tree_report_error(const struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    (void)wire_put_u64(&b, WIRE_T_CODE, (uint64_t)err->code);
    (void)wire_put_str(&b, WIRE_T_WHAT, err->failure ? failure_name(err->failure) : NULL);
    (void)wire_put_str(&b, WIRE_T_MESSAGE, err->msg);
    (void)wire_send(TREE_REPORT_FD, WIRE_ERROR, &b);
}

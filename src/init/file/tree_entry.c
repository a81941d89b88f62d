#include "init/file/tree_entry.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

static int refuse(const char **ret_why, const char *why)
{
    *ret_why = why;
    return -EINVAL;
}

/* Plain names with one slash between them: "./a//b/" is "a/b". */
static int take_path(const struct wire_field *f, char out[PATH_MAX], const char **ret_why)
{
    size_t len = 0;
    size_t shown = f->n < PATH_MAX - 1 ? f->n : PATH_MAX - 1;
    if (shown)
        memcpy(out, f->p, shown); /* for the message, should it be refused */
    out[shown] = '\0';
    if (f->n >= PATH_MAX)
        return refuse(ret_why, "has a path that is too long");
    if (f->n == 0 || memchr(f->p, 0, f->n))
        return refuse(ret_why, "has an empty path or a NUL byte in it");
    if (f->p[0] == '/')
        return refuse(ret_why, "has an absolute path");
    for (size_t at = 0; at < f->n;) {
        const char *slash = memchr(f->p + at, '/', f->n - at);
        size_t n = slash ? (size_t)(slash - f->p) - at : f->n - at;
        if (n == 2 && memcmp(f->p + at, "..", 2) == 0) {
            memcpy(out, f->p, f->n);
            out[f->n] = '\0';
            return refuse(ret_why, "leads out of the tree");
        }
        if (n > NAME_MAX)
            return refuse(ret_why, "has a name that is too long");
        if (n > 0 && !(n == 1 && f->p[at] == '.')) {
            if (len > 0)
                out[len++] = '/';
            memcpy(out + len, f->p + at, n);
            len += n;
        }
        at += n + 1;
    }
    out[len] = '\0';
    return 0;
}

static int take_link(const struct wire_field *f, struct tree_entry *e, const char **ret_why)
{
    if (e->type == WIRE_HARDLINK) {
        int r = take_path(f, e->link, ret_why);
        if (r == 0 && e->link[0] == '\0')
            return refuse(ret_why, "is a hard link to the tree's top");
        return r;
    }
    if (f->n == 0 || f->n >= PATH_MAX || memchr(f->p, 0, f->n))
        return refuse(ret_why, "has a link text that is empty, too long or holds a NUL byte");
    memcpy(e->link, f->p, f->n);
    e->link[f->n] = '\0';
    return 0;
}

static int take_number(const struct wire_field *f, struct tree_entry *e, const char **ret_why)
{
    uint64_t v;
    if (wire_field_u64(f, &v) < 0)
        return refuse(ret_why, "is not made of fields");
    switch ((int)f->tag) {
    case WIRE_T_TYPE:
        if (v < WIRE_REGULAR || v > WIRE_HARDLINK)
            return refuse(ret_why, "is of no known type");
        e->type = (enum wire_file_type)v;
        break;
    case WIRE_T_MODE:
        e->has_mode = true;
        e->mode = (unsigned)(v & 07777);
        break;
    case WIRE_T_SIZE:
        if (v > INT64_MAX)
            return refuse(ret_why, "is larger than a file may be");
        e->has_size = true;
        e->size = v;
        break;
    case WIRE_T_MTIME_NS:
        e->has_mtime = true;
        e->mtime_ns = (int64_t)v;
        break;
    case WIRE_T_UID: e->uid = v; break;
    case WIRE_T_GID: e->gid = v; break;
    case WIRE_T_RDEV: e->rdev = v; break;
    default: break; /* what else an entry tells is of no use here */
    }
    if ((f->tag == WIRE_T_UID || f->tag == WIRE_T_GID) && v > INT32_MAX)
        return refuse(ret_why, "has an owner out of range");
    return 0;
}

static int take_xattr(const struct wire_field *f, const char *payload, struct tree_entry *e,
                      const char **ret_why)
{
    const char *end = f->n ? memchr(f->p, 0, f->n) : NULL;
    if (!end || end == f->p || end - f->p > 255)
        return refuse(ret_why, "has an extended attribute without a name");
    if (e->n_xattrs == ARRAY_LEN(e->xattrs))
        return refuse(ret_why, "has too many extended attributes");
    e->xattrs[e->n_xattrs].at = (size_t)(f->p - payload);
    e->xattrs[e->n_xattrs++].n = f->n;
    return 0;
}

static int check_whole(const struct tree_entry *e, bool has_path, bool has_link,
                       const char **ret_why)
{
    if (!has_path || e->type == 0)
        return refuse(ret_why, "has no path or no type");
    if ((e->type == WIRE_SYMLINK || e->type == WIRE_HARDLINK) != has_link)
        return refuse(ret_why,
                      has_link ? "has a link text but is no link" : "is a link to nothing");
    if (e->path[0] == '\0' && e->type != WIRE_DIRECTORY)
        return refuse(ret_why, "is the tree's top, but not a directory");
    return 0;
}

int tree_entry_decode(const char *payload, size_t n, struct tree_entry *e, const char **ret_why)
{
    struct wire_reader reader = { payload, n };
    struct wire_field f, link = { .p = NULL };
    bool has_path = false;
    int r;
    e->path[0] = e->link[0] = '\0';
    e->type = 0;
    e->has_mode = e->has_size = e->has_mtime = false;
    e->mode = 0;
    e->uid = e->gid = e->size = e->rdev = 0;
    e->mtime_ns = 0;
    e->n_xattrs = 0;
    while ((r = wire_next(&reader, &f)) > 0) {
        if (f.tag == WIRE_T_PATH) {
            r = has_path ? refuse(ret_why, "has two paths") : take_path(&f, e->path, ret_why);
            has_path = true;
        } else if (f.tag == WIRE_T_LINK) {
            link = f; /* what it means depends on the type */
        } else if (f.tag == WIRE_T_XATTR) {
            r = take_xattr(&f, payload, e, ret_why);
        } else if (f.tag != WIRE_T_OWNER && f.tag != WIRE_T_GROUP && f.tag != WIRE_T_ETAG) {
            r = take_number(&f, e, ret_why);
        }
        if (r < 0)
            return r;
    }
    if (r < 0)
        return refuse(ret_why, "is not made of fields");
    r = check_whole(e, has_path, link.p != NULL, ret_why);
    return r == 0 && link.p ? take_link(&link, e, ret_why) : r;
}

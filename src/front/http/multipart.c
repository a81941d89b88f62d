#include "front/http/multipart.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define DELIMITER_MAX (MULTIPART_BOUNDARY_MAX + 4) /* CR LF "--" boundary */
#define AFTER_MAX 256                              /* blanks behind a boundary */

enum multipart_state {
    MP_PREAMBLE, /* before the first boundary */
    MP_AFTER,    /* behind a boundary: CR LF, or "--" */
    MP_HEAD,
    MP_DATA,
    MP_DONE, /* what follows is ignored */
};

struct multipart {
    const struct multipart_sink *sink;
    void *arg;
    enum multipart_state state;
    char delimiter[DELIMITER_MAX + 1];
    size_t len;     /* of the delimiter */
    size_t matched; /* bytes of it that the input ends with */
    size_t after;   /* bytes seen in MP_AFTER */
    char last;      /* the byte before, in MP_AFTER */
    struct buf head;
};

/* ---- the boundary ---- */

/* The value of parameter `name` in "text; name=value; name="quoted"", unescaped, into out. */
static int parameter(const char *text, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);
    for (const char *p = strchr(text, ';'); p; p = strchr(p, ';')) {
        p++;
        p += strspn(p, " \t");
        bool found = strncasecmp(p, name, len) == 0 && p[len] == '=';
        p += strcspn(p, "=;\"");
        if (*p != '=')
            continue;
        p++;
        bool quoted = *p == '"';
        p += quoted;
        size_t n = 0;
        for (; *p && (quoted ? *p != '"' : *p != ';' && *p != ' ' && *p != '\t'); p++) {
            /* Browsers write \" and \\ only; a path of Windows may have other backslashes. */
            if (quoted && *p == '\\' && (p[1] == '"' || p[1] == '\\'))
                p++;
            if (found && n + 1 >= size)
                return -EMSGSIZE;
            if (found)
                out[n++] = *p;
        }
        if (quoted && *p != '"')
            return -EBADMSG;
        if (found) {
            out[n] = '\0';
            return 1;
        }
    }
    return 0;
}

int multipart_new(const char *type, const struct multipart_sink *sink, void *arg,
                  struct multipart **ret_m, struct err *err)
{
    char boundary[MULTIPART_BOUNDARY_MAX + 1];
    if (!type || strncasecmp(type, "multipart/", 10) != 0 ||
        parameter(type, "boundary", boundary, sizeof(boundary)) <= 0 || !boundary[0])
        return err_fail(err, FAIL_INVALID_REQUEST,
                        "the body must be multipart, with a boundary in its Content-Type");
    struct multipart *m = calloc(1, sizeof(*m));
    if (!m)
        return err_set(err, ENOMEM, "cannot allocate a reader");
    m->sink = sink;
    m->arg = arg;
    m->head.max = MULTIPART_HEAD_MAX;
    m->len = (size_t)snprintf(m->delimiter, sizeof(m->delimiter), "\r\n--%s", boundary);
    m->matched = 2; /* the first boundary may be the body's first line */
    *ret_m = m;
    return 0;
}

void multipart_free(struct multipart *m)
{
    if (!m)
        return;
    buf_done(&m->head);
    free(m);
}

/* ---- a part's head ---- */

static int malformed(struct err *err, const char *why)
{
    return err_fail_as(err, EBADMSG, FAIL_INVALID_REQUEST, "the multipart body is malformed: %s",
                       why);
}

/* "Name: value CR LF ..." becomes "Name NUL value NUL ... NUL" in place. */
static int split_head(struct buf *head)
{
    size_t out = 0;
    for (size_t at = 0; at < head->len;) {
        char *line = head->data + at;
        char *end = memmem(line, head->len - at, "\r\n", 2);
        if (!end)
            return -EBADMSG;
        size_t n = (size_t)(end - line);
        at += n + 2;
        if (n == 0)
            break;
        char *colon = memchr(line, ':', n);
        if (!colon || colon == line || memchr(line, 0, n))
            return -EBADMSG;
        size_t name = (size_t)(colon - line), skip = name + 1;
        while (skip < n && (line[skip] == ' ' || line[skip] == '\t'))
            skip++;
        size_t value = n - skip;
        memmove(head->data + out, line, name);
        head->data[out + name] = '\0';
        memmove(head->data + out + name + 1, line + skip, value);
        head->data[out + name + 1 + value] = '\0';
        out += name + value + 2;
    }
    head->data[out] = '\0';
    head->len = out;
    return 0;
}

const char *multipart_header(const struct multipart_part *part, const char *name)
{
    for (const char *p = part->headers; *p;) {
        const char *value = p + strlen(p) + 1;
        if (strcasecmp(p, name) == 0)
            return value;
        p = value + strlen(value) + 1;
    }
    return NULL;
}

static int begin_part(struct multipart *m, struct err *err)
{
    char name[512], filename[4096 + 1];
    if (split_head(&m->head) < 0)
        return malformed(err, "a part's headers cannot be read");
    struct multipart_part part = { .headers = m->head.data };
    const char *disposition = multipart_header(&part, "Content-Disposition");
    int r = disposition ? parameter(disposition, "name", name, sizeof(name)) : 0;
    part.name = r > 0 ? name : NULL;
    if (r >= 0)
        r = disposition ? parameter(disposition, "filename", filename, sizeof(filename)) : 0;
    part.filename = r > 0 ? filename : NULL;
    if (r < 0)
        return malformed(err, "a part's name is too long, or not closed");
    r = m->sink->begin(m->arg, &part, err);
    buf_clear(&m->head);
    m->state = MP_DATA;
    m->matched = 0;
    return r;
}

/* One byte of a head; it ends with an empty line, which may be its first. */
static int head_byte(struct multipart *m, char c, struct err *err)
{
    if (buf_append(&m->head, &c, 1) < 0)
        return malformed(err, "a part's headers are too long");
    const char *p = m->head.data;
    size_t n = m->head.len;
    bool empty = n == 2 && memcmp(p, "\r\n", 2) == 0;
    bool whole = n >= 4 && memcmp(p + n - 4, "\r\n\r\n", 4) == 0;
    return empty || whole ? begin_part(m, err) : 0;
}

/* ---- the bytes ---- */

static int emit(struct multipart *m, const char *p, size_t n, struct err *err)
{
    return n && m->state == MP_DATA ? m->sink->data(m->arg, p, n, err) : 0;
}

/* What comes before the next boundary; returns how many bytes of p were used. */
static int scan(struct multipart *m, const char *p, size_t n, size_t *ret_used, struct err *err)
{
    size_t at = 0;
    int r = 0;

    while (at < n && r >= 0) {
        if (m->matched == 0) { /* the quick way to the next CR */
            const char *cr = memchr(p + at, '\r', n - at);
            size_t plain = cr ? (size_t)(cr - p) - at : n - at;
            r = emit(m, p + at, plain, err);
            at += plain;
            if (r < 0 || at == n)
                break;
        }
        if (p[at] == m->delimiter[m->matched]) {
            at++;
            if (++m->matched == m->len) {
                *ret_used = at;
                return 1;
            }
        } else {
            /* What looked like a boundary was data. CR comes only at its beginning. */
            r = emit(m, m->delimiter, m->matched, err);
            m->matched = 0;
        }
    }
    *ret_used = at;
    return r;
}

static int found_boundary(struct multipart *m, struct err *err)
{
    int r = m->state == MP_DATA ? m->sink->end(m->arg, err) : 0;
    m->state = MP_AFTER;
    m->after = 0;
    m->last = '\0';
    return r;
}

/* Behind a boundary: blanks, CR LF; or "--", the end of all. */
static int after_byte(struct multipart *m, char c, struct err *err)
{
    if (m->after == 1 && m->last == '-' && c == '-') {
        m->state = MP_DONE;
        return 0;
    }
    bool blank = c == ' ' || c == '\t';
    if (m->last == '\r' && c == '\n') {
        m->state = MP_HEAD;
        buf_clear(&m->head);
        return 0;
    }
    if (m->last == '\r' || m->last == '-' || ++m->after > AFTER_MAX ||
        (!blank && c != '\r' && !(c == '-' && m->after == 1)))
        return malformed(err, "a boundary is not at the end of its line");
    m->last = c;
    return 0;
}

int multipart_feed(struct multipart *m, const char *p, size_t n, struct err *err)
{
    while (n > 0) {
        size_t used = 1;
        int r = 0;
        switch (m->state) {
        case MP_PREAMBLE:
        case MP_DATA:
            r = scan(m, p, n, &used, err);
            if (r > 0)
                r = found_boundary(m, err);
            break;
        case MP_AFTER: r = after_byte(m, *p, err); break;
        case MP_HEAD: r = head_byte(m, *p, err); break;
        case MP_DONE: return 0;
        }
        if (r < 0)
            return r;
        p += used;
        n -= used;
    }
    return 0;
}

int multipart_end(const struct multipart *m, struct err *err)
{
    return m->state == MP_DONE ? 0 : malformed(err, "it ends before its last boundary");
}

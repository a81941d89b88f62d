#include "net/head.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define METHOD_MAX 32
#define LENGTH_DIGITS_MAX 18 /* below 2^63 */
#define OPTIONS_MAX 32       /* of Connection: each field is compared with every one of them */

static bool is_token(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool all_token(struct text t)
{
    for (size_t i = 0; i < t.n; i++)
        if (!is_token((unsigned char)t.p[i]))
            return false;
    return t.n > 0;
}

bool text_is(struct text t, const char *word)
{
    return strlen(word) == t.n && strncasecmp(t.p, word, t.n) == 0;
}

bool text_starts(struct text t, const char *word)
{
    size_t n = strlen(word);
    return t.n >= n && strncasecmp(t.p, word, n) == 0;
}

static int letter(char c)
{
    return isalnum((unsigned char)c) ? tolower((unsigned char)c) : '-';
}

bool text_reads_as(struct text t, const char *word)
{
    size_t i = 0;
    while (i < t.n && word[i] && letter(t.p[i]) == letter(word[i]))
        i++;
    return i == t.n && !word[i];
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct text trim(struct text t)
{
    while (t.n > 0 && is_blank(t.p[0])) {
        t.p++;
        t.n--;
    }
    while (t.n > 0 && is_blank(t.p[t.n - 1]))
        t.n--;
    return t;
}

/* The next entry of a list with commas; false: no more. */
static bool next_entry(struct text *list, struct text *ret_entry)
{
    if (list->n == 0)
        return false;
    const char *comma = memchr(list->p, ',', list->n);
    size_t n = comma ? (size_t)(comma - list->p) : list->n;
    *ret_entry = trim((struct text){ list->p, n });
    list->p += comma ? n + 1 : n;
    list->n -= comma ? n + 1 : n;
    return true;
}

static unsigned count_entries(struct text list)
{
    struct text entry;
    unsigned n = 0;
    while (next_entry(&list, &entry))
        n++;
    return n;
}

bool text_lists(struct text list, const char *word)
{
    struct text entry;
    while (next_entry(&list, &entry))
        if (text_is(entry, word))
            return true;
    return false;
}

const struct head_field *head_find(const struct head *h, const char *name)
{
    for (size_t i = 0; i < h->nfields; i++)
        if (text_is(h->fields[i].name, name))
            return &h->fields[i];
    return NULL;
}

bool head_is_hop(const struct head *h, struct text name)
{
    static const char *const hop[] = { "Connection", "Keep-Alive",          "Proxy-Connection",
                                       "TE",         "Transfer-Encoding",   "Upgrade",
                                       "Trailer",    "Proxy-Authorization", "Proxy-Authenticate" };
    for (size_t i = 0; i < sizeof(hop) / sizeof(hop[0]); i++)
        if (text_is(name, hop[i]))
            return true;
    /* Naming these there would leave a message without the end, or the host, that we saw. */
    if (text_is(name, "Content-Length") || text_is(name, "Host"))
        return false;
    for (size_t i = 0; i < h->nfields; i++) {
        struct text list = h->fields[i].value, entry;
        if (!text_is(h->fields[i].name, "Connection"))
            continue;
        while (next_entry(&list, &entry))
            if (entry.n == name.n && strncasecmp(entry.p, name.p, name.n) == 0)
                return true;
    }
    return false;
}

size_t head_end(const char *p, size_t n, size_t seen)
{
    size_t at = seen > 3 ? seen - 3 : 0;
    const char *lf;
    while (at < n && (lf = memchr(p + at, '\n', n - at))) {
        at = (size_t)(lf - p) + 1;
        if ((at >= 2 && p[at - 2] == '\n') || (at >= 3 && p[at - 2] == '\r' && p[at - 3] == '\n'))
            return at;
    }
    return 0;
}

/* ---- lines ---- */

struct lines {
    const char *p, *end;
    bool loose; /* a bare line feed ends a line too */
};

static int next_line(struct lines *l, struct text *ret_line)
{
    const char *lf = memchr(l->p, '\n', (size_t)(l->end - l->p));
    if (!lf)
        return -EBADMSG;
    size_t n = (size_t)(lf - l->p);
    bool cr = n > 0 && lf[-1] == '\r';
    if (!cr && !l->loose)
        return -EBADMSG;
    *ret_line = (struct text){ l->p, cr ? n - 1 : n };
    l->p = lf + 1;
    return 0;
}

static int check_value(struct text v)
{
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return -EBADMSG;
    }
    return 0;
}

static int read_fields(struct lines *l, struct head *h)
{
    struct text line;
    for (;;) {
        int r = next_line(l, &line);
        if (r < 0)
            return r;
        if (line.n == 0)
            return l->p == l->end ? 0 : -EBADMSG;
        const char *colon = memchr(line.p, ':', line.n);
        if (!colon)
            return -EBADMSG;
        struct head_field f = { { line.p, (size_t)(colon - line.p) }, { 0 } };
        f.value = trim((struct text){ colon + 1, line.n - f.name.n - 1 });
        if (!all_token(f.name) || check_value(f.value) < 0) /* a folded line begins with a blank */
            return -EBADMSG;
        if (h->nfields == HEAD_FIELDS_MAX)
            return -EMSGSIZE;
        h->fields[h->nfields++] = f;
    }
}

/* ---- what the fields say of the connection and the body ---- */

static int read_length(struct text t, uint64_t *ret)
{
    uint64_t v = 0;
    if (t.n == 0 || t.n > LENGTH_DIGITS_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < t.n; i++) {
        if (t.p[i] < '0' || t.p[i] > '9')
            return -EBADMSG;
        v = v * 10 + (unsigned)(t.p[i] - '0');
    }
    *ret = v;
    return 0;
}

struct seen {
    unsigned lengths, codings, hosts, options;
    bool close, keep_alive, upgrade_listed, upgrade;
};

static int read_field(struct head *h, const struct head_field *f, struct seen *s)
{
    if (text_is(f->name, "Content-Length")) {
        s->lengths++;
        return read_length(f->value, &h->length);
    }
    if (text_is(f->name, "Transfer-Encoding")) {
        s->codings++;
        return text_is(f->value, "chunked") ? 0 : -EBADMSG;
    }
    if (text_is(f->name, "Host")) {
        s->hosts++;
        h->host = f->value;
    } else if (text_is(f->name, "Connection")) {
        s->options += count_entries(f->value);
        s->close |= text_lists(f->value, "close");
        s->keep_alive |= text_lists(f->value, "keep-alive");
        s->upgrade_listed |= text_lists(f->value, "upgrade");
    } else if (text_is(f->name, "Upgrade")) {
        s->upgrade = true;
    } else if (text_is(f->name, "Expect")) {
        h->expect = text_is(f->value, "100-continue");
    }
    return 0;
}

static int understand(struct head *h, struct seen *s)
{
    for (size_t i = 0; i < h->nfields; i++) {
        int r = read_field(h, &h->fields[i], s);
        if (r < 0)
            return r;
    }
    if (s->lengths > 1 || s->codings > 1 || (s->lengths && s->codings) ||
        (s->codings && h->minor == 0) || s->options > OPTIONS_MAX)
        return -EBADMSG;
    h->keep_alive = !s->close && (h->minor == 1 || s->keep_alive);
    h->upgrade = s->upgrade && s->upgrade_listed && h->minor == 1;
    return 0;
}

static int read_version(struct text t, unsigned *ret_minor)
{
    if (t.n != 8 || memcmp(t.p, "HTTP/1.", 7) != 0 || (t.p[7] != '0' && t.p[7] != '1'))
        return -EBADMSG;
    *ret_minor = (unsigned)(t.p[7] - '0');
    return 0;
}

/* All of it, whose first line is as `first` reads it. */
static int read_head(const char *p, size_t n, bool loose,
                     int (*first)(struct text line, struct head *h), struct head *h,
                     struct seen *ret_seen)
{
    struct lines l = { p, p + n, loose };
    struct text line;
    memset(h, 0, offsetof(struct head, fields));
    h->size = n;
    int r = next_line(&l, &line);
    if (r >= 0)
        r = first(line, h);
    if (r >= 0)
        r = read_fields(&l, h);
    return r < 0 ? r : understand(h, ret_seen);
}

/* ---- requests ---- */

static int read_request_line(struct text line, struct head *h)
{
    const char *first = memchr(line.p, ' ', line.n);
    const char *last = memrchr(line.p, ' ', line.n);
    if (!first || first == last)
        return -EBADMSG;
    h->method = (struct text){ line.p, (size_t)(first - line.p) };
    h->target = (struct text){ first + 1, (size_t)(last - first - 1) };
    if (!all_token(h->method) || h->method.n > METHOD_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < h->target.n; i++)
        if (h->target.p[i] <= ' ' || h->target.p[i] >= 0x7f)
            return -EBADMSG;
    bool star = h->target.n == 1 && h->target.p[0] == '*' && text_is(h->method, "OPTIONS");
    if (h->target.n == 0 || (h->target.p[0] != '/' && !star))
        return -EBADMSG;
    return read_version((struct text){ last + 1, line.n - (size_t)(last + 1 - line.p) }, &h->minor);
}

int head_request(const char *p, size_t n, struct head *h)
{
    struct seen s = { 0 };
    int r = read_head(p, n, false, read_request_line, h, &s);
    if (r < 0)
        return r;
    if (s.hosts > 1 || (s.hosts == 0 && h->minor == 1))
        return -EBADMSG;
    h->body = s.codings ? BODY_CHUNKED : s.lengths && h->length > 0 ? BODY_LENGTH : BODY_EMPTY;
    return 0;
}

/* ---- answers ---- */

static int read_status_line(struct text line, struct head *h)
{
    if (line.n < 12 || line.p[8] != ' ' || read_version((struct text){ line.p, 8 }, &h->minor) < 0)
        return -EBADMSG;
    for (size_t i = 9; i < 12; i++) {
        if (line.p[i] < '0' || line.p[i] > '9')
            return -EBADMSG;
        h->status = h->status * 10 + (unsigned)(line.p[i] - '0');
    }
    if (h->status < 100 || (line.n > 12 && line.p[12] != ' '))
        return -EBADMSG;
    h->reason =
        line.n > 13 ? (struct text){ line.p + 13, line.n - 13 } : (struct text){ line.p, 0 };
    return check_value(h->reason);
}

int head_answer(const char *p, size_t n, bool to_head, struct head *h)
{
    struct seen s = { 0 };
    int r = read_head(p, n, true, read_status_line, h, &s);
    if (r < 0)
        return r;
    if (to_head || h->status < 200 || h->status == 204 || h->status == 304)
        h->body = BODY_EMPTY;
    else if (s.codings)
        h->body = BODY_CHUNKED;
    else if (s.lengths)
        h->body = h->length > 0 ? BODY_LENGTH : BODY_EMPTY;
    else
        h->body = BODY_UNTIL_END;
    if (h->body == BODY_UNTIL_END)
        h->keep_alive = false;
    return 0;
}

int text_put(struct buf *out, struct text t)
{
    return buf_append(out, t.p, t.n);
}

int head_put_field(struct buf *out, struct text name, struct text value)
{
    int r = text_put(out, name);
    if (r >= 0)
        r = buf_append(out, ": ", 2);
    if (r >= 0)
        r = text_put(out, value);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

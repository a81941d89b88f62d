#include "dockerfile/source.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "dockerfile/words.h"

#define HEREDOCS_MAX 64 /* of one instruction */

struct line {
    const char *p;
    size_t n; /* without the line's end */
};

/* The next physical line; false at the end. */
static bool take_line(struct source *src, struct line *ret_line)
{
    if (src->p == src->end)
        return false;
    const char *eol = memchr(src->p, '\n', (size_t)(src->end - src->p));
    struct line l = { src->p, (size_t)((eol ? eol : src->end) - src->p) };
    src->p = eol ? eol + 1 : src->end;
    src->line++;
    if (l.n && l.p[l.n - 1] == '\r')
        l.n--;
    *ret_line = l;
    return true;
}

static struct line without_indent(struct line l)
{
    while (l.n && words_space(*l.p))
        l.p++, l.n--;
    return l;
}

/* ---- directives ---- */

struct directive {
    struct line name, value;
};

static bool is_name(char c, bool first)
{
    return isalpha((unsigned char)c) || (!first && isdigit((unsigned char)c));
}

/* "# name = value" */
static bool directive_parse(struct line l, struct directive *ret_d)
{
    l = without_indent(l);
    if (!l.n || *l.p != '#')
        return false;
    l = without_indent((struct line){ l.p + 1, l.n - 1 });
    struct line name = { l.p, 0 };
    while (name.n < l.n && is_name(l.p[name.n], name.n == 0))
        name.n++;
    l = without_indent((struct line){ l.p + name.n, l.n - name.n });
    if (!name.n || !l.n || *l.p != '=')
        return false;
    l = without_indent((struct line){ l.p + 1, l.n - 1 });
    while (l.n && words_space(l.p[l.n - 1]))
        l.n--;
    *ret_d = (struct directive){ name, l };
    return l.n > 0;
}

static bool is(struct line l, const char *word)
{
    return strlen(word) == l.n && strncasecmp(l.p, word, l.n) == 0;
}

/* docker/dockerfile, perhaps with a version and its registry's name: the language that is spoken
 * here. Its "-labs" channel and others' frontends add to it. */
static bool plain_frontend(struct line v)
{
    static const char *const hosts[] = { "docker.io/", "index.docker.io/",
                                         "registry-1.docker.io/" };
    static const char name[] = "docker/dockerfile";
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        size_t n = strlen(hosts[i]);
        if (v.n > n && memcmp(v.p, hosts[i], n) == 0)
            v = (struct line){ v.p + n, v.n - n };
    }
    size_t n = sizeof(name) - 1;
    if (v.n < n || memcmp(v.p, name, n) != 0)
        return false;
    v = (struct line){ v.p + n, v.n - n };
    return v.n == 0 || (*v.p == ':' && !memmem(v.p, v.n, "labs", 4)) || *v.p == '@';
}

static int apply(struct source *src, const struct directive *d, unsigned *seen, struct err *err)
{
    unsigned bit = is(d->name, "escape") ? 1 : is(d->name, "syntax") ? 2 : 4;
    if (*seen & bit)
        return err_fail(err, FAIL_INVALID_DOCKERFILE,
                        "line %u: the directive '%.*s' is there twice", src->line, (int)d->name.n,
                        d->name.p);
    *seen |= bit;
    if (bit == 1) {
        if (d->value.n != 1 || (*d->value.p != '\\' && *d->value.p != '`'))
            return err_fail(err, FAIL_INVALID_DOCKERFILE,
                            "line %u: the escape character must be \\ or `", src->line);
        src->escape = *d->value.p;
    }
    if (bit == 2 && !plain_frontend(d->value))
        return err_fail(err, FAIL_INVALID_DOCKERFILE,
                        "line %u: the frontend '%.*s' is not spoken here, only docker/dockerfile",
                        src->line, (int)(d->value.n > 100 ? 100 : d->value.n), d->value.p);
    return 0;
}

int source_init(struct source *src, const char *p, size_t n, struct arena *arena,
                unsigned *ret_line, struct err *err)
{
    *src = (struct source){ .p = p, .end = p + n, .escape = '\\', .arena = arena };
    unsigned seen = 0;
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        src->p += 3;
    for (;;) {
        struct source at = *src;
        struct directive d;
        struct line l;
        bool known = take_line(src, &l) && directive_parse(l, &d) &&
                     (is(d.name, "escape") || is(d.name, "syntax") || is(d.name, "check"));
        if (!known) { /* the first line that is none ends them */
            *src = at;
            return 0;
        }
        int r = apply(src, &d, &seen, err);
        if (r < 0) {
            *ret_line = src->line;
            return r;
        }
    }
}

/* ---- instructions ---- */

/* Ends the line in the escape character, not itself escaped? Then it is cut off. */
static bool continued(struct line *l, char escape)
{
    size_t n = l->n;
    while (n && (l->p[n - 1] == ' ' || l->p[n - 1] == '\t'))
        n--;
    if (!n || l->p[n - 1] != escape || (n > 1 && l->p[n - 2] == escape))
        return false;
    l->n = n - 1;
    return true;
}

/* More lines of an instruction whose first one ended in the escape character. */
static int take_continued(struct source *src, struct buf *text, bool *empty_line)
{
    struct line l;
    while (take_line(src, &l)) {
        struct line bare = without_indent(l);
        if (bare.n && *bare.p == '#')
            continue;
        if (!bare.n) {
            *empty_line = true;
            continue;
        }
        bool more = continued(&l, src->escape);
        int r = buf_append(text, l.p, l.n);
        if (r < 0 || !more)
            return r;
    }
    return 0;
}

int source_next(struct source *src, struct source_text *ret_text, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(DOCKERFILE_MAX + 1);
    struct source_text t = { 0 };
    struct line l;
    for (;;) {
        if (!take_line(src, &l))
            return 0;
        l = without_indent(l);
        if (l.n && *l.p != '#')
            break;
    }
    t.line = src->line;
    bool more = continued(&l, src->escape);
    int r = buf_append(&text, l.p, l.n);
    if (r >= 0 && more)
        r = take_continued(src, &text, &t.empty_line);
    if (r < 0)
        return err_set(err, -r, "cannot keep line %u", t.line);
    while (text.len && words_space(text.data[text.len - 1]))
        text.len--;
    const char *p = text.data;
    size_t n = text.len;
    while (n && words_space(*p))
        p++, n--;
    if (n == 0) /* nothing but continuations */
        return source_next(src, ret_text, err);
    t.text = arena_strndup(src->arena, p, n);
    if (!t.text)
        return err_set(err, ENOMEM, "cannot keep line %u", t.line);
    *ret_text = t;
    return 1;
}

/* ---- heredocs ---- */

/* A heredoc's name may be quoted as a whole or in part; where it is, nothing in it is expanded. */
int source_mark(struct arena *arena, const char *word, size_t n, char escape,
                struct source_mark *ret_mark)
{
    const char *p = word, *end = word + n;
    while (p < end && isdigit((unsigned char)*p))
        p++;
    if (end - p < 3 || p[0] != '<' || p[1] != '<')
        return 0;
    p += 2;
    struct source_mark m = { .tabs = *p == '-', .expand = true };
    p += m.tabs;
    char *name = arena_alloc(arena, (size_t)(end - p) + 1);
    size_t len = 0;
    if (!name)
        return -ENOMEM;
    char quote = '\0';
    for (; p < end; p++) {
        if (*p == quote || (!quote && (*p == '\'' || *p == '"'))) {
            quote = quote ? '\0' : *p;
            m.expand = false;
        } else if (*p == escape && quote != '\'' && p + 1 < end) {
            name[len++] = *++p;
            m.expand = false;
        } else if (*p == '<') {
            return 0; /* <<< is a here string */
        } else if (!quote && strchr(">|&;()", *p)) {
            break; /* the shell's; the name ends here */
        } else {
            name[len++] = *p;
        }
    }
    if (len == 0 || quote)
        return 0;
    m.name = name;
    *ret_mark = m;
    return 1;
}

static int take_heredoc(struct source *src, const struct source_mark *m, unsigned line,
                        struct dockerfile_heredoc *ret_doc, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(DOCKERFILE_MAX + 1);
    struct line l;
    for (;;) {
        const char *from = src->p;
        if (!take_line(src, &l))
            return err_fail(err, FAIL_INVALID_DOCKERFILE,
                            "line %u: the heredoc '%.60s' does not end", line, m->name);
        size_t whole = (size_t)(src->p - from);
        while (m->tabs && whole && *from == '\t')
            from++, whole--;
        while (m->tabs && l.n && *l.p == '\t')
            l.p++, l.n--;
        if (strlen(m->name) == l.n && memcmp(m->name, l.p, l.n) == 0)
            break;
        int r = buf_append(&text, from, whole);
        if (r < 0)
            return err_set(err, -r, "cannot keep a heredoc of line %u", line);
    }
    *ret_doc = (struct dockerfile_heredoc){ .name = m->name,
                                            .text = arena_strndup(src->arena, text.data, text.len),
                                            .len = text.len,
                                            .expand = m->expand };
    return ret_doc->text ? 0 : err_set(err, ENOMEM, "cannot keep a heredoc of line %u", line);
}

int source_heredocs(struct source *src, const char *args, unsigned line,
                    struct dockerfile_heredoc **ret_docs, size_t *ret_n, struct err *err)
{
    struct dockerfile_heredoc *docs = NULL;
    struct words w;
    size_t n = 0;
    int r = words_quoted(src->arena, args, src->escape, &w);
    if (r < 0)
        return err_fail_as(err, -r, r == -E2BIG ? FAIL_INVALID_DOCKERFILE : FAIL_NONE,
                           "line %u: too many words", line);
    for (size_t i = 0; i < w.n; i++) {
        struct source_mark m;
        r = source_mark(src->arena, w.items[i], strlen(w.items[i]), src->escape, &m);
        if (r == 0)
            continue;
        if (r > 0 && n == HEREDOCS_MAX)
            return err_fail(err, FAIL_INVALID_DOCKERFILE, "line %u: over %d heredocs", line,
                            HEREDOCS_MAX);
        docs = r < 0 ? NULL : arena_grow(src->arena, docs, n, sizeof(*docs));
        if (!docs)
            return err_set(err, ENOMEM, "cannot keep a heredoc of line %u", line);
        r = take_heredoc(src, &m, line, &docs[n++], err);
        if (r < 0)
            return r;
    }
    *ret_docs = docs;
    *ret_n = n;
    return 0;
}

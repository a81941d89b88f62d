/* Bindings as lines: what people type and the daemon keeps, and what the broker is given. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "net/binding_private.h"

#define MEMBER_MAX 16 /* "transparent" and more */
#define VALUE_MAX (64 * 1024)

static bool gap(char c)
{
    return c == ' ' || c == '\t';
}

/* ---- reading ---- */

/* A value from p on, with or without quotes; how many bytes it took, or -EINVAL. */
static ssize_t read_value(const char *p, size_t n, struct buf *out)
{
    size_t i = 0;
    int r = 0;
    if (n == 0 || p[0] != '"') {
        while (i < n && !gap(p[i]))
            if (p[i++] == '"')
                return -EINVAL;
        r = buf_append(out, p, i);
        return r < 0 ? r : (ssize_t)i;
    }
    for (i = 1; i < n && p[i] != '"' && r == 0; i++) {
        if (p[i] == '\\' && (i + 1 == n || (p[i + 1] != '"' && p[i + 1] != '\\')))
            return -EINVAL;
        i += p[i] == '\\';
        r = buf_append(out, &p[i], 1);
    }
    if (r < 0)
        return r;
    return i < n && (i + 1 == n || gap(p[i + 1])) ? (ssize_t)i + 1 : -EINVAL;
}

/* SECRET@HOST[:PORT][/PATH] */
static int read_place(struct binding *b, const char *p, size_t n, struct err *err)
{
    const char *end = p + n, *at = memchr(p, '@', n);
    int r = binding_set(b, "secret", p, (size_t)(at - p), err);
    const char *host = at + 1, *path = memchr(host, '/', (size_t)(end - host));
    if (!path)
        path = end;
    const char *port = memchr(host, ':', (size_t)(path - host));
    if (r >= 0)
        r = binding_set(b, "host", host, (size_t)((port ? port : path) - host), err);
    if (r >= 0 && port)
        r = binding_set(b, "port", port + 1, (size_t)(path - port - 1), err);
    if (r >= 0 && path < end)
        r = binding_set(b, "path", path, (size_t)(end - path), err);
    return r;
}

/* One word of the line; how many bytes it took. */
static ssize_t read_word(struct binding *b, const char *p, size_t n, bool first, struct err *err)
{
    _cleanup_(buf_done) struct buf value = BUF_INIT(BINDING_TEXT_MAX);
    char member[MEMBER_MAX];
    size_t word = 0, name = 0;
    while (word < n && !gap(p[word]))
        word++;
    while (name < word && p[name] != '=' && p[name] != '@')
        name++;
    if (first && name < word && p[name] == '@') {
        int r = read_place(b, p, word, err);
        return r < 0 ? r : (ssize_t)word;
    }
    if (name == word || p[name] != '=' || name >= sizeof(member))
        return binding_wrong(err, p, word,
                             "is not understood; write SECRET@HOST[:PORT][/PATH] first, or "
                             "secret=NAME host=HOST, and then such words as as=bearer");
    memcpy(member, p, name);
    member[name] = '\0';
    ssize_t took = read_value(p + name + 1, n - name - 1, &value);
    if (took < 0)
        return binding_wrong(err, p, word, "has quotes that do not end, or bytes behind them");
    int r = binding_set(b, member, value.data ? value.data : "", value.len, err);
    return r < 0 ? r : (ssize_t)name + 1 + took;
}

int binding_parse(const char *p, size_t n, struct binding *ret_b, struct err *err)
{
    _cleanup_(binding_done) struct binding b = BINDING_INIT;
    bool first = true;
    if (n > BINDING_TEXT_MAX)
        return err_fail(err, FAIL_INVALID_BINDING, "a binding has at most %d bytes",
                        BINDING_TEXT_MAX);
    for (size_t i = 0; i < n;) {
        if (gap(p[i])) {
            i++;
            continue;
        }
        ssize_t took = read_word(&b, p + i, n - i, first, err);
        if (took < 0)
            return (int)took;
        i += (size_t)took;
        first = false;
    }
    int r = binding_finish(&b, err);
    if (r < 0)
        return r;
    *ret_b = b;
    b = (struct binding)BINDING_INIT;
    return 0;
}

static int add_line(struct bindings *bs, const char *p, size_t n, struct err *err)
{
    _cleanup_(binding_done) struct binding b = BINDING_INIT;
    int r = binding_parse(p, n, &b, err);
    return r < 0 ? r : bindings_add(bs, &b, err);
}

int bindings_parse(const char *p, size_t n, struct bindings *ret_bs, struct err *err)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    if (n > BINDINGS_TEXT_MAX)
        return err_fail_as(err, E2BIG, FAIL_INVALID_BINDING, "the bindings are too long");
    while (n) {
        const char *end = memchr(p, '\n', n);
        size_t line = end ? (size_t)(end - p) : n;
        int r = line ? add_line(&bs, p, line, err) : 0;
        if (r < 0)
            return r;
        line += end != NULL;
        p += line;
        n -= line;
    }
    *ret_bs = bs;
    bs = (struct bindings)BINDINGS_INIT;
    return 0;
}

/* ---- writing ---- */

static int put_value(struct buf *out, const char *text)
{
    if (*text && !strpbrk(text, " \t\"\\"))
        return buf_puts(out, text);
    int r = buf_puts(out, "\"");
    for (; *text && r == 0; text++) {
        if (*text == '"' || *text == '\\')
            r = buf_puts(out, "\\");
        if (r == 0)
            r = buf_append(out, text, 1);
    }
    return r < 0 ? r : buf_puts(out, "\"");
}

static int put(struct buf *out, const char *member, const char *text)
{
    if (!text)
        return 0;
    int r = buf_printf(out, " %s=", member);
    return r < 0 ? r : put_value(out, text);
}

static int put_methods(struct buf *out, const struct binding *b)
{
    int r = b->n_methods ? buf_puts(out, " methods=") : 0;
    for (size_t i = 0; i < b->n_methods && r == 0; i++)
        r = buf_printf(out, "%s%s", i ? "," : "", b->methods[i]);
    return r;
}

int binding_text(const struct binding *b, struct buf *out)
{
    int r = buf_puts(out, b->secret ? "secret=" : "value=");
    if (r == 0)
        r = put_value(out, b->secret ? b->secret : b->literal);
    if (r == 0)
        r = buf_printf(out, " host=%s port=%u", b->host, b->port);
    if (r == 0)
        r = put_methods(out, b);
    const struct {
        const char *member, *text;
    } rest[] = {
        { "path", b->path },
        { "as", binding_as_name(b->as) },
        { "header", b->header },
        { "format", b->format },
        { "query", b->query },
        { "user", b->user },
        { "access_key", b->access_key },
        { "region", b->region },
        { "service", b->service },
        { "name", b->name },
        { "transparent", b->transparent ? NULL : "no" },
        { "answer", b->answer == BINDING_FULL ? NULL : binding_answer_name(b->answer) },
    };
    for (size_t i = 0; i < ARRAY_LEN(rest) && r == 0; i++)
        r = put(out, rest[i].member, rest[i].text);
    return r;
}

int bindings_text(const struct bindings *bs, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < bs->n && r == 0; i++) {
        r = binding_text(&bs->items[i], out);
        if (r == 0)
            r = buf_puts(out, "\n");
    }
    return r;
}

/* ---- with values ---- */

bool binding_carries(const struct binding *b, const char *value, size_t n)
{
    if (n == 0 || n > VALUE_MAX)
        return false;
    if (b->as != BINDING_BEARER && b->as != BINDING_HEADER)
        return true; /* it is encoded, or signs */
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
            return false;
    return value[0] != ' ' && value[n - 1] != ' ';
}

int bindings_pack(const struct bindings *bs, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < bs->n && r == 0; i++) {
        const struct binding *b = &bs->items[i];
        bool known = b->value && !b->literal;
        r = binding_text(b, out);
        if (r == 0)
            r = buf_puts(out, known ? "\n=" : "\n-");
        if (r == 0 && known)
            r = base64_encode(b->value, b->n_value, out);
        if (r == 0)
            r = buf_puts(out, "\n");
    }
    return r;
}

/* The line at *p, without its end; -EINVAL: it has none. */
static int next_line(const char **p, size_t *n, const char **ret_line, size_t *ret_n)
{
    const char *end = *n ? memchr(*p, '\n', *n) : NULL;
    if (!end)
        return -EINVAL;
    *ret_line = *p;
    *ret_n = (size_t)(end - *p);
    *n -= *ret_n + 1;
    *p = end + 1;
    return 0;
}

static int take_literal(struct binding *b)
{
    b->value = strdup(b->literal);
    b->n_value = strlen(b->literal);
    return b->value ? 0 : -ENOMEM;
}

static int take_value(struct binding *b, const char *p, size_t n)
{
    struct buf value = BUF_INIT(2 * VALUE_MAX);
    if (n == 1 && p[0] == '-')
        return b->literal ? take_literal(b) : 0;
    if (n < 2 || p[0] != '=' || b->literal)
        return -EINVAL;
    int r = buf_reserve(&value, n + 4); /* it never moves, so that no copy is left behind */
    if (r == 0)
        r = base64_decode(p + 1, n - 1, &value);
    if (r == 0 && !binding_carries(b, value.data ? value.data : "", value.len))
        r = -EINVAL;
    if (r < 0) {
        if (value.data)
            explicit_bzero(value.data, value.cap);
        buf_done(&value);
        return r == -ENOMEM ? r : -EINVAL;
    }
    b->n_value = value.len;
    b->value = buf_steal(&value);
    return 0;
}

int bindings_unpack(const char *p, size_t n, struct bindings *ret_bs, struct err *err)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    while (n) {
        const char *line, *value;
        size_t n_line, n_value;
        if (next_line(&p, &n, &line, &n_line) < 0 || next_line(&p, &n, &value, &n_value) < 0)
            return err_fail(err, FAIL_INVALID_BINDING, "bindings end in the middle");
        int r = add_line(&bs, line, n_line, err);
        if (r < 0)
            return r;
        if (take_value(&bs.items[bs.n - 1], value, n_value) < 0)
            return err_fail(err, FAIL_INVALID_BINDING, "a binding's value cannot be read");
    }
    *ret_bs = bs;
    bs = (struct bindings)BINDINGS_INIT;
    return 0;
}

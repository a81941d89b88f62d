#include "s3/xml.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

void xml_init(struct xml *x, const char *p, size_t n)
{
    memset(x, 0, sizeof(*x));
    x->p = p;
    x->n = n;
}

static bool starts(const struct xml *x, const char *word)
{
    size_t len = strlen(word);
    return x->n - x->at >= len && memcmp(x->p + x->at, word, len) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-.:", c));
}

/* Behind the next `word`. */
static int skip_past(struct xml *x, const char *word)
{
    const char *end = memmem(x->p + x->at, x->n - x->at, word, strlen(word));
    if (!end)
        return -EBADMSG;
    x->at = (size_t)(end - x->p) + strlen(word);
    return 0;
}

static int put(struct xml *x, char c)
{
    if (x->text_len == XML_TEXT_MAX || c == '\0')
        return -EBADMSG;
    x->text[x->text_len++] = c;
    x->text[x->text_len] = '\0';
    return 0;
}

static int put_code(struct xml *x, uint32_t c)
{
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return -EBADMSG;
    if (c < 0x80)
        return put(x, (char)c);
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint32_t first[] = { 0, 0xc0, 0xe0, 0xf0 };
    int r = put(x, (char)(first[more] | c >> (6 * more)));
    while (r == 0 && more-- > 0)
        r = put(x, (char)(0x80 | (c >> (6 * more) & 0x3f)));
    return r;
}

static int put_number(struct xml *x, const char *p, size_t n)
{
    unsigned base = n > 0 && (*p == 'x' || *p == 'X') ? 16 : 10;
    uint32_t v = 0;
    if (base == 16)
        p++, n--;
    if (n == 0 || n > 7)
        return -EBADMSG;
    for (size_t i = 0; i < n; i++) {
        unsigned d = p[i] >= '0' && p[i] <= '9'   ? (unsigned)(p[i] - '0')
                     : p[i] >= 'a' && p[i] <= 'f' ? (unsigned)(p[i] - 'a') + 10
                     : p[i] >= 'A' && p[i] <= 'F' ? (unsigned)(p[i] - 'A') + 10
                                                  : 16;
        if (d >= base)
            return -EBADMSG;
        v = v * base + d;
    }
    return put_code(x, v);
}

/* Behind '&'. */
static int put_entity(struct xml *x)
{
    static const struct {
        const char *name;
        char c;
    } known[] = { { "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' }, { "apos", '\'' } };
    const char *p = x->p + x->at;
    const char *end = memchr(p, ';', x->n - x->at < 12 ? x->n - x->at : 12);
    if (!end)
        return -EBADMSG;
    size_t n = (size_t)(end - p);
    x->at += n + 1;
    if (n > 1 && *p == '#')
        return put_number(x, p + 1, n - 1);
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strlen(known[i].name) == n && memcmp(known[i].name, p, n) == 0)
            return put(x, known[i].c);
    return -EBADMSG;
}

static int take_name(struct xml *x, char out[XML_NAME_MAX])
{
    size_t n = 0;
    while (x->at < x->n && is_name(x->p[x->at])) {
        if (n == XML_NAME_MAX - 1)
            return -EBADMSG;
        out[n++] = x->p[x->at++];
    }
    out[n] = '\0';
    return n ? 0 : -EBADMSG;
}

/* Attributes say nothing that is used; a '>' in their quotes is not the end. */
static int skip_attributes(struct xml *x)
{
    char quote = '\0';
    for (; x->at < x->n; x->at++) {
        char c = x->p[x->at];
        if (quote)
            quote = c == quote ? '\0' : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == '<')
            return -EBADMSG;
        else if (c == '>')
            return 0;
    }
    return -EBADMSG;
}

static int open_element(struct xml *x)
{
    if (x->depth == XML_DEPTH_MAX || x->done)
        return -EBADMSG;
    int r = take_name(x, x->names[x->depth]);
    if (r == 0)
        r = skip_attributes(x);
    if (r < 0)
        return r;
    x->empty = x->p[x->at - 1] == '/';
    x->at++;
    x->depth++;
    x->text_len = 0;
    x->text[0] = '\0';
    return XML_OPEN;
}

static int close_last(struct xml *x)
{
    x->depth--;
    x->closed = 1;
    x->done = x->depth == 0;
    return XML_CLOSE;
}

static int close_element(struct xml *x)
{
    char name[XML_NAME_MAX];
    int r = take_name(x, name);
    if (r < 0)
        return r;
    while (x->at < x->n && is_space(x->p[x->at]))
        x->at++;
    if (x->at == x->n || x->p[x->at] != '>' || x->depth == 0 ||
        strcmp(name, x->names[x->depth - 1]) != 0)
        return -EBADMSG;
    x->at++;
    return close_last(x);
}

static int take_text(struct xml *x)
{
    char c = x->p[x->at++];
    if (x->depth == 0)
        return is_space(c) ? 0 : -EBADMSG;
    return c == '&' ? put_entity(x) : put(x, c);
}

int xml_next(struct xml *x)
{
    int r = 0;
    if (x->empty) {
        x->empty = 0;
        return close_last(x);
    }
    if (x->closed) { /* it was read; what follows is another's */
        x->closed = 0;
        x->text_len = 0;
        x->text[0] = '\0';
    }
    if (x->at == 0 && starts(x, "\xef\xbb\xbf"))
        x->at = 3;
    if (x->at <= 3 && starts(x, "<?xml"))
        r = skip_past(x, "?>");
    while (r == 0 && x->at < x->n) {
        if (x->p[x->at] != '<') {
            r = take_text(x);
        } else if (starts(x, "<!--")) {
            r = skip_past(x, "-->");
        } else if (starts(x, "</")) {
            x->at += 2;
            return close_element(x);
        } else {
            x->at++;
            return open_element(x);
        }
    }
    if (r < 0)
        return r;
    return x->done ? XML_END : -EBADMSG;
}

#include "dockerfile/expand.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "dockerfile/words.h"

#define DEPTH_MAX 32 /* of ${a:-${b:-...}} */
#define NAME_SIZE 256
#define PATTERN_MAX 256 /* of ${x#pattern}: the work is its length times the value's */
#define TRIMMED_MAX 65536

struct reader {
    const struct expand *x;
    const char *p;
    unsigned depth;
    bool split;
    struct err *err;
};

static int bad(struct reader *rd, const char *what)
{
    return err_fail(rd->err, FAIL_INVALID_DOCKERFILE, "%s", what);
}

static int put(struct reader *rd, struct buf *out, const char *p, size_t n)
{
    int r = buf_append(out, p, n);
    return r < 0 ? err_fail_as(rd->err, -r, r == -EMSGSIZE ? FAIL_INVALID_DOCKERFILE : FAIL_NONE,
                               "what it expands to is too long")
                 : 0;
}

/* Outside quotes a space ends a word, where words are wanted. */
static int put_plain(struct reader *rd, struct buf *out, const char *p, size_t n)
{
    if (!rd->split)
        return put(rd, out, p, n);
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++)
        if (!words_space(p[i]))
            r = put(rd, out, p + i, 1);
        else if (out->len && out->data[out->len - 1] != '\0')
            r = put(rd, out, "", 1);
    return r;
}

static int until(struct reader *rd, char stop, bool keep_escapes, struct buf *out);

/* ---- $ ---- */

/* A name, a number, or one of the shell's special characters; "" if there is none. */
static int take_name(struct reader *rd, char name[NAME_SIZE])
{
    size_t n = 0;
    const char *p = rd->p;
    if (isdigit((unsigned char)p[0])) {
        while (isdigit((unsigned char)p[n]))
            n++;
    } else if (p[0] && strchr("@*#?-$!", p[0])) {
        n = 1;
    } else {
        while (isalnum((unsigned char)p[n]) || p[n] == '_')
            n++;
    }
    if (n >= NAME_SIZE)
        return bad(rd, "a variable's name is too long");
    memcpy(name, p, n);
    name[n] = '\0';
    rd->p += n;
    return 0;
}

static const char *value_of(struct reader *rd, const char *name)
{
    return rd->x->lookup ? rd->x->lookup(rd->x->ctx, name) : NULL;
}

/* Which lengths of text, from its start, does the pattern match? ok[i] for length i. */
static void match_lengths(const char *pattern, size_t pn, const char *text, size_t n,
                          unsigned char *ok, bool backward)
{
    memset(ok, 0, n + 1);
    ok[0] = 1;
    for (size_t k = 0; k < pn; k++) {
        char c = pattern[backward ? pn - 1 - k : k];
        bool escaped =
            backward ? k + 1 < pn && pattern[pn - 2 - k] == '\\' : c == '\\' && k + 1 < pn;
        if (escaped) {
            k++;
            c = backward ? c : pattern[k];
        }
        if (c == '*' && !escaped) {
            for (size_t i = 1; i <= n; i++)
                ok[i] |= ok[i - 1];
            continue;
        }
        for (size_t i = n; i > 0; i--) {
            char t = text[backward ? n - i : i - 1];
            ok[i] = ok[i - 1] && ((c == '?' && !escaped) || t == c);
        }
        ok[0] = 0;
    }
}

/* ${x#word}, ${x##word}, ${x%word}, ${x%%word} */
static int put_trimmed(struct reader *rd, struct buf *out, char op, const char *word,
                       const char *value)
{
    size_t n = strlen(value);
    bool longest = word[0] == op;
    word += longest;
    size_t pn = strlen(word);
    if (pn > PATTERN_MAX || n > TRIMMED_MAX)
        return bad(rd, "a pattern or the value it trims is too long");
    _cleanup_free_ unsigned char *ok = malloc(n + 1);
    if (!ok)
        return err_set(rd->err, ENOMEM, "cannot trim a value");
    match_lengths(word, pn, value, n, ok, op == '%');
    size_t cut = 0;
    for (size_t i = 0; i <= n; i++)
        if (ok[i]) {
            cut = i;
            if (!longest)
                break;
        }
    return put_plain(rd, out, value + (op == '#' ? cut : 0), n - cut);
}

static int put_modified(struct reader *rd, struct buf *out, const char *name, char op, bool colon,
                        const char *word)
{
    const char *value = value_of(rd, name);
    bool have = value && (!colon || *value);
    switch (op) {
    case '-': return put_plain(rd, out, have ? value : word, strlen(have ? value : word));
    case '+': return have ? put_plain(rd, out, word, strlen(word)) : 0;
    case '?':
        if (have)
            return put_plain(rd, out, value, strlen(value));
        return err_fail(rd->err, FAIL_INVALID_DOCKERFILE, "%.60s: %.200s", name,
                        *word ? word : "must be set");
    default: return put_trimmed(rd, out, op, word, value ? value : "");
    }
}

/* Behind "${". */
static int put_braced(struct reader *rd, struct buf *out)
{
    _cleanup_(buf_done) struct buf word = BUF_INIT(out->max);
    char name[NAME_SIZE];
    int r = take_name(rd, name);
    if (r < 0)
        return r;
    if (!*rd->p)
        return bad(rd, "'${' without '}'");
    if (!*name)
        return bad(rd, "'${' needs a name");
    if (*rd->p == '}') {
        const char *value = value_of(rd, name);
        rd->p++;
        return value ? put_plain(rd, out, value, strlen(value)) : 0;
    }
    bool colon = *rd->p == ':';
    rd->p += colon;
    char op = *rd->p;
    if (!op || !strchr(colon ? "-+?" : "-+?#%", op))
        return err_fail(rd->err, FAIL_INVALID_DOCKERFILE,
                        "'${%.60s%s%c' is not supported; there are :- :+ :? - + ? # and %%", name,
                        colon ? ":" : "", op ? op : '}');
    rd->p++;
    bool split = rd->split;
    rd->split = false;
    r = until(rd, '}', op == '#' || op == '%', &word);
    rd->split = split;
    if (r < 0)
        return r;
    return put_modified(rd, out, name, op, colon, word.data ? word.data : "");
}

static int put_dollar(struct reader *rd, struct buf *out)
{
    char name[NAME_SIZE];
    int r;
    rd->p++;
    if (*rd->p == '{') {
        rd->p++;
        if (++rd->depth > DEPTH_MAX)
            return bad(rd, "variables are nested too deep");
        r = put_braced(rd, out);
        rd->depth--;
        return r;
    }
    r = take_name(rd, name);
    if (r < 0)
        return r;
    if (!*name)
        return put(rd, out, "$", 1);
    const char *value = value_of(rd, name);
    return value ? put_plain(rd, out, value, strlen(value)) : 0;
}

/* ---- quotes ---- */

static int put_single(struct reader *rd, struct buf *out)
{
    const char *end = strchr(rd->p + 1, '\'');
    if (!end)
        return bad(rd, "a single quote is not closed");
    int r = put(rd, out, rd->p + 1, (size_t)(end - rd->p - 1));
    rd->p = end + 1;
    return r;
}

static int put_double(struct reader *rd, struct buf *out)
{
    bool split = rd->split;
    int r = 0;
    rd->split = false;
    for (rd->p++; *rd->p && *rd->p != '"' && r >= 0;) {
        if (*rd->p == '$') {
            r = put_dollar(rd, out);
            continue;
        }
        bool hides = rd->p[1] == '"' || rd->p[1] == '$' || rd->p[1] == rd->x->escape;
        if (*rd->p == rd->x->escape && hides)
            rd->p++;
        r = put(rd, out, rd->p++, 1);
    }
    rd->split = split;
    if (r < 0)
        return r;
    if (!*rd->p)
        return bad(rd, "a double quote is not closed");
    rd->p++;
    return 0;
}

static int put_escaped(struct reader *rd, struct buf *out, bool keep)
{
    /* In a heredoc, as in a shell's, it is a character like others unless it hides a meaning. */
    if (rd->x->keep_quotes && rd->p[1] != '$' && rd->p[1] != rd->x->escape)
        return put(rd, out, rd->p++, 1);
    int r = keep ? put(rd, out, rd->p, 1) : 0;
    rd->p++;
    if (r >= 0 && *rd->p)
        r = put(rd, out, rd->p++, 1);
    return r;
}

/* Up to the stop character, which is taken, or with 0 to the end. */
static int until(struct reader *rd, char stop, bool keep_escapes, struct buf *out)
{
    bool quotes = !rd->x->keep_quotes;
    while (*rd->p && (!stop || *rd->p != stop)) {
        int r;
        if (*rd->p == '$')
            r = put_dollar(rd, out);
        else if (*rd->p == '\'' && quotes)
            r = put_single(rd, out);
        else if (*rd->p == '"' && quotes)
            r = put_double(rd, out);
        else if (*rd->p == rd->x->escape)
            r = put_escaped(rd, out, keep_escapes);
        else
            r = put_plain(rd, out, rd->p++, 1);
        if (r < 0)
            return r;
    }
    if (!stop)
        return 0;
    if (!*rd->p)
        return bad(rd, "'${' without '}'");
    rd->p++;
    return 0;
}

static int run(const struct expand *x, const char *word, bool split, struct buf *out,
               struct err *err)
{
    struct reader rd = { .x = x, .p = word, .split = split, .err = err };
    buf_clear(out);
    int r = until(&rd, '\0', false, out);
    if (r >= 0 && !out->data)
        r = buf_puts(out, "");
    return r;
}

int expand_word(const struct expand *x, const char *word, struct buf *out, struct err *err)
{
    return run(x, word, false, out, err);
}

int expand_list(const struct expand *x, const char *word, struct buf *out, struct err *err)
{
    return run(x, word, true, out, err);
}

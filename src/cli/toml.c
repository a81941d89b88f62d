#include "cli/toml.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hex.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define STRING_MAX (64 * 1024)
#define NUMBER_MAX 40 /* a float with an exponent, and more underscores than it needs */

struct reader {
    const char *at, *end;
    unsigned line;
    json_t *table, *lines; /* the present table, and where its values stand */
    struct err *err;
};

static int refuse(struct reader *r, const char *fmt, ...) _printf_(2, 3);

static int refuse(struct reader *r, const char *fmt, ...)
{
    char text[ERR_MSG_MAX - 32];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_set(r->err, EINVAL, "line %u: %s", r->line, text);
}

/* ---- letters ---- */

static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static bool is_next(const struct reader *r, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
}

/* A letter, a digit, or one of those. */
static bool is_of(char c, const char *more)
{
    return isalnum((unsigned char)c) || (c && strchr(more, c));
}

static void skip_blanks(struct reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        r->at++;
}

static int skip_comment(struct reader *r)
{
    if (peek(r) != '#')
        return 0;
    for (int c; (c = peek(r)) >= 0 && c != '\n'; r->at++)
        if ((c < ' ' && c != '\t' && !is_next(r, "\r\n")) || c == 0x7f)
            return refuse(r, "a comment may not hold control characters");
    return 0;
}

/* A line's end, or the file's: 1 and it is behind us, 0: something else stands here. */
static int take_end(struct reader *r)
{
    if (is_next(r, "\r\n"))
        r->at++;
    if (peek(r) == '\n') {
        r->at++;
        r->line++;
        return 1;
    }
    return peek(r) < 0;
}

static int need_end(struct reader *r)
{
    skip_blanks(r);
    int k = skip_comment(r);
    if (k < 0)
        return k;
    return take_end(r) ? 0 : refuse(r, "there is more on this line than one value");
}

/* ---- strings ---- */

static void put_utf8(struct buf *out, unsigned long c)
{
    char p[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n; i-- > 1; c >>= 6)
        p[i] = (char)(0x80 | (c & 0x3f));
    p[0] = (char)(first[n] | c);
    xputn(out, p, n);
}

static int take_unicode(struct reader *r, int digits, struct buf *out)
{
    unsigned long c = 0;
    for (int i = 0; i < digits; i++, r->at++) {
        int d = peek(r);
        if (d < 0 || !isxdigit(d))
            return refuse(r, "\\%c takes %d hexadecimal digits", digits == 4 ? 'u' : 'U', digits);
        c = c * 16 + (unsigned long)hex_digit(d);
    }
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return refuse(r, "there is no character of this number");
    put_utf8(out, c);
    return 0;
}

static int take_escape(struct reader *r, struct buf *out)
{
    static const char names[] = "btnfr\"\\", means[] = "\b\t\n\f\r\"\\";
    int c = peek(r);
    const char *known = c > 0 ? strchr(names, c) : NULL;
    if (c < 0 || (!known && c != 'u' && c != 'U'))
        return refuse(r, "a string knows the escapes \\b \\t \\n \\f \\r \\\" \\\\ \\u \\U; a "
                         "string in single quotes knows none");
    r->at++;
    if (!known)
        return take_unicode(r, c == 'u' ? 4 : 8, out);
    xputn(out, &means[known - names], 1);
    return 0;
}

static int take_string(struct reader *r, struct buf *out)
{
    const char quote = *r->at;
    if (is_next(r, "\"\"\"") || is_next(r, "'''"))
        return refuse(r, "a string stands on one line");
    for (r->at++; peek(r) != quote;) {
        int c = peek(r);
        if (c < 0 || c == '\n' || c == '\r')
            return refuse(r, "the string does not end on its line");
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return refuse(r, "a string may not hold control characters");
        if (out->len == STRING_MAX)
            return refuse(r, "a string has at most %d bytes", STRING_MAX);
        r->at++;
        if (c == '\\' && quote == '"') {
            int k = take_escape(r, out);
            if (k < 0)
                return k;
        } else {
            xputn(out, r->at - 1, 1);
        }
    }
    r->at++;
    return 0;
}

/* ---- values ---- */

static int take_word(struct reader *r, char word[NUMBER_MAX])
{
    size_t n = 0;
    while (r->at + n < r->end && is_of(r->at[n], "+-._:"))
        n++;
    if (n == 0)
        return refuse(r, "a value is missing");
    if (n >= NUMBER_MAX)
        return refuse(r, "'%.*s...' is no value; text stands in quotes", 20, r->at);
    memcpy(word, r->at, n);
    word[n] = '\0';
    r->at += n;
    return 0;
}

/* 1_000 is 1000: an underscore stands between digits. */
static bool drop_underscores(char *word)
{
    char *out = word;
    for (const char *p = word; *p; p++) {
        if (*p != '_')
            *out++ = *p;
        else if (p == word || !isdigit((unsigned char)p[-1]) || !isdigit((unsigned char)p[1]))
            return false;
    }
    *out = '\0';
    return true;
}

static int take_number(struct reader *r, char *word, json_t **ret_v)
{
    char shown[NUMBER_MAX], *end = NULL;
    (void)snprintf(shown, sizeof(shown), "%s", word);
    const char *digits = word + (*word == '+' || *word == '-');
    bool plain = drop_underscores(word) && isdigit((unsigned char)*digits) &&
                 !(digits[0] == '0' && isdigit((unsigned char)digits[1]));
    errno = 0;
    if (plain && digits[strspn(digits, "0123456789")] == '\0') {
        long long v = strtoll(word, NULL, 10);
        if (errno == ERANGE)
            return refuse(r, "%s is too large a number", shown);
        *ret_v = json_integer(v);
        return 0;
    }
    if (plain && digits[strspn(digits, "0123456789.eE+-")] == '\0') {
        double v = strtod(word, &end);
        if (*end == '\0' && errno == 0 && isdigit((unsigned char)end[-1])) {
            *ret_v = json_real(v);
            return 0;
        }
    }
    return refuse(r,
                  "'%s' is no value: text stands in quotes, and of TOML's other values only "
                  "decimal numbers, true and false are read here",
                  shown);
}

static int take_scalar(struct reader *r, json_t **ret_v)
{
    char word[NUMBER_MAX];
    if (peek(r) == '"' || peek(r) == '\'') {
        _cleanup_(buf_done) struct buf text = BUF_INIT(STRING_MAX + 8);
        int k = take_string(r, &text);
        if (k < 0)
            return k;
        *ret_v = json_stringn(text.data ? text.data : "", text.len);
        return *ret_v ? 0 : refuse(r, "the text is not UTF-8");
    }
    if (peek(r) == '{')
        return refuse(r,
                      "a table in braces is not read here; give it lines of its own below [NAME]");
    int k = take_word(r, word);
    if (k < 0)
        return k;
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
        *ret_v = json_boolean(word[0] == 't');
        return 0;
    }
    return take_number(r, word, ret_v);
}

static int skip_in_array(struct reader *r)
{
    for (;;) {
        skip_blanks(r);
        int k = skip_comment(r);
        if (k < 0)
            return k;
        if (peek(r) < 0)
            return refuse(r, "the array does not end; a ] is missing");
        if (!take_end(r))
            return 0;
    }
}

static int take_array(struct reader *r, json_t **ret_v)
{
    _cleanup_(json_decrefp) json_t *list = json_array();
    for (r->at++;; r->at++) {
        json_t *v = NULL;
        int k = skip_in_array(r);
        if (k == 0 && peek(r) == ']')
            break;
        if (k == 0)
            k = peek(r) == '[' ? refuse(r, "an array in an array is not read here")
                               : take_scalar(r, &v);
        if (k < 0)
            return k;
        (void)json_array_append_new(list, v);
        k = skip_in_array(r);
        if (k < 0)
            return k;
        if (peek(r) == ']')
            break;
        if (peek(r) != ',')
            return refuse(r, "a comma is missing between two values of the array");
    }
    r->at++;
    *ret_v = take_ptr(list);
    return 0;
}

/* ---- lines ---- */

static int take_key(struct reader *r, struct buf *out)
{
    if (peek(r) == '"' || peek(r) == '\'') {
        int k = take_string(r, out);
        if (k < 0)
            return k;
    } else {
        size_t n = 0;
        while (r->at + n < r->end && is_of(r->at[n], "_-"))
            n++;
        if (n == 0 || n > STRING_MAX)
            return refuse(r, "a line is `key = value`, [table] or # a comment");
        xputn(out, r->at, n);
        r->at += n;
    }
    skip_blanks(r);
    if (peek(r) == '.')
        return refuse(r, "a key with dots is not read here; write [TABLE] above it");
    if (out->len == 0 || memchr(out->data, '\0', out->len))
        return refuse(r, "a key may not be empty");
    xputn(out, "", 1);
    return 0;
}

static int put(struct reader *r, json_t *table, json_t *lines, const char *key, json_t *v,
               json_t *line)
{
    bool twice = json_object_get(table, key) != NULL;
    if (twice || json_object_set_new(table, key, v) < 0) {
        if (twice)
            json_decref(v);
        json_decref(line);
        return twice ? refuse(r, "'%s' is there a second time", key)
                     : refuse(r, "the key is not UTF-8");
    }
    (void)json_object_set_new(lines, key, line);
    return 0;
}

static int take_table(struct reader *r, json_t *root, json_t *all_lines)
{
    _cleanup_(buf_done) struct buf key = BUF_INIT(STRING_MAX + 8);
    if (is_next(r, "[["))
        return refuse(r, "an array of tables is not read here");
    r->at++;
    skip_blanks(r);
    int k = take_key(r, &key);
    if (k < 0)
        return k;
    if (peek(r) != ']')
        return refuse(r, "a ] is missing behind the table's name");
    r->at++;
    json_t *table = json_object(), *lines = json_pack("{s:i}", "", (int)r->line);
    k = put(r, root, all_lines, key.data, table, lines);
    if (k < 0)
        return k;
    r->table = table;
    r->lines = lines;
    return need_end(r);
}

static int take_pair(struct reader *r)
{
    _cleanup_(buf_done) struct buf key = BUF_INIT(STRING_MAX + 8);
    json_t *v = NULL;
    int k = take_key(r, &key);
    if (k < 0)
        return k;
    if (peek(r) != '=')
        return refuse(r, "an = is missing behind '%s'", key.data);
    r->at++;
    skip_blanks(r);
    json_t *line = json_integer(r->line);
    k = peek(r) == '[' ? take_array(r, &v) : take_scalar(r, &v);
    if (k < 0) {
        json_decref(line);
        return k;
    }
    k = put(r, r->table, r->lines, key.data, v, line);
    return k < 0 ? k : need_end(r);
}

int toml_parse(const char *p, size_t n, json_t **ret_root, json_t **ret_lines, struct err *err)
{
    _cleanup_(json_decrefp) json_t *root = json_object();
    _cleanup_(json_decrefp) json_t *lines = json_object();
    struct reader r = {
        .at = p, .end = p + n, .line = 1, .table = root, .lines = lines, .err = err
    };
    while (r.at < r.end) {
        skip_blanks(&r);
        int k = 0;
        if (peek(&r) == '[')
            k = take_table(&r, root, lines);
        else if (peek(&r) == '#' || peek(&r) == '\n' || peek(&r) == '\r' || peek(&r) < 0)
            k = need_end(&r);
        else
            k = take_pair(&r);
        if (k < 0)
            return k;
    }
    *ret_root = take_ptr(root);
    *ret_lines = take_ptr(lines);
    return 0;
}

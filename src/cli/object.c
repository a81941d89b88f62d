#include "cli/object.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "cli/units.h"
#include "cli/xmem.h"

#define PATH_LIMIT (4u << 20) /* the kernel's own limit on a command line is lower */
#define WORDS_LIMIT PATH_LIMIT

const char *member_text(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s ? s : "";
}

int64_t member_int(const json_t *o, const char *name)
{
    const json_t *v = json_object_get(o, name);
    return json_is_integer(v) ? json_integer_value(v) : (int64_t)json_number_value(v);
}

double member_real(const json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

bool member_true(const json_t *o, const char *name)
{
    return json_is_true(json_object_get(o, name));
}

int64_t member_moment(const json_t *o, const char *name)
{
    int64_t ms;
    return moment_parse(member_text(o, name), &ms) < 0 ? 0 : ms;
}

const json_t *member_list(const json_t *o, const char *name)
{
    const json_t *v = json_object_get(o, name);
    return json_is_array(v) ? v : NULL;
}

char *member_words(const json_t *o, const char *name, const char *between)
{
    struct buf b = BUF_INIT(WORDS_LIMIT);
    const json_t *v;
    size_t i;
    json_array_foreach(member_list(o, name), i, v) {
        (void)buf_printf(&b, "%s%s", i ? between : "",
                         json_is_string(v) ? json_string_value(v) : "?");
    }
    char *words = buf_steal(&b);
    return words ? words : xstrdup("");
}

int object_text(json_t *o, const char *name, const char *value, struct err *err)
{
    if (json_object_set_new(o, name, json_string(value)) < 0)
        return err_set(err, EILSEQ, "the %s given is not valid UTF-8", name);
    return 0;
}

int list_text(json_t *list, const char *value, struct err *err)
{
    if (json_array_append_new(list, json_string(value)) < 0)
        return err_set(err, EILSEQ, "an argument is not valid UTF-8");
    return 0;
}

int object_pairs(json_t *o, const char *name, const char *const *pairs, size_t n, struct err *err)
{
    json_t *map = json_object_get(o, name);
    if (n == 0)
        return 0;
    if (!map) {
        map = json_object();
        (void)json_object_set_new(o, name, map);
    }
    for (size_t i = 0; i < n; i++) {
        const char *eq = strchr(pairs[i], '=');
        _cleanup_free_ char *key = xstrndup(pairs[i], (size_t)(eq - pairs[i]));
        if (json_object_set_new(map, key, json_string(eq + 1)) < 0)
            return err_set(err, EILSEQ, "the %s '%s' is not valid UTF-8", name, key);
    }
    return 0;
}

static void put_encoded(struct buf *b, const char *s)
{
    /* A segment of dots alone would be taken for a step in the tree. */
    bool dots = strspn(s, ".") == strlen(s);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        char hex[4];
        if (isalnum(c) || strchr("-_~", c) || (c == '.' && !dots)) {
            xputn(b, s, 1);
        } else {
            (void)snprintf(hex, sizeof(hex), "%%%02X", c);
            xputs(b, hex);
        }
    }
}

char *api_path(const char *first, ...)
{
    struct buf b = BUF_INIT(PATH_LIMIT);
    va_list ap;
    xputs(&b, "/v1");
    va_start(ap, first);
    for (const char *s = first; s; s = va_arg(ap, const char *)) {
        xputs(&b, "/");
        put_encoded(&b, s);
    }
    va_end(ap);
    return buf_steal(&b);
}

char *api_below(const char *path, const char *segment)
{
    struct buf b = BUF_INIT(PATH_LIMIT);
    xputs(&b, path);
    xputs(&b, "/");
    put_encoded(&b, segment);
    return buf_steal(&b);
}

char *api_query(char *path, const char *name, const char *value)
{
    struct buf b = BUF_INIT(PATH_LIMIT);
    xputs(&b, path);
    xputs(&b, strchr(path, '?') ? "&" : "?");
    put_encoded(&b, name);
    xputs(&b, "=");
    put_encoded(&b, value);
    free(path);
    return buf_steal(&b);
}

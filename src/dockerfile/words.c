#include "dockerfile/words.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

bool words_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int add(struct arena *arena, struct words *w, const char *p, size_t n)
{
    if (w->n == DOCKERFILE_WORDS_MAX)
        return -E2BIG;
    w->items = arena_grow(arena, w->items, w->n, sizeof(*w->items));
    char *copy = arena_strndup(arena, p, n);
    if (!w->items || !copy)
        return -ENOMEM;
    w->items[w->n++] = copy;
    return 0;
}

/* The end of the word that begins at p. */
static const char *word_end(const char *p, char escape)
{
    char quote = '\0';
    for (; *p && (quote || !words_space(*p)); p++) {
        if (*p == escape && quote != '\'') {
            if (!*++p)
                break;
        } else if (quote) {
            quote = *p == quote ? '\0' : quote;
        } else if (*p == '\'' || *p == '"') {
            quote = *p;
        }
    }
    return p;
}

static int cut(struct arena *arena, const char *text, char escape, bool quotes,
               struct words *ret_words)
{
    struct words w = { NULL, 0 };
    for (const char *p = text; *p;) {
        if (words_space(*p)) {
            p++;
            continue;
        }
        const char *end = p;
        if (quotes)
            end = word_end(p, escape);
        else
            while (*end && !words_space(*end))
                end++;
        int r = add(arena, &w, p, (size_t)(end - p));
        if (r < 0)
            return r;
        p = end;
    }
    *ret_words = w;
    return 0;
}

int words_plain(struct arena *arena, const char *text, struct words *ret_words)
{
    return cut(arena, text, '\0', false, ret_words);
}

int words_quoted(struct arena *arena, const char *text, char escape, struct words *ret_words)
{
    return cut(arena, text, escape, true, ret_words);
}

int words_json(struct arena *arena, const char *text, struct words *ret_words)
{
    struct words w = { NULL, 0 };
    json_t *list, *item;
    size_t i;
    int r = 1;
    while (words_space(*text))
        text++;
    if (*text != '[')
        return 0;
    list = json_loads(text, JSON_ALLOW_NUL, NULL);
    if (!list)
        return 0;
    json_array_foreach(list, i, item) {
        const char *s = json_string_value(item);
        if (!s || strlen(s) != json_string_length(item))
            r = -EINVAL;
        else if (add(arena, &w, s, strlen(s)) < 0)
            r = -ENOMEM;
        if (r < 0)
            break;
    }
    json_decref(list);
    if (r > 0)
        *ret_words = w;
    return r;
}

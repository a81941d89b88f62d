#include <errno.h>
#include <string.h>
#include <strings.h>

#include "dockerfile/parse.h"
#include "dockerfile/words.h"

static int cut_failed(struct parse *ps, const struct dockerfile_step *step, int r)
{
    if (r == -E2BIG)
        return parse_bad(ps, step->line, "over %d words", DOCKERFILE_WORDS_MAX);
    if (r == -EINVAL)
        return parse_bad(ps, step->line, "an array here may hold only strings");
    return parse_no_memory(ps);
}

static void take_words(struct dockerfile_step *step, const struct words *w)
{
    step->words = w->items;
    step->n_words = w->n;
}

static int one_word(struct parse *ps, struct dockerfile_step *step, const char *text)
{
    step->words = arena_alloc(&ps->file->arena, sizeof(*step->words));
    if (!step->words)
        return parse_no_memory(ps);
    step->words[0] = text;
    step->n_words = 1;
    return 0;
}

/* An argv in JSON, or text for the shell. What only looks like JSON is the shell's, as docker has
 * it: `[ -f x ] && y` is a command. */
int shape_command(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    struct words w;
    int r = words_json(&ps->file->arena, args, &w);
    if (r < 0)
        return cut_failed(ps, step, r);
    if (r == 0)
        return one_word(ps, step, args);
    step->json = true;
    take_words(step, &w);
    return 0;
}

int shape_json(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    int r = shape_command(ps, step, args);
    if (r < 0)
        return r;
    if (!step->json || step->n_words == 0)
        return parse_bad(ps, step->line,
                         "SHELL must be an array of strings: [\"/bin/sh\", \"-c\"]");
    return 0;
}

/* The shell takes the lines of the heredocs itself, behind the command. */
static int with_heredocs(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(DOCKERFILE_MAX * 2);
    int r = buf_printf(&text, "%s\n", args);
    for (size_t i = 0; i < step->n_heredocs && r >= 0; i++) {
        r = buf_append(&text, step->heredocs[i].text, step->heredocs[i].len);
        if (r >= 0)
            r = buf_printf(&text, "%s\n", step->heredocs[i].name);
    }
    char *copy = r < 0 ? NULL : arena_strndup(&ps->file->arena, text.data, text.len);
    return copy ? one_word(ps, step, copy) : parse_no_memory(ps);
}

int shape_run(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    if (step->n_heredocs == 0) {
        int r = shape_command(ps, step, args);
        if (r >= 0 && step->n_words == 0)
            r = parse_bad(ps, step->line, "RUN needs a command");
        return r;
    }
    struct words w;
    int r = words_quoted(&ps->file->arena, args, ps->src.escape, &w);
    if (r < 0)
        return cut_failed(ps, step, r);
    if (w.n > 1 || strpbrk(args, ">|&;()"))
        return with_heredocs(ps, step, args);
    /* Nothing but the heredoc: it is the script. */
    step->script = strncmp(step->heredocs[0].text, "#!", 2) == 0;
    return one_word(ps, step, step->heredocs[0].text);
}

static int check_sources(struct parse *ps, const struct dockerfile_step *step)
{
    static const char *const elsewhere[] = { "http://", "https://", "ftp://", "git://", "git@" };
    for (size_t i = 0; step->kind == DOCKERFILE_ADD && i + 1 < step->n_words; i++)
        for (size_t k = 0; k < ARRAY_LEN(elsewhere); k++)
            if (strncasecmp(step->words[i], elsewhere[k], strlen(elsewhere[k])) == 0)
                return parse_bad(ps, step->line,
                                 "ADD takes files of the context only, not '%.100s'; fetch it "
                                 "first and add the file",
                                 step->words[i]);
    return 0;
}

/* Sources and the destination; those that announce a heredoc are kept as one. */
int shape_copy(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    struct arena *arena = &ps->file->arena;
    struct words w;
    int r = words_json(arena, args, &w);
    if (r < 0)
        return cut_failed(ps, step, r);
    step->json = r > 0;
    if (r == 0)
        r = words_plain(arena, args, &w);
    if (r < 0)
        return cut_failed(ps, step, r);
    size_t n = 0;
    for (size_t i = 0; i < w.n; i++) {
        struct source_mark m;
        r = step->n_heredocs == 0
                ? 0
                : source_mark(arena, w.items[i], strlen(w.items[i]), ps->src.escape, &m);
        if (r < 0)
            return parse_no_memory(ps);
        if (r == 0)
            w.items[n++] = w.items[i];
        else if (i + 1 == w.n)
            return parse_bad(ps, step->line, "the destination cannot be a heredoc");
    }
    w.n = n;
    if (w.n + step->n_heredocs < 2 || w.n < 1)
        return parse_bad(ps, step->line, "%s needs a source and a destination",
                         dockerfile_kind_name(step->kind));
    take_words(step, &w);
    if (step->from && step->n_heredocs)
        return parse_bad(ps, step->line, "--from and a heredoc exclude each other");
    return check_sources(ps, step);
}

static int add_pair(struct parse *ps, struct dockerfile_step *step, const char *name, size_t n,
                    const char *value)
{
    struct dockerfile_pair *pairs =
        arena_grow(&ps->file->arena, step->pairs, step->n_pairs, sizeof(*pairs));
    char *copy = arena_strndup(&ps->file->arena, name, n);
    if (!pairs || !copy)
        return parse_no_memory(ps);
    if (n == 0)
        return parse_bad(ps, step->line, "a name is empty");
    step->pairs = pairs;
    pairs[step->n_pairs++] = (struct dockerfile_pair){ copy, value };
    return 0;
}

/* "NAME value with spaces", the old form. */
static int old_pair(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    const char *end = args;
    while (*end && !words_space(*end))
        end++;
    const char *value = end;
    while (words_space(*value))
        value++;
    if (!*value)
        return parse_bad(ps, step->line, "%s needs a name and a value: NAME=value",
                         dockerfile_kind_name(step->kind));
    return add_pair(ps, step, args, (size_t)(end - args), value);
}

int shape_pairs(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    struct words w;
    int r = words_quoted(&ps->file->arena, args, ps->src.escape, &w);
    if (r < 0)
        return cut_failed(ps, step, r);
    if (w.n && !strchr(w.items[0], '='))
        return old_pair(ps, step, args);
    for (size_t i = 0; i < w.n && r >= 0; i++) {
        const char *equals = strchr(w.items[i], '=');
        if (!equals)
            return parse_bad(ps, step->line, "'%.100s' is not NAME=value", w.items[i]);
        r = add_pair(ps, step, w.items[i], (size_t)(equals - w.items[i]), equals + 1);
    }
    return r;
}

int shape_args(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    struct words w;
    int r = words_quoted(&ps->file->arena, args, ps->src.escape, &w);
    if (r < 0)
        return cut_failed(ps, step, r);
    for (size_t i = 0; i < w.n && r >= 0; i++) {
        const char *end = strchrnul(w.items[i], '=');
        r = add_pair(ps, step, w.items[i], (size_t)(end - w.items[i]), *end ? end + 1 : NULL);
    }
    return r;
}

int shape_text(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    return one_word(ps, step, args);
}

int shape_list(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    struct arena *arena = &ps->file->arena;
    struct words w;
    int r = step->kind == DOCKERFILE_VOLUME ? words_json(arena, args, &w) : 0;
    if (r == 0)
        r = words_plain(arena, args, &w);
    if (r < 0)
        return cut_failed(ps, step, r);
    if (w.n == 0)
        return parse_bad(ps, step->line, "%s needs something to work on",
                         dockerfile_kind_name(step->kind));
    take_words(step, &w);
    return 0;
}

int shape_health(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    size_t n = 0;
    while (args[n] && !words_space(args[n]))
        n++;
    const char *rest = args + n;
    while (words_space(*rest))
        rest++;
    if (n == 4 && strncasecmp(args, "NONE", n) == 0) {
        step->health.none = true;
        return *rest ? parse_bad(ps, step->line, "HEALTHCHECK NONE takes nothing more") : 0;
    }
    if (n != 3 || strncasecmp(args, "CMD", n) != 0 || !*rest)
        return parse_bad(ps, step->line, "HEALTHCHECK is followed by NONE or by CMD and a command");
    int r = shape_command(ps, step, rest);
    if (r >= 0 && step->n_words == 0)
        r = parse_bad(ps, step->line, "HEALTHCHECK CMD needs a command");
    return r;
}

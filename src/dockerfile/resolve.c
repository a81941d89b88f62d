#include "dockerfile/resolve.h"

#include <errno.h>
#include <string.h>

#define TEXT_MAX (1024 * 1024) /* of one expanded word */

struct resolver {
    const struct expand *x;
    struct arena *arena;
    struct buf text; /* of the word at hand */
    struct err *err;
};

static int no_memory(struct resolver *rs)
{
    return err_set(rs->err, ENOMEM, "cannot keep what it expands to");
}

static int one(struct resolver *rs, const char *word, const char **ret_text)
{
    int r = expand_word(rs->x, word, &rs->text, rs->err);
    if (r < 0)
        return r;
    *ret_text = arena_strndup(rs->arena, rs->text.data, rs->text.len);
    return *ret_text ? 0 : no_memory(rs);
}

static int flag(struct resolver *rs, const char **value)
{
    return *value ? one(rs, *value, value) : 0;
}

static int words(struct resolver *rs, const struct dockerfile_step *from,
                 struct dockerfile_step *to)
{
    to->words = arena_alloc(rs->arena, (from->n_words + 1) * sizeof(*to->words));
    if (!to->words)
        return no_memory(rs);
    for (size_t i = 0; i < from->n_words; i++) {
        int r = one(rs, from->words[i], &to->words[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Each may become several, or none. */
static int lists(struct resolver *rs, const struct dockerfile_step *from,
                 struct dockerfile_step *to)
{
    to->words = NULL;
    to->n_words = 0;
    for (size_t i = 0; i < from->n_words; i++) {
        int r = expand_list(rs->x, from->words[i], &rs->text, rs->err);
        if (r < 0)
            return r;
        for (size_t at = 0; at < rs->text.len;) {
            const char *word = rs->text.data + at;
            size_t n = strnlen(word, rs->text.len - at);
            at += n + 1;
            if (n == 0)
                continue;
            if (to->n_words == DOCKERFILE_WORDS_MAX)
                return err_fail(rs->err, FAIL_INVALID_DOCKERFILE, "it has too many words");
            to->words = arena_grow(rs->arena, to->words, to->n_words, sizeof(*to->words));
            const char *copy = arena_strndup(rs->arena, word, n);
            if (!to->words || !copy)
                return no_memory(rs);
            to->words[to->n_words++] = copy;
        }
    }
    return 0;
}

static int pairs(struct resolver *rs, const struct dockerfile_step *from,
                 struct dockerfile_step *to)
{
    to->pairs = arena_alloc(rs->arena, (from->n_pairs + 1) * sizeof(*to->pairs));
    if (!to->pairs)
        return no_memory(rs);
    for (size_t i = 0; i < from->n_pairs; i++) {
        to->pairs[i].value = from->pairs[i].value;
        int r = one(rs, from->pairs[i].name, &to->pairs[i].name);
        if (r >= 0)
            r = flag(rs, &to->pairs[i].value);
        if (r < 0)
            return r;
        if (!*to->pairs[i].name)
            return err_fail(rs->err, FAIL_INVALID_DOCKERFILE, "a name is empty");
    }
    return 0;
}

static int heredocs(struct resolver *rs, const struct dockerfile_step *from,
                    struct dockerfile_step *to)
{
    struct expand raw = *rs->x;
    raw.escape = '\\';
    raw.keep_quotes = true;
    if (from->n_heredocs == 0)
        return 0;
    to->heredocs = arena_alloc(rs->arena, from->n_heredocs * sizeof(*to->heredocs));
    if (!to->heredocs)
        return no_memory(rs);
    for (size_t i = 0; i < from->n_heredocs; i++) {
        struct dockerfile_heredoc *doc = &to->heredocs[i];
        *doc = from->heredocs[i];
        if (!doc->expand)
            continue;
        int r = expand_word(&raw, doc->text, &rs->text, rs->err);
        if (r < 0)
            return r;
        doc->len = rs->text.len;
        doc->text = arena_strndup(rs->arena, rs->text.data, rs->text.len);
        if (!doc->text)
            return no_memory(rs);
    }
    return 0;
}

static int copy_step(struct resolver *rs, const struct dockerfile_step *from,
                     struct dockerfile_step *to)
{
    int r = words(rs, from, to);
    if (r >= 0)
        r = heredocs(rs, from, to);
    if (r >= 0)
        r = flag(rs, &to->chown);
    if (r >= 0)
        r = flag(rs, &to->chmod);
    return r;
}

static int by_kind(struct resolver *rs, const struct dockerfile_step *from,
                   struct dockerfile_step *to)
{
    int r;
    switch (from->kind) {
    case DOCKERFILE_FROM: r = words(rs, from, to); return r < 0 ? r : flag(rs, &to->platform);
    case DOCKERFILE_COPY:
    case DOCKERFILE_ADD: return copy_step(rs, from, to);
    case DOCKERFILE_ENV:
    case DOCKERFILE_ARG:
    case DOCKERFILE_LABEL: return pairs(rs, from, to);
    case DOCKERFILE_EXPOSE: return lists(rs, from, to);
    case DOCKERFILE_WORKDIR: r = words(rs, from, to); return r < 0 ? r : flag(rs, &to->chown);
    case DOCKERFILE_USER:
    case DOCKERFILE_STOPSIGNAL:
    case DOCKERFILE_VOLUME: return words(rs, from, to);
    case DOCKERFILE_RUN: /* the rest is the shell's to expand */
    case DOCKERFILE_CMD:
    case DOCKERFILE_ENTRYPOINT:
    case DOCKERFILE_SHELL:
    case DOCKERFILE_HEALTHCHECK:
    case DOCKERFILE_MAINTAINER: return 0;
    }
    return 0;
}

int resolve_step(const struct expand *x, const struct dockerfile_step *step, struct arena *arena,
                 struct dockerfile_step *ret_step, struct err *err)
{
    struct resolver rs = { .x = x, .arena = arena, .text = BUF_INIT(TEXT_MAX), .err = err };
    struct dockerfile_step to = *step;
    int r = by_kind(&rs, step, &to);
    buf_done(&rs.text);
    if (r < 0)
        return err_wrap(err, r, "line %u", step->line);
    *ret_step = to;
    return 0;
}

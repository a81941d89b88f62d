#include "dockerfile/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "dockerfile/duration.h"
#include "dockerfile/words.h"

int parse_bad(struct parse *ps, unsigned line, const char *fmt, ...)
{
    char text[ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_fail(ps->err, FAIL_INVALID_DOCKERFILE, "line %u: %s", line, text);
}

int parse_no_memory(struct parse *ps)
{
    /* The arena's limit is met long before the machine's. */
    return err_fail(ps->err, FAIL_INVALID_DOCKERFILE, "the Dockerfile is too large");
}

int parse_warn(struct parse *ps, unsigned line, const char *text)
{
    struct dockerfile *f = ps->file;
    struct dockerfile_warning *all =
        arena_grow(&f->arena, f->warnings, f->n_warnings, sizeof(*all));
    if (!all)
        return parse_no_memory(ps);
    f->warnings = all;
    all[f->n_warnings++] = (struct dockerfile_warning){ line, text };
    return 0;
}

/* ---- FROM ---- */

static bool stage_name_valid(const char *name)
{
    if (!islower((unsigned char)*name))
        return false;
    for (const char *p = name; *p; p++)
        if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && !strchr("-_.", *p))
            return false;
    return true;
}

static int from_name(struct parse *ps, unsigned line, const char *word, const char **ret_name)
{
    char *name = arena_strdup(&ps->file->arena, word);
    if (!name)
        return parse_no_memory(ps);
    for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    if (!stage_name_valid(name) || strcmp(name, "scratch") == 0 || strlen(name) > 128)
        return parse_bad(ps, line,
                         "'%.100s' cannot be a stage's name: a letter, then letters, digits, "
                         "'-', '_' and '.'",
                         word);
    for (size_t i = 0; i < ps->file->n_stages; i++)
        if (ps->file->stages[i].name && strcmp(ps->file->stages[i].name, name) == 0)
            return parse_bad(ps, line, "there is a stage '%s' already", name);
    *ret_name = name;
    return 0;
}

static int shape_from(struct parse *ps, struct dockerfile_step *step, const char *args)
{
    int r = shape_list(ps, step, args);
    if (r >= 0 && step->n_words != 1 &&
        !(step->n_words == 3 && strcasecmp(step->words[1], "AS") == 0))
        r = parse_bad(ps, step->line, "FROM is followed by an image and perhaps AS NAME");
    return r;
}

/* ---- the language ---- */

static const struct parse_rule rules[] = {
    { DOCKERFILE_FROM, "FROM", shape_from, false, "an image" },
    { DOCKERFILE_RUN, "RUN", shape_run, true, "a command" },
    { DOCKERFILE_COPY, "COPY", shape_copy, true, "a source and a destination" },
    { DOCKERFILE_ADD, "ADD", shape_copy, true, "a source and a destination" },
    { DOCKERFILE_ENV, "ENV", shape_pairs, false, "NAME=value" },
    { DOCKERFILE_ARG, "ARG", shape_args, false, "a name" },
    { DOCKERFILE_WORKDIR, "WORKDIR", shape_text, false, "a directory" },
    { DOCKERFILE_USER, "USER", shape_text, false, "a user" },
    { DOCKERFILE_EXPOSE, "EXPOSE", shape_list, false, "a port" },
    { DOCKERFILE_CMD, "CMD", shape_command, false, "a command" },
    { DOCKERFILE_ENTRYPOINT, "ENTRYPOINT", shape_command, false, "a command" },
    { DOCKERFILE_LABEL, "LABEL", shape_pairs, false, "NAME=value" },
    { DOCKERFILE_SHELL, "SHELL", shape_json, false, "an array of strings" },
    { DOCKERFILE_STOPSIGNAL, "STOPSIGNAL", shape_text, false, "a signal" },
    { DOCKERFILE_VOLUME, "VOLUME", shape_list, false, "a directory" },
    { DOCKERFILE_HEALTHCHECK, "HEALTHCHECK", shape_health, false, "NONE or CMD" },
    { DOCKERFILE_MAINTAINER, "MAINTAINER", shape_text, false, "a name" },
};

const char *dockerfile_kind_name(enum dockerfile_kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i].kind == kind)
            return rules[i].name;
    return "?";
}

static const struct parse_rule *rule_of(const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (strlen(rules[i].name) == n && strncasecmp(rules[i].name, name, n) == 0)
            return &rules[i];
    return NULL;
}

/* ---- flags ---- */

enum flag_type { FLAG_TEXT, FLAG_DURATION, FLAG_COUNT, FLAG_FOREIGN };

static const struct flag {
    enum dockerfile_kind kind;
    const char *name;
    enum flag_type type;
    size_t offset; /* in struct dockerfile_step */
} flags[] = {
#define STEP(member_) offsetof(struct dockerfile_step, member_)
    { DOCKERFILE_FROM, "platform", FLAG_TEXT, STEP(platform) },
    { DOCKERFILE_COPY, "from", FLAG_TEXT, STEP(from) },
    { DOCKERFILE_COPY, "chown", FLAG_TEXT, STEP(chown) },
    { DOCKERFILE_COPY, "chmod", FLAG_TEXT, STEP(chmod) },
    { DOCKERFILE_ADD, "chown", FLAG_TEXT, STEP(chown) },
    { DOCKERFILE_ADD, "chmod", FLAG_TEXT, STEP(chmod) },
    { DOCKERFILE_HEALTHCHECK, "interval", FLAG_DURATION, STEP(health.interval_ns) },
    { DOCKERFILE_HEALTHCHECK, "timeout", FLAG_DURATION, STEP(health.timeout_ns) },
    { DOCKERFILE_HEALTHCHECK, "start-period", FLAG_DURATION, STEP(health.start_period_ns) },
    { DOCKERFILE_HEALTHCHECK, "start-interval", FLAG_DURATION, STEP(health.start_interval_ns) },
    { DOCKERFILE_HEALTHCHECK, "retries", FLAG_COUNT, STEP(health.retries) },
    /* What only BuildKit can do. */
    { DOCKERFILE_RUN, "mount", FLAG_FOREIGN, 0 },
    { DOCKERFILE_RUN, "network", FLAG_FOREIGN, 0 },
    { DOCKERFILE_RUN, "security", FLAG_FOREIGN, 0 },
    { DOCKERFILE_RUN, "device", FLAG_FOREIGN, 0 },
    { DOCKERFILE_COPY, "link", FLAG_FOREIGN, 0 },
    { DOCKERFILE_COPY, "parents", FLAG_FOREIGN, 0 },
    { DOCKERFILE_COPY, "exclude", FLAG_FOREIGN, 0 },
    { DOCKERFILE_ADD, "link", FLAG_FOREIGN, 0 },
    { DOCKERFILE_ADD, "exclude", FLAG_FOREIGN, 0 },
    { DOCKERFILE_ADD, "checksum", FLAG_FOREIGN, 0 },
    { DOCKERFILE_ADD, "keep-git-dir", FLAG_FOREIGN, 0 },
    { DOCKERFILE_ADD, "unpack", FLAG_FOREIGN, 0 },
#undef STEP
};

static const struct flag *flag_of(enum dockerfile_kind kind, const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (flags[i].kind == kind && strlen(flags[i].name) == n &&
            strncmp(flags[i].name, name, n) == 0)
            return &flags[i];
    return NULL;
}

static int set_count(struct parse *ps, unsigned line, const char *value, int *ret_n)
{
    char *end;
    errno = 0;
    long n = strtol(value, &end, 10);
    if (errno || *end || end == value || n < 0 || n > 1000000)
        return parse_bad(ps, line, "'%.60s' is not a count", value);
    *ret_n = (int)n;
    return 0;
}

/* `word` is behind its two dashes. */
static int set_flag(struct parse *ps, struct dockerfile_step *step, const char *word)
{
    const char *end = strchrnul(word, '=');
    const struct flag *f = flag_of(step->kind, word, (size_t)(end - word));
    const char *kind = dockerfile_kind_name(step->kind);
    if (!f)
        return parse_bad(ps, step->line, "%s has no flag '--%.60s'", kind, word);
    if (f->type == FLAG_FOREIGN)
        return parse_bad(ps, step->line, "'%s --%s' is BuildKit's own and not supported here", kind,
                         f->name);
    if (!*end || !end[1])
        return parse_bad(ps, step->line, "the flag '--%s' needs a value: --%s=VALUE", f->name,
                         f->name);
    void *at = (char *)step + f->offset;
    switch (f->type) {
    case FLAG_TEXT:
        if (*(const char **)at)
            return parse_bad(ps, step->line, "the flag '--%s' is there twice", f->name);
        *(const char **)at = end + 1;
        return 0;
    case FLAG_DURATION:
        if (duration_parse(end + 1, at) < 0)
            return parse_bad(ps, step->line, "'%.60s' is not a duration such as 30s or 1m30s",
                             end + 1);
        return 0;
    case FLAG_COUNT: return set_count(ps, step->line, end + 1, at);
    case FLAG_FOREIGN: break;
    }
    return 0;
}

/* Takes the flags off the front of *args. */
static int take_flags(struct parse *ps, struct dockerfile_step *step, const char **args)
{
    const char *p = *args;
    while (strncmp(p, "--", 2) == 0) {
        size_t n = strcspn(p, " \t\v\f\r\n");
        if (n > 2) {
            char *word = arena_strndup(&ps->file->arena, p + 2, n - 2);
            int r = word ? set_flag(ps, step, word) : parse_no_memory(ps);
            if (r < 0)
                return r;
        }
        p += n;
        while (words_space(*p))
            p++;
        if (n == 2) /* "--" alone ends them */
            break;
    }
    *args = p;
    return 0;
}

/* ---- one instruction ---- */

static int unknown(struct parse *ps, unsigned line, const char *name, size_t n)
{
    if (n == strlen("ONBUILD") && strncasecmp(name, "ONBUILD", n) == 0)
        return parse_bad(ps, line,
                         "ONBUILD is not supported: put the steps into the Dockerfile "
                         "that needs them");
    return parse_bad(ps, line, "there is no instruction '%.*s'", (int)(n > 60 ? 60 : n), name);
}

int parse_step(struct parse *ps, const struct source_text *text, struct dockerfile_step *ret_step,
               const char **ret_stage_name)
{
    struct dockerfile_step step = { .line = text->line, .text = text->text };
    const char *args = text->text;
    while (*args && !words_space(*args))
        args++;
    size_t n = (size_t)(args - text->text);
    const struct parse_rule *rule = rule_of(text->text, n);
    if (!rule)
        return unknown(ps, text->line, text->text, n);
    step.kind = rule->kind;
    while (words_space(*args))
        args++;
    int r = take_flags(ps, &step, &args);
    if (r >= 0 && !*args)
        r = parse_bad(ps, text->line, "%s needs %s", rule->name, rule->usage);
    if (r >= 0 && rule->heredocs)
        r = source_heredocs(&ps->src, args, text->line, &step.heredocs, &step.n_heredocs, ps->err);
    if (r >= 0)
        r = rule->shape(ps, &step, args);
    if (r >= 0 && step.from && strchr(step.from, '$'))
        r = parse_bad(ps, text->line, "--from takes no variables");
    if (r >= 0 && step.kind == DOCKERFILE_FROM && step.n_words == 3)
        r = from_name(ps, text->line, step.words[2], ret_stage_name);
    if (r >= 0 && step.kind == DOCKERFILE_MAINTAINER)
        r = parse_warn(ps, text->line,
                       "MAINTAINER is old; LABEL org.opencontainers.image.authors "
                       "says it too");
    if (r >= 0 && text->empty_line)
        r = parse_warn(ps, text->line, "a continued line is followed by an empty one");
    if (r < 0)
        return r;
    if (step.kind == DOCKERFILE_FROM)
        step.n_words = 1;
    *ret_step = step;
    return 0;
}

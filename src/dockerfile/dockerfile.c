#include "dockerfile/dockerfile.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "dockerfile/parse.h"

struct reading {
    struct parse ps;
    size_t steps; /* of the whole file */
};

static int add_head(struct reading *rd, const struct dockerfile_step *step)
{
    struct dockerfile *f = rd->ps.file;
    if (step->kind != DOCKERFILE_ARG)
        return parse_bad(&rd->ps, step->line, "%s before the first FROM; only ARG may stand there",
                         dockerfile_kind_name(step->kind));
    struct dockerfile_step *args = arena_grow(&f->arena, f->args, f->n_args, sizeof(*args));
    if (!args)
        return parse_no_memory(&rd->ps);
    f->args = args;
    args[f->n_args++] = *step;
    return 0;
}

static int add_stage(struct reading *rd, const struct dockerfile_step *from, const char *name)
{
    struct dockerfile *f = rd->ps.file;
    if (f->n_stages == DOCKERFILE_STAGES_MAX)
        return parse_bad(&rd->ps, from->line, "over %d stages", DOCKERFILE_STAGES_MAX);
    struct dockerfile_stage *stages =
        arena_grow(&f->arena, f->stages, f->n_stages, sizeof(*stages));
    struct dockerfile_step *copy = arena_alloc(&f->arena, sizeof(*copy));
    if (!stages || !copy)
        return parse_no_memory(&rd->ps);
    *copy = *from;
    f->stages = stages;
    stages[f->n_stages++] = (struct dockerfile_stage){ .name = name, .from = copy };
    return 0;
}

static int add_step(struct reading *rd, const struct dockerfile_step *step)
{
    struct dockerfile *f = rd->ps.file;
    struct dockerfile_stage *stage = &f->stages[f->n_stages - 1];
    struct dockerfile_step *steps =
        arena_grow(&f->arena, stage->steps, stage->n_steps, sizeof(*steps));
    if (!steps)
        return parse_no_memory(&rd->ps);
    stage->steps = steps;
    steps[stage->n_steps++] = *step;
    return 0;
}

static int read_step(struct reading *rd, const struct source_text *text)
{
    struct dockerfile_step step;
    const char *name = NULL;
    if (++rd->steps > DOCKERFILE_STEPS_MAX)
        return parse_bad(&rd->ps, text->line, "over %d instructions", DOCKERFILE_STEPS_MAX);
    int r = parse_step(&rd->ps, text, &step, &name);
    if (r < 0)
        return r;
    if (step.kind == DOCKERFILE_FROM)
        return add_stage(rd, &step, name);
    return rd->ps.file->n_stages ? add_step(rd, &step) : add_head(rd, &step);
}

static int read_all(struct reading *rd, const char *p, size_t n, unsigned *line)
{
    struct parse *ps = &rd->ps;
    int r = source_init(&ps->src, p, n, &ps->file->arena, line, ps->err);
    if (r < 0)
        return r;
    ps->file->escape = ps->src.escape;
    for (;;) {
        struct source_text text;
        *line = ps->src.line + 1;
        r = source_next(&ps->src, &text, ps->err);
        if (r <= 0)
            break;
        *line = text.line;
        r = read_step(rd, &text);
        if (r < 0)
            return r;
    }
    if (r == 0 && ps->file->n_stages == 0) {
        *line = 0;
        r = err_fail(ps->err, FAIL_INVALID_DOCKERFILE, "the Dockerfile has no FROM");
    }
    return r;
}

int dockerfile_parse(const char *p, size_t n, struct dockerfile *ret_file, unsigned *ret_line,
                     struct err *err)
{
    struct dockerfile file = { .arena = ARENA_INIT(DOCKERFILE_MEMORY) };
    struct reading rd = { .ps = { .file = &file, .err = err } };
    unsigned line = 0;
    int r;
    if (n > DOCKERFILE_MAX)
        r = err_fail(err, FAIL_INVALID_DOCKERFILE, "the Dockerfile is over %d bytes",
                     DOCKERFILE_MAX);
    else if (!text_valid(p, n))
        r = err_fail(err, FAIL_INVALID_DOCKERFILE,
                     "the Dockerfile is not UTF-8 text, or holds a zero byte");
    else
        r = read_all(&rd, p, n, &line);
    if (r < 0) {
        dockerfile_done(&file);
        if (ret_line)
            *ret_line = line;
        return r;
    }
    *ret_file = file;
    return 0;
}

void dockerfile_done(struct dockerfile *file)
{
    arena_done(&file->arena);
}

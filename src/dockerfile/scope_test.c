#include "dockerfile/scope.h"

#include <errno.h>

#include "base/check.h"
#include "dockerfile/plan.h"
#include "dockerfile/resolve.h"

/* Goes through the first stage as a build would and gives the last step, resolved, as text. */
struct walk {
    struct dockerfile file;
    struct scope_world world;
    struct scope scope;
    struct arena arena;
};

static void walk_done(struct walk *w)
{
    dockerfile_done(&w->file);
    scope_world_done(&w->world);
    scope_done(&w->scope);
    arena_done(&w->arena);
}

static int walk(struct walk *w, const char *text, const char *given, const char *value,
                struct dockerfile_step *ret_last, struct err *err)
{
    unsigned line;
    *w = (struct walk){ .arena = ARENA_INIT(1 << 20) };
    CHECK_OK(dockerfile_parse(text, strlen(text), &w->file, &line, err));
    scope_world_init(&w->world, w->file.escape);
    CHECK_OK(scope_world_platform(&w->world, "amd64"));
    if (given)
        CHECK_OK(vars_set(&w->world.given, given, value));
    CHECK_OK(scope_world_head(&w->world, &w->file, &line, err));
    w->scope.world = &w->world;
    const struct dockerfile_stage *stage = &w->file.stages[0];
    int r = 0;
    for (size_t i = 0; i < stage->n_steps && r >= 0; i++) {
        struct expand x = scope_expand(&w->scope);
        r = resolve_step(&x, &stage->steps[i], &w->arena, ret_last, err);
        for (size_t k = 0; r >= 0 && k < ret_last->n_pairs; k++)
            if (ret_last->kind == DOCKERFILE_ARG)
                CHECK_OK(
                    scope_declare(&w->scope, ret_last->pairs[k].name, ret_last->pairs[k].value));
            else if (ret_last->kind == DOCKERFILE_ENV)
                CHECK_OK(
                    vars_set(&w->scope.env, ret_last->pairs[k].name, ret_last->pairs[k].value));
    }
    return r;
}

TEST(variables_are_worth_what_docker_says)
{
    static const struct {
        const char *text, *given, *value, *want;
    } rows[] = {
        { "FROM a\nARG x=1\nUSER $x", NULL, NULL, "1" },
        { "FROM a\nARG x=1\nUSER $x", "x", "2", "2" },
        { "FROM a\nUSER a$x", "x", "2", "a" }, /* not declared */
        { "FROM a\nARG x\nUSER a$x", NULL, NULL, "a" },
        { "FROM a\nARG x\nUSER a$x", "x", "", "a" },
        { "ARG x=1\nFROM a\nUSER a$x", NULL, NULL, "a" }, /* not repeated */
        { "ARG x=1\nFROM a\nARG x\nUSER a$x", NULL, NULL, "a1" },
        { "ARG x=1\nFROM a\nARG x=3\nUSER a$x", NULL, NULL, "a3" },
        { "ARG x=1\nFROM a\nARG x\nUSER a$x", "x", "2", "a2" },
        { "ARG x=1\nARG y=$x.0\nFROM a\nARG y\nUSER $y", NULL, NULL, "1.0" },
        { "FROM a\nARG x=1\nENV x=2\nUSER $x", "x", "3", "2" }, /* ENV wins */
        { "FROM a\nENV x=1\nARG x=2\nUSER $x", NULL, NULL, "1" },
        { "FROM a\nENV x=1\nENV x=2 y=$x\nUSER $y", NULL, NULL, "1" }, /* as it was before */
        { "FROM a\nENV x=1 \\\n y=2\nUSER $x$y", NULL, NULL, "12" },
        { "FROM a\nENV x=\"a b\"\nUSER ${x}c", NULL, NULL, "a bc" },
        { "FROM a\nENV x a  b\nUSER $x", NULL, NULL, "a  b" },
        { "FROM a\nENV x=\\$y\nUSER $x", NULL, NULL, "$y" },
        { "FROM a\nARG TARGETARCH\nUSER $TARGETARCH", NULL, NULL, "amd64" },
        { "FROM a\nUSER a$TARGETARCH", NULL, NULL, "a" },
        { "FROM a\nARG TARGETPLATFORM\nUSER $TARGETPLATFORM", NULL, NULL, "linux/amd64" },
        { "FROM a\nENV d=/x\nWORKDIR ${d}/y", NULL, NULL, "/x/y" },
        { "FROM a\nENV x=1\nRUN echo $x '$x'", NULL, NULL, "echo $x '$x'" }, /* the shell's */
        { "FROM a\nENV x=1\nCMD [\"$x\"]", NULL, NULL, "$x" },
        { "FROM a\nENV x=1\nCOPY [\"$x\", \"b\"]", NULL, NULL, "1" },
        { "FROM a\nENV p=\"80 81\"\nEXPOSE $p 82", NULL, NULL, "80" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(walk_done) struct walk w;
        struct dockerfile_step last = { 0 };
        struct err err = ERR_INIT;
        CHECK_OK(walk(&w, rows[i].text, rows[i].given, rows[i].value, &last, &err));
        if (strcmp(last.words[0], rows[i].want) != 0)
            fail_msg("'%s' with %s=%s gave '%s', not '%s'", rows[i].text, rows[i].given,
                     rows[i].value, last.words[0], rows[i].want);
    }
}

TEST(an_exposed_list_is_cut)
{
    _cleanup_(walk_done) struct walk w;
    struct dockerfile_step last = { 0 };
    CHECK_OK(walk(&w, "FROM a\nENV p=\"80 81\"\nEXPOSE $p $none 82", NULL, NULL, &last, NULL));
    CHECK_EQ(last.n_words, 3);
    CHECK_STR(last.words[1], "81");
    CHECK_STR(last.words[2], "82");
}

TEST(a_copied_heredoc_is_expanded_unless_its_name_is_quoted)
{
    _cleanup_(walk_done) struct walk w;
    struct dockerfile_step last = { 0 };
    CHECK_OK(
        walk(&w, "FROM a\nENV x=1\nCOPY <<A <<'B' /\n'$x'\nA\n'$x'\nB\n", NULL, NULL, &last, NULL));
    CHECK_STR(last.heredocs[0].text, "'1'\n");
    CHECK_STR(last.heredocs[1].text, "'$x'\n");
}

TEST(a_bad_expansion_names_its_line)
{
    _cleanup_(walk_done) struct walk w;
    struct dockerfile_step last = { 0 };
    struct err err = ERR_INIT;
    CHECK_EQ(walk(&w, "FROM a\n\nENV x=${y", NULL, NULL, &last, &err), -EINVAL);
    CHECK(strstr(err.msg, "line 3"));
}

/* ---- plan ---- */

struct planned {
    const char *text, *target;
    const char
        *want; /* a character a stage: '-' not needed, 'i' an image, else its base's number */
    unsigned steps;
};

static int plan_text(const char *text, const char *target, struct plan *ret_plan, char *ret_shape,
                     unsigned *ret_line, struct err *err)
{
    struct dockerfile f;
    struct scope_world w;
    CHECK_OK(dockerfile_parse(text, strlen(text), &f, ret_line, err));
    scope_world_init(&w, f.escape);
    CHECK_OK(scope_world_platform(&w, "amd64"));
    CHECK_OK(scope_world_head(&w, &f, ret_line, err));
    int r = plan_make(&f, &w, target, "amd64", ret_plan, ret_line, err);
    for (size_t i = 0; r >= 0 && i < f.n_stages; i++) {
        const struct plan_stage *s = &ret_plan->stages[i];
        ret_shape[i] = (char)(!s->needed ? '-' : s->base < 0 ? 'i' : '0' + s->base);
        ret_shape[i + 1] = '\0';
    }
    scope_world_done(&w);
    dockerfile_done(&f);
    return r;
}

TEST(only_what_the_target_needs_is_built)
{
    static const struct planned rows[] = {
        { "FROM a", NULL, "i", 1 },
        { "FROM a AS x\nRUN y\nFROM x\nRUN z", NULL, "i0", 4 },
        { "FROM a AS x\nRUN y\nFROM b\nRUN z", NULL, "-i", 2 },
        { "FROM a AS x\nRUN y\nFROM b\nCOPY --from=x c d", NULL, "ii", 4 },
        { "FROM a AS x\nRUN y\nFROM b\nCOPY --from=0 c d", NULL, "ii", 4 },
        { "FROM a AS x\nFROM x AS y\nFROM y AS z", "x", "i--", 1 },
        { "FROM a AS x\nFROM x AS y\nFROM y AS z", "Y", "i0-", 2 },
        { "FROM a AS x\nFROM x AS y\nFROM y AS z", "0", "i--", 1 },
        { "FROM a AS x\nFROM b AS y\nFROM c\nCOPY --from=y d e", NULL, "-ii", 3 },
        { "ARG b=x\nFROM a AS x\nFROM $b", NULL, "i0", 2 },
        { "FROM a\nCOPY --from=other/image:1 b c", NULL, "i", 2 },
        { "FROM --platform=$BUILDPLATFORM a", NULL, "i", 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct plan plan;
        struct err err = ERR_INIT;
        char shape[16] = "";
        unsigned line = 0;
        if (plan_text(rows[i].text, rows[i].target, &plan, shape, &line, &err) < 0)
            fail_msg("'%s': %s", rows[i].text, err.msg);
        if (strcmp(shape, rows[i].want) != 0 || plan.steps != rows[i].steps)
            fail_msg("'%s' was planned '%s', %u steps", rows[i].text, shape, plan.steps);
        plan_done(&plan);
    }
}

TEST(a_plan_that_cannot_be_names_the_line)
{
    static const struct {
        const char *text, *target;
        unsigned line;
    } rows[] = {
        { "FROM a", "nope", 0 },
        { "FROM a", "1", 0 },
        { "FROM a\nFROM b\nRUN x\nCOPY --from=1 c d", NULL, 4 },
        { "FROM a\nCOPY --from=5 c d", NULL, 2 },
        { "FROM a AS x\nCOPY --from=x c d", NULL, 2 },
        { "FROM a AS x\nCOPY --from=y c d\nFROM b AS y\nCOPY --from=x e f", NULL, 2 },
        { "ARG v\nFROM $v", NULL, 2 },
        { "FROM --platform=linux/riscv64 a", NULL, 1 },
        { "FROM --platform=windows/amd64 a", NULL, 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct plan plan;
        struct err err = ERR_INIT;
        char shape[16];
        unsigned line = 99;
        if (plan_text(rows[i].text, rows[i].target, &plan, shape, &line, &err) != -EINVAL)
            fail_msg("'%s' was planned", rows[i].text);
        CHECK_STR(failure_name(err.failure), "invalid_dockerfile");
        if (line != rows[i].line)
            fail_msg("'%s': line %u", rows[i].text, line);
    }
}

#include "cli/opts.h"

#include <errno.h>

#include "base/check.h"

struct values {
    bool interactive, tty;
    const char *image;
    struct opt_list env;
    struct opt_number memory, timeout, pids;
    struct opt_real cpus;
};

#define AT(member_) offsetof(struct values, member_)
static const struct opt table[] = {
    { 'i', "interactive", OPT_FLAG, AT(interactive), NULL, "", NULL },
    { 't', "tty", OPT_FLAG, AT(tty), NULL, "", NULL },
    { 0, "image", OPT_TEXT, AT(image), "IMAGE", "", NULL },
    { 'e', "env", OPT_PAIRS, AT(env), "NAME=VALUE", "", NULL },
    { 'm', "memory", OPT_SIZE, AT(memory), "SIZE", "", NULL },
    { 0, "timeout", OPT_DURATION, AT(timeout), "TIME", "", NULL },
    { 0, "pids", OPT_COUNT, AT(pids), "N", "", NULL },
    { 0, "cpus", OPT_REAL, AT(cpus), "N", "", NULL },
};

static int parse(struct values *v, int stop_after, char **argv, char **operands, int *n,
                 struct err *err)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    struct opt_set set = { table, ARRAY_LEN(table), v };
    return opts_parse(&set, 1, stop_after, argc, argv, operands, n, err);
}

static void done(struct values *v)
{
    struct opt_set set = { table, ARRAY_LEN(table), v };
    opts_done(&set);
}

#define W(word_) (char *)(uintptr_t)(word_)

TEST(every_spelling_of_an_option_is_understood)
{
    _cleanup_(done) struct values v = { 0 };
    char *operands[16];
    int n;
    char *argv[] = { W("-it"),     W("--image=x"), W("-e"),         W("A=1"),
                     W("-eB=2=3"), W("-m64m"),     W("--timeout"),  W("1m"),
                     W("--pids"),  W("9"),         W("--cpus=0.5"), NULL };
    CHECK_OK(parse(&v, OPTS_ALL, argv, operands, &n, NULL));
    CHECK_EQ(n, 0);
    CHECK(v.interactive && v.tty);
    CHECK_STR(v.image, "x");
    CHECK_EQ(v.env.n, 2);
    CHECK_STR(v.env.items[1], "B=2=3");
    CHECK(v.memory.set && v.memory.v == 64 << 20);
    CHECK(v.timeout.set && v.timeout.v == 60000);
    CHECK(v.pids.set && v.pids.v == 9);
    CHECK(v.cpus.set && v.cpus.v > 0.49 && v.cpus.v < 0.51);
}

TEST(options_stop_where_the_command_begins)
{
    _cleanup_(done) struct values v = { 0 };
    char *operands[16];
    int n;
    char *argv[] = { W("-i"), W("box"), W("-t"), W("ls"), W("-i"), W("--"), W("x"), NULL };
    CHECK_OK(parse(&v, 1, argv, operands, &n, NULL));
    CHECK_EQ(n, 5);
    CHECK_STR(operands[0], "box");
    CHECK_STR(operands[1], "ls");
    CHECK_STR(operands[2], "-i");
    CHECK_STR(operands[3], "--");
    CHECK(v.tty);
}

TEST(a_double_dash_ends_the_options)
{
    _cleanup_(done) struct values v = { 0 };
    char *operands[16];
    int n;
    char *argv[] = { W("a"), W("--"), W("-i"), W("--"), NULL };
    CHECK_OK(parse(&v, OPTS_ALL, argv, operands, &n, NULL));
    CHECK_EQ(n, 3);
    CHECK_STR(operands[1], "-i");
    CHECK_STR(operands[2], "--");
    CHECK(!v.interactive);
}

TEST(a_lone_dash_is_an_operand)
{
    _cleanup_(done) struct values v = { 0 };
    char *operands[16];
    int n;
    char *argv[] = { W("-"), W("-i"), NULL };
    CHECK_OK(parse(&v, OPTS_ALL, argv, operands, &n, NULL));
    CHECK_EQ(n, 1);
    CHECK(v.interactive);
}

TEST(bad_options_are_named)
{
    static const struct {
        const char *a, *b, *part;
    } bad[] = {
        { "--imagge", NULL, "did you mean '--image'" },
        { "--zebra", NULL, "unknown option '--zebra'" },
        { "-x", NULL, "unknown option '-x'" },
        { "--image", NULL, "needs a value" },
        { "--tty=yes", NULL, "takes no value" },
        { "--memory", "lots", "a size such as" },
        { "--timeout=soon", NULL, "a time such as" },
        { "-e", "=x", "NAME=VALUE" },
        { "-e", "novalue", "NAME=VALUE" },
        { "--pids", "-3", "a whole number" },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        _cleanup_(done) struct values v = { 0 };
        struct err err = ERR_INIT;
        char *operands[16];
        char *argv[] = { W(bad[i].a), W(bad[i].b), NULL };
        int n;
        CHECK_EQ(parse(&v, OPTS_ALL, argv, operands, &n, &err), -EINVAL);
        CHECK(strstr(err.msg, bad[i].part) != NULL);
    }
}

TEST(only_a_close_word_is_suggested)
{
    static const char *const words[] = { "run", "create", "ls", "exec" };
    CHECK_STR(nearest("creat", words, 4), "create");
    CHECK_STR(nearest("rum", words, 4), "run");
    CHECK_STR(nearest("ex", words, 4), "exec");
    CHECK(nearest("zzzz", words, 4) == NULL);
    CHECK(nearest("a-very-long-word-that-is-no-command-at-all", words, 4) == NULL);
}

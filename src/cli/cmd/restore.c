#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"

/* ---- going back ---- */

struct restore_opts {
    bool anew, cold;
    const char *name;
};

static const struct opt restore_table[] = {
    { 0, "new", OPT_FLAG, offsetof(struct restore_opts, anew), NULL,
      "Make a new sandbox from it; the first stays as it is.", NULL },
    { 'n', "name", OPT_TEXT, offsetof(struct restore_opts, name), "NAME",
      "With --new: a name for it.", NULL },
    { 0, "cold", OPT_FLAG, offsetof(struct restore_opts, cold), NULL,
      "Start anew on its files, though it has processes.", NULL },
};

static int print_sandbox(const struct cli *cli, const json_t *s)
{
    cli_print_answer(cli, s, "id");
    return 0;
}

/* The checkpoint's id; its name may be one of the sandbox's, if that is not NULL. */
static int find(struct cli *cli, const char *sandbox, const char *who, char **ret_id,
                struct err *err)
{
    _cleanup_free_ char *path = api_path("checkpoints", who, NULL);
    _cleanup_json_ json_t *c = NULL;
    if (sandbox)
        path = api_query(path, "sandbox", sandbox);
    int r = cli_call(cli, "GET", path, NULL, &c, err);
    if (r >= 0)
        *ret_id = strdup(member_text(c, "id"));
    return r;
}

static int start_new(struct cli *cli, const struct restore_opts *o, const char *sandbox,
                     const char *who)
{
    _cleanup_free_ char *id = NULL, *path = NULL;
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    if (o->cold)
        (void)json_object_set_new(body, "memory", json_false());
    if ((o->name && object_text(body, "name", o->name, &err) < 0) ||
        find(cli, sandbox, who, &id, &err) < 0)
        return cli_fail(cli, &err);
    path = api_path("checkpoints", id, "sandboxes", NULL);
    if (cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    return print_sandbox(cli, made);
}

static int run_restore(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct restore_opts *o = opts;
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "restore", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *s = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0] || !*argv[argc - 1])
        return cli_usage(cli, "an empty word names nothing");
    if (o->name && !o->anew)
        return cli_usage(cli, "--name goes with --new");
    if (o->anew)
        return start_new(cli, o, argc > 1 ? argv[0] : NULL, argv[argc - 1]);
    if (argc < 2)
        return cli_usage(cli, "a sandbox and a checkpoint are needed; --new needs only the latter");
    if (o->cold)
        (void)json_object_set_new(body, "memory", json_false());
    if (object_text(body, "checkpoint", argv[1], &err) < 0 ||
        cli_call(cli, "POST", path, body, &s, &err) < 0)
        return cli_fail(cli, &err);
    return print_sandbox(cli, s);
}

const struct command cmd_restore = {
    .name = "restore",
    .summary = "Bring a sandbox's files back to a checkpoint",
    .synopsis = "[--cold] SANDBOX CHECKPOINT | --new [--cold] [--name NAME] [SANDBOX] CHECKPOINT",
    .description =
        "The sandbox has the checkpoint's files from now on and is started anew, or goes on with the "
        "checkpoint's processes if it was taken with --memory; it keeps its id, name and ports. What it had since is gone unless a checkpoint has it. CHECKPOINT is an "
        "id, a name among the sandbox's checkpoints, a name that only one of your "
        "checkpoints has, or SANDBOX:NAME.",
    .examples =
        (const struct example[]){
            { "Back", "warren restore box before-upgrade" },
            { "To look at, beside what there is",
              "warren restore --new --name old box before-upgrade" },
            { "Undo, whatever comes",
              "warren checkpoint --name now box && warren restore box before-upgrade" },
            { NULL, NULL } },
    COMMAND_OPTS(restore_table, struct restore_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 2,
    .operands = "@sandbox",
    .run = run_restore,
};

/* ---- going on in several ways ---- */

struct fork_opts {
    struct opt_number count;
    bool memory;
};

static const struct opt fork_table[] = {
    { 'c', "count", OPT_COUNT, offsetof(struct fork_opts, count), "N",
      "How many copies, 100 at most. Default 1.", NULL },
    { 0, "memory", OPT_FLAG, offsetof(struct fork_opts, memory), NULL,
      "The copies go on with the processes of the first.", NULL },
};

static int run_fork(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct fork_opts *o = opts;
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "fork", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    const json_t *s;
    size_t i;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (o->count.set)
        (void)json_object_set_new(body, "count", json_integer(o->count.v));
    if (o->memory)
        (void)json_object_set_new(body, "memory", json_true());
    if (cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(made);
        return 0;
    }
    json_array_foreach(member_list(made, "sandboxes"), i, s) {
        (void)print_sandbox(cli, s);
    }
    return 0;
}

const struct command cmd_fork = {
    .name = "fork",
    .summary = "Copy a sandbox, once or many times",
    .synopsis = "[--count N] [--memory] SANDBOX",
    .description = "Makes running copies of a sandbox, with its files as they are now, and prints "
                   "their ids. The copies share what none of them changes, so ten cost about as "
                   "much as one. The checkpoint that they come from stays.",
    .examples =
        (const struct example[]){
            { "One", "warren fork box" },
            { "Live, with all that runs", "warren fork --memory --count 3 box" },
            { "Try five ways at once",
              "for s in $(warren fork --count 5 box); do warren exec $s ./try.sh & done; wait" },
            { "What one of them did", "warren diff box COPY" },
            { "Keep the best", "warren promote COPY" },
            { NULL, NULL } },
    COMMAND_OPTS(fork_table, struct fork_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_fork,
};

/* ---- keeping one of them ---- */

struct promote_opts {
    bool end;
};

static const struct opt promote_table[] = {
    { 0, "end", OPT_FLAG, offsetof(struct promote_opts, end), NULL,
      "Delete the copy afterwards; else it goes on.", NULL },
};

static int run_promote(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct promote_opts *o = opts;
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "promote", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *done = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    (void)json_object_set_new(body, "end", json_boolean(o->end));
    if (cli_call(cli, "POST", path, body, &done, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(done);
        return 0;
    }
    const char *id = member_text(json_object_get(done, "sandbox"), "id");
    (void)printf("%s\n", id);
    cli_note("undo it with `warren restore %s %s`", id,
             member_text(json_object_get(done, "before"), "id"));
    return 0;
}

const struct command cmd_promote = {
    .name = "promote",
    .summary = "Give a copy's files to the sandbox it was forked from",
    .synopsis = "[--end] COPY",
    .description =
        "The sandbox that COPY was forked from has COPY's files from now on and is started anew; "
        "it keeps its id, name, ports and tokens. What it had is kept as a checkpoint, to go back "
        "to.",
    .examples =
        (const struct example[]){
            { "The best of five becomes the one", "warren promote --end COPY" },
            { "See first what it would change", "warren diff box COPY" },
            { NULL, NULL } },
    COMMAND_OPTS(promote_table, struct promote_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_promote,
};

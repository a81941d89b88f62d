#include "cli/commands.h"
#include "cli/object.h"

struct create_opts {
    const char *name, *comment;
    struct opt_list metadata;
    bool memory;
};

static const struct opt create_table[] = {
    { 'n', "name", OPT_TEXT, offsetof(struct create_opts, name), "NAME",
      "A name for it, unique among the sandbox's checkpoints.", NULL },
    { 'm', "comment", OPT_TEXT, offsetof(struct create_opts, comment), "TEXT",
      "What it is for, in your words.", NULL },
    { 0, "metadata", OPT_PAIRS, offsetof(struct create_opts, metadata), "NAME=VALUE",
      "A label; may be given again.", NULL },
    { 0, "memory", OPT_FLAG, offsetof(struct create_opts, memory), NULL,
      "Keep its processes too, as they are at that moment.", NULL },
};

static int describe(const struct create_opts *o, json_t *body, struct err *err)
{
    int r = o->name ? object_text(body, "name", o->name, err) : 0;
    if (o->memory)
        (void)json_object_set_new(body, "memory", json_true());
    if (r >= 0 && o->comment)
        r = object_text(body, "comment", o->comment, err);
    if (r >= 0 && o->metadata.n)
        r = object_pairs(body, "metadata", o->metadata.items, o->metadata.n, err);
    return r;
}

static int run_create(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "checkpoints", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (describe(opts, body, &err) < 0 || cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, made, "id");
    return 0;
}

static int run_get(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_show(cli, "checkpoints", argv[0]);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_remove(cli, "checkpoints", argc, argv);
}

const struct command cmd_checkpoint_get = {
    .name = "checkpoint get",
    .summary = "Show a checkpoint",
    .synopsis = "CHECKPOINT",
    .description = "Prints the checkpoint as the API has it. CHECKPOINT is an id, a name that only "
                   "one of your checkpoints has, or SANDBOX:NAME.",
    .examples = (const struct example[]){ { "By name", "warren checkpoint get box:before-upgrade" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@checkpoint",
    .run = run_get,
};

const struct command cmd_checkpoint_rm = {
    .name = "checkpoint rm",
    .summary = "Delete checkpoints",
    .synopsis = "CHECKPOINT...",
    .description = "Deletes each checkpoint, wherever in the tree it is: those after it come after "
                   "the one before it then. No sandbox and no other checkpoint loses anything; "
                   "what only this one held is given back.",
    .examples = (const struct example[]){ { "One", "warren checkpoint rm box:before-upgrade" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@checkpoint",
    .run = run_rm,
};

/* After the others of its kind in the table: its short form takes what they leave. */
const struct command cmd_checkpoint_create = {
    .name = "checkpoint create",
    .alias = "checkpoint",
    .summary = "Keep a sandbox's files as they are now",
    .synopsis = "[OPTIONS] SANDBOX",
    .description = "Keeps the files of a sandbox as they are at this moment, and prints the new "
                   "checkpoint's id. One that runs goes on; it stands still for some "
                   "milliseconds. Files are shared, not copied. `warren restore` goes back, "
                   "`warren fork` goes on in several ways.",
    .examples =
        (const struct example[]){
            { "Of a running sandbox", "warren checkpoint box" },
            { "To find it again", "warren checkpoint --name before-upgrade -m 'all green' box" },
            { "Processes and all", "warren checkpoint --memory --name warm box" },
            { "Go back", "warren restore box before-upgrade" },
            { NULL, NULL } },
    COMMAND_OPTS(create_table, struct create_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_create,
};

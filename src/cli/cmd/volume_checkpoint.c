#include <errno.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"

#define MIB (1024 * 1024)

struct create_opts {
    const char *name, *comment;
};

static const struct opt create_table[] = {
    { 'n', "name", OPT_TEXT, offsetof(struct create_opts, name), "NAME",
      "A name for it, unique among the volume's.", NULL },
    { 'm', "comment", OPT_TEXT, offsetof(struct create_opts, comment), "TEXT", "What it is for.",
      NULL },
};

static int run_create(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct create_opts *o = opts;
    _cleanup_free_ char *path = api_path("volumes", argv[0], "checkpoints", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no volume");
    if ((o->name && object_text(body, "name", o->name, &err) < 0) ||
        (o->comment && object_text(body, "comment", o->comment, &err) < 0) ||
        cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, made, o->name ? "name" : "id");
    return 0;
}

static void put_row(struct listing *t, const json_t *o)
{
    cell_text(t, o, "name");
    cell_text(t, o, "id");
    cell_age(t, o, "created_at");
    cell_text(t, o, "comment");
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "CHECKPOINT", false }, { "ID", COLUMN_ID }, { "AGE", true }, { "COMMENT", false }
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("volumes", argv[0], "checkpoints", NULL);
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no volume");
    return table_pages(cli, path, "checkpoints", &table);
}

static int run_restore(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("volumes", argv[0], "restore", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *o = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no volume");
    if (object_text(body, "checkpoint", argv[1], &err) < 0 ||
        cli_call(cli, "POST", path, body, &o, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(o);
    return 0;
}

struct fork_opts {
    struct opt_number size;
};

static const struct opt fork_table[] = {
    { 's', "size", OPT_SIZE, offsetof(struct fork_opts, size), "SIZE",
      "What the new one may hold. Default: as much as the other.", NULL },
};

static int run_fork(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct fork_opts *o = opts;
    _cleanup_free_ char *path =
        api_path("volumes", argv[0], "checkpoints", argv[1], "volumes", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0] || !*argv[1])
        return cli_usage(cli, "an empty word names nothing");
    if (o->size.set)
        (void)json_object_set_new(body, "size_mb",
                                  json_integer(o->size.v / MIB + (o->size.v % MIB != 0)));
    if ((argc > 2 && object_text(body, "name", argv[2], &err) < 0) ||
        cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, made, "name");
    return 0;
}

static int run_forget(struct cli *cli, const void *opts, int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        _cleanup_free_ char *path = api_path("volumes", argv[0], "checkpoints", argv[i], NULL);
        struct err err = ERR_INIT;
        if (!*argv[0] || !*argv[i])
            return cli_usage(cli, "an empty word names nothing");
        if (cli_call(cli, "DELETE", path, NULL, NULL, &err) < 0)
            failed = cli_fail(cli, &err);
    }
    return failed;
}

const struct command cmd_volume_checkpoint = {
    .name = "volume checkpoint",
    .summary = "Keep a volume's files as they are now",
    .synopsis = "[OPTIONS] VOLUME",
    .description = "Keeps the files of a volume as they are at this moment, also while sandboxes "
                   "write to it, and prints the checkpoint's name or id. It shares what does not "
                   "change; the rest counts for the volume's size.",
    .examples =
        (const struct example[]){
            { "Before something risky", "warren volume checkpoint --name before data" },
            { "With a word on why", "warren volume checkpoint -m 'model v2 is in' data" },
            { NULL, NULL } },
    COMMAND_OPTS(create_table, struct create_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@volume",
    .run = run_create,
};

const struct command cmd_volume_checkpoints = {
    .name = "volume checkpoints",
    .summary = "List a volume's checkpoints",
    .synopsis = "VOLUME",
    .description = "Lists the checkpoints of a volume, the oldest first.",
    .examples =
        (const struct example[]){ { "All", "warren volume checkpoints data" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@volume",
    .run = run_ls,
};

const struct command cmd_volume_restore = {
    .name = "volume restore",
    .summary = "Go back to a volume's checkpoint",
    .synopsis = "VOLUME CHECKPOINT",
    .description = "Gives the volume the files that it had at a checkpoint. What it has now is "
                   "gone, unless a checkpoint keeps it. Sandboxes that have the volume must be "
                   "stopped first.",
    .examples =
        (const struct example[]){ { "Back", "warren volume restore data before" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = 2,
    .operands = "@volume",
    .run = run_restore,
};

const struct command cmd_volume_fork = {
    .name = "volume fork",
    .summary = "Make a volume from a checkpoint of another",
    .synopsis = "[OPTIONS] VOLUME CHECKPOINT [NAME]",
    .description = "Makes a new volume with the files of a checkpoint, and prints its name. Both "
                   "share what neither changes.",
    .examples = (const struct example[]){ { "A copy to try things on",
                                            "warren volume fork data before scratch" },
                                          { NULL, NULL } },
    COMMAND_OPTS(fork_table, struct fork_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = 3,
    .operands = "@volume",
    .run = run_fork,
};

const struct command cmd_volume_forget = {
    .name = "volume forget",
    .summary = "Delete checkpoints of a volume",
    .synopsis = "VOLUME CHECKPOINT...",
    .description = "Deletes each of these checkpoints. The volume and its other checkpoints stay "
                   "as they are.",
    .examples =
        (const struct example[]){ { "One", "warren volume forget data before" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@volume",
    .run = run_forget,
};

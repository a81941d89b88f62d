#include "cli/commands.h"
#include "cli/object.h"
#include "cli/save.h"
#include "cli/upload.h"

struct export_opts {
    const char *output;
    bool no_image;
};

static const struct opt export_table[] = {
    { 'o', "output", OPT_TEXT, offsetof(struct export_opts, output), "FILE",
      "Where to write it. Default: standard output.", "@file" },
    { 0, "no-image", OPT_FLAG, offsetof(struct export_opts, no_image), NULL,
      "Leave out its image, for a place that has it.", NULL },
};

static int run_export(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct export_opts *o = opts;
    _cleanup_free_ char *path = api_path("checkpoints", argv[0], "export", NULL);
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no checkpoint");
    if (o->no_image)
        path = api_query(path, "image", "false");
    return save_answer(cli, path, o->output);
}

const struct command cmd_checkpoint_export = {
    .name = "checkpoint export",
    .summary = "Write a checkpoint as one file",
    .synopsis = "[--output FILE] [--no-image] CHECKPOINT",
    .description =
        "Writes all that a checkpoint is into one file: its files (packed with zstd), its "
        "image and what its sandbox was. Secrets, volumes and templates are not in it. "
        "`warren checkpoint import` takes it, here or elsewhere.",
    .examples =
        (const struct example[]){
            { "To a file", "warren checkpoint export -o work.tar box:before-upgrade" },
            { "To another machine",
              "warren checkpoint export ID | ssh host warren checkpoint import -" },
            { NULL, NULL } },
    COMMAND_OPTS(export_table, struct export_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@checkpoint",
    .run = run_export,
};

struct import_opts {
    const char *name;
};

static const struct opt import_table[] = {
    { 'n', "name", OPT_TEXT, offsetof(struct import_opts, name), "NAME",
      "What to call it. Default: as it was called.", NULL },
};

static int run_import(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct import_opts *o = opts;
    _cleanup_free_ char *path = api_path("checkpoints", "import", NULL);
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    if (o->name)
        path = api_query(path, "name", o->name);
    if (upload_file(cli, "POST", path, argv[0], &made, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, made, "id");
    return 0;
}

const struct command cmd_checkpoint_import = {
    .name = "checkpoint import",
    .summary = "Make a checkpoint from such a file",
    .synopsis = "[--name NAME] FILE",
    .description =
        "Reads what `warren checkpoint export` wrote, of this Warren or another, checks it "
        "and prints the new checkpoint's id. FILE may be -, standard input.",
    .examples =
        (const struct example[]){
            { "And go on from it", "warren restore --new $(warren checkpoint import work.tar)" },
            { NULL, NULL } },
    COMMAND_OPTS(import_table, struct import_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@file",
    .run = run_import,
};

#include "cli/commands.h"
#include "cli/object.h"

static int start_one(struct cli *cli, const char *id, const void *opts, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", id, "start", NULL);
    return cli_ask(cli, path, err);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_each(cli, argc, argv, start_one, opts);
}

const struct command cmd_start = {
    .name = "start",
    .summary = "Start stopped sandboxes again",
    .synopsis = "SANDBOX...",
    .description =
        "Runs each sandbox again on the files it has. Processes that ran before it was stopped are "
        "gone. Prints the id of each that was started.",
    .examples = (const struct example[]){ { "One", "warren start box" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run,
};

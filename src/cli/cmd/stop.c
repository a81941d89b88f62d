#include "cli/commands.h"
#include "cli/object.h"

static int stop_one(struct cli *cli, const char *id, const void *opts, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", id, "stop", NULL);
    return cli_ask(cli, path, err);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_each(cli, argc, argv, stop_one, opts);
}

const struct command cmd_stop = {
    .name = "stop",
    .summary = "Stop sandboxes: end their processes, keep their files",
    .synopsis = "SANDBOX...",
    .description =
        "Ends everything that runs in each sandbox. Its files, its name and its limits stay, and "
        "`warren start` runs it again on them. Prints the id of each that was stopped.",
    .examples = (const struct example[]){ { "One", "warren stop box" },
                                          { "All that run",
                                            "warren ls -q --state running | xargs -r warren stop" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run,
};

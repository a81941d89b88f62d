#include "cli/commands.h"
#include "cli/object.h"

static int restart_one(struct cli *cli, const char *id, const void *opts, struct err *err)
{
    _cleanup_free_ char *stop = api_path("sandboxes", id, "stop", NULL);
    _cleanup_free_ char *start = api_path("sandboxes", id, "start", NULL);
    int r = cli_call(cli, "POST", stop, NULL, NULL, err);
    return r < 0 ? r : cli_ask(cli, start, err);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_each(cli, argc, argv, restart_one, opts);
}

const struct command cmd_restart = {
    .name = "restart",
    .summary = "Stop sandboxes and start them again",
    .synopsis = "SANDBOX...",
    .description =
        "Ends everything that runs in each sandbox and starts it again on the same files. One that "
        "is stopped is only started. Prints the id of each that runs again.",
    .examples = (const struct example[]){ { "One", "warren restart box" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run,
};

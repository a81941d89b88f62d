#include "cli/commands.h"

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    int used = 0;
    if (argc == 0) {
        help_overview(stdout);
        return 0;
    }
    const struct command *c = command_find(argc, argv, &used);
    if (!c) {
        int r = help_group(argc, argv);
        return r < 0 ? cli_usage(cli, "there is no command '%s'", argv[0]) : r;
    }
    help_command(stdout, c);
    return 0;
}

const struct command cmd_help = {
    .name = "help",
    .summary = "Explain a command",
    .synopsis = "[COMMAND]",
    .description = "Lists the commands, or explains one: the same as `warren COMMAND --help`.",
    .examples = (const struct example[]){ { "About run", "warren help run" },
                                          { "About images", "warren help image import" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .max_args = 2,
    .operands = "@command",
    .run = run,
};

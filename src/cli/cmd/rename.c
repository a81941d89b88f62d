#include "cli/commands.h"
#include "cli/object.h"

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *sandbox = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (object_text(body, "name", argv[1], &err) < 0 ||
        cli_call(cli, "PATCH", path, body, &sandbox, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, sandbox, "id");
    return 0;
}

const struct command cmd_rename = {
    .name = "rename",
    .summary = "Give a sandbox another name",
    .synopsis = "SANDBOX NAME",
    .description = "Calls the sandbox NAME from now on and prints its id, which stays. `warren "
                   "update --no-name` takes a name away.",
    .examples = (const struct example[]){ { "One", "warren rename box old-box" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = 2,
    .operands = "@sandbox",
    .run = run,
};

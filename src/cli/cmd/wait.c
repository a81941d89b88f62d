#include <inttypes.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/units.h"
#include "cli/xmem.h"

/* The newest that runs; else the newest, which has ended already. */
static int find(struct cli *cli, const char *sandbox, int64_t *ret_process, struct err *err)
{
    if (process_newest(cli, sandbox, true, ret_process, err) == 0)
        return 0;
    *err = (struct err)ERR_INIT;
    return process_newest(cli, sandbox, false, ret_process, err);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    struct err err = ERR_INIT;
    int64_t process;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (argc > 1 && count_parse(argv[1], &process) < 0)
        return cli_usage(cli, "'%s' is no process number; `warren ps %s` shows them", argv[1],
                         argv[0]);
    struct client *client = cli_client(cli, &err);
    if (!client || (argc < 2 && find(cli, argv[0], &process, &err) < 0))
        return cli_fail(cli, &err);
    _cleanup_free_ char *number = xasprintf("%" PRId64, process);
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "processes", number, "wait", NULL);
    _cleanup_(
        request_done) struct request call = { .method = "GET", .path = path, .timeout_s = -1 };
    if (client_perform(client, &call, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(call.json);
    else
        (void)printf("%" PRId64 "\n", member_int(call.json, "exit_code"));
    return 0;
}

const struct command cmd_wait = {
    .name = "wait",
    .summary = "Wait until a process ends and print its exit status",
    .synopsis = "SANDBOX [PROCESS]",
    .description =
        "Waits for a process of a sandbox, by default the newest that was started by a client, and "
        "prints the status it ended with. With --json, the API's own object, which says why.",
    .examples = (const struct example[]){ { "A build that was started before",
                                            "n=$(warren exec -d box make)\nwarren wait box $n" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 2,
    .operands = "@sandbox",
    .run = run,
};

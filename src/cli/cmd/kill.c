#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/units.h"

struct kill_opts {
    const char *signal, *scope;
};

static const struct opt kill_table[] = {
    { 's', "signal", OPT_TEXT, offsetof(struct kill_opts, signal), "SIGNAL",
      "A name or a number: TERM, SIGINT, 9. Default TERM.",
      "TERM INT HUP KILL QUIT STOP CONT USR1 USR2" },
    { 0, "scope", OPT_TEXT, offsetof(struct kill_opts, scope), "SCOPE",
      "process, group, or tree: everything it started. Default process.", "process group tree" },
};

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct kill_opts *o = opts;
    int status = 0;
    for (int i = 1; i < argc; i++) {
        _cleanup_free_ char *path =
            api_path("sandboxes", argv[0], "processes", argv[i], "signal", NULL);
        _cleanup_json_ json_t *body = json_object();
        struct err err = ERR_INIT;
        int64_t n;
        if (!*argv[0] || count_parse(argv[i], &n) < 0)
            return cli_usage(cli, "'%s' is no process number; `warren ps %s` shows them", argv[i],
                             argv[0]);
        if (o->signal && count_parse(o->signal, &n) == 0)
            (void)json_object_set_new(body, "signal", json_integer(n));
        else if (object_text(body, "signal", o->signal ? o->signal : "SIGTERM", &err) < 0)
            return cli_fail(cli, &err);
        if (o->scope && object_text(body, "scope", o->scope, &err) < 0)
            return cli_fail(cli, &err);
        if (cli_call(cli, "POST", path, body, NULL, &err) < 0)
            status = cli_fail(cli, &err);
    }
    return status;
}

const struct command cmd_kill = {
    .name = "kill",
    .summary = "Send a signal to processes of a sandbox",
    .synopsis = "[OPTIONS] SANDBOX PROCESS...",
    .description =
        "Sends a signal to each PROCESS, named by its number as `warren ps` shows it. To end a "
        "whole sandbox, see `warren stop` and `warren rm`.",
    .examples = (const struct example[]){ { "Ask process 3 to end", "warren kill box 3" },
                                          { "End it and all it started, now",
                                            "warren kill -s KILL --scope tree box 3" },
                                          { NULL, NULL } },
    COMMAND_OPTS(kill_table, struct kill_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run,
};

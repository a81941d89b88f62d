#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("health", NULL);
    _cleanup_json_ json_t *health = NULL;
    struct err err = ERR_INIT;
    bool there = cli_call(cli, "GET", path, NULL, &health, &err) == 0;
    if (cli->json) {
        _cleanup_json_ json_t *o =
            json_pack("{s:s,s:O?}", "client", WARREN_VERSION, "daemon", health);
        cli_print_json(o);
        return 0;
    }
    _cleanup_free_ char *version = text_line(member_text(health, "version"));
    (void)printf("warren   %s\nwarrend  %s\n", WARREN_VERSION, there ? version : "not reachable");
    return 0;
}

const struct command cmd_version = {
    .name = "version",
    .summary = "Show the version of this command and of the daemon",
    .synopsis = "",
    .description = "Shows both versions. A daemon that does not answer is no failure.",
    .examples = (const struct example[]){ { "Both", "warren version" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run,
};

#include <stddef.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/xmem.h"

struct resume_opts {
    bool cold;
};

static const struct opt resume_table[] = {
    { 0, "cold", OPT_FLAG, offsetof(struct resume_opts, cold), NULL,
      "Forget its processes, and start anew on its files.", NULL },
};

static int pause_one(struct cli *cli, const char *id, const void *opts, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", id, "pause", NULL);
    return cli_ask(cli, path, err);
}

static int resume_one(struct cli *cli, const char *id, const void *opts, struct err *err)
{
    const struct resume_opts *o = opts;
    _cleanup_free_ char *base = api_path("sandboxes", id, "resume", NULL);
    _cleanup_free_ char *path = xasprintf("%s%s", base, o->cold ? "?memory=false" : "");
    return cli_ask(cli, path, err);
}

static int run_pause(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_each(cli, argc, argv, pause_one, opts);
}

static int run_resume(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_each(cli, argc, argv, resume_one, opts);
}

const struct command cmd_pause = {
    .name = "pause",
    .summary = "Pause sandboxes: put their processes away on disk",
    .synopsis = "SANDBOX...",
    .description =
        "Everything that runs in each sandbox is put away on disk as it is, and the sandbox uses no "
        "memory and no cpu until it is resumed: by `warren resume`, or by whatever needs it, such as "
        "`warren exec`. What cannot be put away is named, and the sandbox runs on. Prints the id of "
        "each that was paused.",
    .examples =
        (const struct example[]){
            { "One", "warren pause box" },
            { "All that run", "warren ls -q --state running | xargs -r warren pause" },
            { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_pause,
};

const struct command cmd_resume = {
    .name = "resume",
    .summary = "Resume paused sandboxes",
    .synopsis = "[--cold] SANDBOX...",
    .description =
        "Each sandbox goes on with the processes that it had when it was paused. Prints the id of "
        "each that runs again.",
    .examples = (const struct example[]){ { "One", "warren resume box" },
                                          { "On its files alone", "warren resume --cold box" },
                                          { NULL, NULL } },
    COMMAND_OPTS(resume_table, struct resume_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_resume,
};

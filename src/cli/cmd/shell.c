#include <unistd.h>

#include "cli/commands.h"
#include "cli/process_opts.h"
#include "cli/session.h"

struct shell_opts {
    struct process_opts process;
};

#define AT(member_) offsetof(struct shell_opts, member_)
static const struct opt shell_table[] = {
    { 'e', "env", OPT_PAIRS, AT(process.env), "NAME=VALUE",
      "An environment variable; may be given again.", NULL },
    { 'u', "user", OPT_TEXT, AT(process.user), "USER",
      "Whose shell: a name, a uid, or uid:gid. Default: the sandbox's.", NULL },
    { 'w', "workdir", OPT_TEXT, AT(process.workdir), "DIR", "Where it starts.", NULL },
};

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct shell_opts *o = opts;
    bool tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    struct session_config config = { .sandbox = argv[0], .tty = tty, .input = true };
    struct err err = ERR_INIT;
    json_t *spec = NULL;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (process_spec_json(&o->process, tty, 0, NULL, &spec, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) /* its commands come from standard input, its answer is one object */
        return session_run_json(cli, argv[0], !tty, spec);
    return session_run(cli, &config, spec);
}

const struct command cmd_shell = {
    .name = "shell",
    .summary = "Open a shell in a sandbox",
    .synopsis = "[OPTIONS] SANDBOX",
    .description =
        "Opens a login shell (bash where there is one, else sh) on a terminal in the sandbox and "
        "ends with its exit status. Where standard input or output is not a terminal, the shell "
        "reads its commands from standard input instead.\n\n"
        "Ctrl-] or Ctrl-P Ctrl-Q leaves the shell running, and so does closing the window or losing "
        "the connection; `warren attach SANDBOX` comes back to it.",
    .exit_status = "N    the shell's own exit status\n"
                   "125  warren itself failed: no daemon, no such sandbox, a bad option\n"
                   "128+N  signal N ended the shell",
    .examples =
        (const struct example[]){
            { "Look around", "warren shell box" },
            { "As the ordinary user of the base image", "warren shell -u user box" },
            { "A few commands", "echo 'id; uname -r' | warren shell box" },
            { NULL, NULL } },
    COMMAND_OPTS(shell_table, struct shell_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .fail_status = STATUS_WARREN,
    .run = run,
};

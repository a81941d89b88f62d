#include <inttypes.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/process_opts.h"
#include "cli/session.h"

struct exec_opts {
    bool interactive, tty, detach;
    struct process_opts process;
};

#define AT(member_) offsetof(struct exec_opts, member_)
static const struct opt exec_table[] = {
    { 'i', "interactive", OPT_FLAG, AT(interactive), NULL, "Pass standard input on.", NULL },
    { 't', "tty", OPT_FLAG, AT(tty), NULL,
      "Give the program a terminal of its own; -it for interactive ones.", NULL },
    { 'd', "detach", OPT_FLAG, AT(detach), NULL,
      "Leave it running and print its number, for logs, attach and kill.", NULL },
    { 'e', "env", OPT_PAIRS, AT(process.env), "NAME=VALUE",
      "An environment variable; may be given again.", NULL },
    { 'u', "user", OPT_TEXT, AT(process.user), "USER",
      "Who it runs as: a name, a uid, or uid:gid. Default: the sandbox's.", NULL },
    { 'w', "workdir", OPT_TEXT, AT(process.workdir), "DIR", "Where it starts.", NULL },
    { 0, "timeout", OPT_DURATION, AT(process.timeout), "TIME",
      "Kill it, and all it started, after this long: 30s, 1h30m.", NULL },
    { 0, "label", OPT_TEXT, AT(process.label), "WORD", "A word of your own to know it by.", NULL },
};

static int start_only(struct cli *cli, const char *id, json_t *spec)
{
    _cleanup_json_ json_t *process = NULL;
    int status = session_start(cli, id, spec, &process);
    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(process);
    else
        (void)printf("%" PRId64 "\n", member_int(process, "process"));
    return 0;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct exec_opts *o = opts;
    struct session_config config = { .sandbox = argv[0],
                                     .tty = o->tty,
                                     .input = o->interactive || o->tty };
    struct err err = ERR_INIT;
    json_t *spec = NULL;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (o->tty && (cli->json || o->detach))
        return cli_usage(cli, "-t does not go with --json or --detach");
    if (o->tty && !isatty(STDIN_FILENO))
        return cli_usage(cli, "-t needs a terminal, and standard input is none");
    if (process_spec_json(&o->process, o->tty, argc - 1, argv + 1, &spec, &err) < 0)
        return cli_fail(cli, &err);
    int status = o->detach   ? start_only(cli, argv[0], spec)
                 : cli->json ? session_run_json(cli, argv[0], config.input, spec)
                             : session_run(cli, &config, spec);
    process_hint(status, argc - 1, argv + 1);
    return status;
}

const struct command cmd_exec = {
    .name = "exec",
    .summary = "Run a program in a sandbox",
    .synopsis = "[OPTIONS] SANDBOX [--] PROGRAM [ARG...]",
    .description =
        "Runs PROGRAM in a running sandbox, passes its output on as it comes, and ends with the "
        "program's own exit status. Options may stand before or after SANDBOX and end where "
        "PROGRAM begins. Standard input is only passed on with -i.\n\n"
        "The first interrupt (Ctrl-C) or termination signal goes to the program, the second kills "
        "it with everything it started, the third stops waiting. A lost connection does not: the "
        "program goes on, and its output is asked for again from where it broke.",
    .exit_status = "N    the program's own exit status\n"
                   "125  warren itself failed: no daemon, no such sandbox, a bad option\n"
                   "126  the program cannot be executed\n"
                   "127  there is no such program in the sandbox\n"
                   "128+N  signal N ended the program",
    .examples =
        (const struct example[]){
            { "A program", "warren exec box ls -l /" },
            { "An interactive one", "warren exec -it box python3" },
            { "Feed it a file", "warren exec -i box sh -c 'cat > /root/data' < data" },
            { "Start a server and leave it", "warren exec -d box python3 -m http.server" },
            { "As another user, elsewhere", "warren exec -u user -w /tmp -e DEBUG=1 box ./build" },
            { NULL, NULL } },
    COMMAND_OPTS(exec_table, struct exec_opts),
    .stop_after = 1,
    .min_args = 2,
    .max_args = -1,
    .operands = "@sandbox",
    .fail_status = STATUS_WARREN,
    .run = run,
};

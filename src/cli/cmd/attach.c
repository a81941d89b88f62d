#include <inttypes.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/session.h"
#include "cli/units.h"

struct attach_opts {
    bool no_stdin;
};

static const struct opt attach_table[] = {
    { 0, "no-stdin", OPT_FLAG, offsetof(struct attach_opts, no_stdin), NULL,
      "Only watch; pass no input on.", NULL },
};

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct attach_opts *o = opts;
    _cleanup_json_ json_t *process = NULL;
    struct err err = ERR_INIT;
    char number[24];
    int64_t n = 0;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (argc > 1 && (count_parse(argv[1], &n) < 0 || n == 0))
        return cli_usage(cli, "'%s' is no process number; `warren ps %s` shows them", argv[1],
                         argv[0]);
    if (argc == 1 && process_newest(cli, argv[0], true, &n, &err) < 0)
        return cli_fail(cli, &err);
    (void)snprintf(number, sizeof(number), "%" PRId64, n);
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "processes", number, NULL);
    if (cli_call(cli, "GET", path, NULL, &process, &err) < 0)
        return cli_fail(cli, &err);

    struct session_config config = { .sandbox = argv[0], .visitor = true };
    const json_t *pty = json_object_get(process, "pty");
    config.tty = (json_is_true(pty) || json_is_object(pty)) && isatty(STDIN_FILENO) &&
                 isatty(STDOUT_FILENO) && !o->no_stdin;
    config.input =
        !o->no_stdin && (config.tty || session_has_piped_stdin() || isatty(STDIN_FILENO));
    if (config.tty)
        cli_note("attached to process %" PRId64 "; Ctrl-] leaves it", n);
    return session_attach(cli, &config, n);
}

const struct command cmd_attach = {
    .name = "attach",
    .summary = "Join a process that runs: its output and its input",
    .synopsis = "[OPTIONS] SANDBOX [PROCESS]",
    .description =
        "Joins a process that was started by anyone, anywhere: replays the output that is kept, "
        "goes on with what it prints, passes standard input on, and ends with its exit status. "
        "PROCESS is its number as `warren ps` shows it; the newest that runs where none is given. "
        "Leaving does not touch it: Ctrl-] or Ctrl-P Ctrl-Q leaves a process with a terminal, Ctrl-C any other.",
    .exit_status = "N    the program's own exit status\n"
                   "0    left with Ctrl-]\n"
                   "125  warren itself failed: no daemon, no such process, a bad option\n"
                   "128+N  signal N ended the program, or this command",
    .examples = (const struct example[]){ { "The newest process", "warren attach box" },
                                          { "Watch process 3 without touching it",
                                            "warren attach --no-stdin box 3" },
                                          { NULL, NULL } },
    COMMAND_OPTS(attach_table, struct attach_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 2,
    .operands = "@sandbox",
    .fail_status = STATUS_WARREN,
    .run = run,
};

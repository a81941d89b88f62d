#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/process_opts.h"
#include "cli/session.h"
#include "cli/shape.h"
#include "cli/term.h"

/* Should we die before we can delete it, a one-shot sandbox goes by itself this long after its
 * program ended. */
#define ORPHAN_S 300

struct run_opts {
    struct shape shape;
    bool interactive, tty, keep, detach, remove;
    struct opt_number timeout;
};

static const struct opt run_table[] = {
    { 'i', "interactive", OPT_FLAG, offsetof(struct run_opts, interactive), NULL,
      "Pass standard input on. Without it, only input that is not a terminal is.", NULL },
    { 't', "tty", OPT_FLAG, offsetof(struct run_opts, tty), NULL,
      "Give the program a terminal of its own; -it for interactive ones.", NULL },
    SHAPE_TEMPLATE_OPTS(struct run_opts),
    SHAPE_IMAGE_OPTS(struct run_opts),
    SHAPE_LIMIT_OPTS(struct run_opts),
    SHAPE_MAKE_OPTS(struct run_opts),
    SHAPE_NET_OPTS(struct run_opts),
    { 0, "timeout", OPT_DURATION, offsetof(struct run_opts, timeout), "TIME",
      "Kill the program, and all it started, after this long: 30s, 1h30m.", NULL },
    { 'k', "keep", OPT_FLAG, offsetof(struct run_opts, keep), NULL,
      "Keep the sandbox; its id is printed on standard error.", NULL },
    { 'd', "detach", OPT_FLAG, offsetof(struct run_opts, detach), NULL,
      "Leave the program running, keep the sandbox, and print its id.", NULL },
    { 0, "rm", OPT_FLAG, offsetof(struct run_opts, remove), NULL,
      "Delete the sandbox afterwards. It is, unless --keep or -d is given.", NULL },
};

static bool has_terminal(const struct run_opts *o, int argc)
{
    return o->tty || (argc == 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO));
}

/* passing: it goes with its program, and so by itself should we not be there to delete it. */
static int make(struct cli *cli, const struct run_opts *o, bool passing, json_t **ret_sandbox,
                struct err *err)
{
    _cleanup_json_ json_t *body = NULL;
    _cleanup_free_ char *path = api_path("sandboxes", NULL);
    int r = shape_body(&o->shape, &body, err);
    if (r < 0)
        return r;
    if (passing) {
        (void)json_object_set_new(body, "idle_timeout_s", json_integer(ORPHAN_S));
        (void)json_object_set_new(body, "on_idle", json_string("delete"));
    }
    return cli_call(cli, "POST", path, body, ret_sandbox, err);
}

static void unmake(struct cli *cli, const char *id)
{
    struct err err = ERR_INIT;
    char code[REQUEST_CODE_MAX] = "";
    _cleanup_free_ char *path = api_path("sandboxes", id, NULL);
    if (cli_call_code(cli, "DELETE", path, NULL, NULL, code, &err) < 0 &&
        strcmp(code, "sandbox_gone") != 0 && strcmp(code, "sandbox_not_found") != 0)
        cli_note("sandbox %s could not be deleted: %s; try `warren rm -f %s`", id, err.msg, id);
}

static int run_in(struct cli *cli, const struct run_opts *o, const char *id, int argc, char **argv,
                  bool *ret_left)
{
    struct session_config config = { .sandbox = id,
                                     .tty = has_terminal(o, argc),
                                     .ret_left = ret_left };
    struct process_opts po = { .timeout = o->timeout };
    struct err err = ERR_INIT;
    json_t *spec = NULL;
    config.input = config.tty || o->interactive || session_has_piped_stdin();
    if (process_spec_json(&po, config.tty, argc, argv, &spec, &err) < 0)
        return cli_fail(cli, &err);
    int status =
        cli->json ? session_run_json(cli, id, config.input, spec) : session_run(cli, &config, spec);
    process_hint(status, argc, argv);
    return status;
}

static int run_detached(struct cli *cli, const struct run_opts *o, int argc, char **argv)
{
    struct process_opts po = { .timeout = o->timeout };
    _cleanup_json_ json_t *sandbox = NULL;
    _cleanup_json_ json_t *process = NULL;
    _cleanup_json_ json_t *spec = NULL;
    struct err err = ERR_INIT;
    if (process_spec_json(&po, false, argc, argv, &spec, &err) < 0 ||
        make(cli, o, false, &sandbox, &err) < 0)
        return cli_fail(cli, &err);
    const char *id = member_text(sandbox, "id");
    int status = session_start(cli, id, take_ptr(spec), &process);
    process_hint(status, argc, argv);
    if (status == 0)
        cli_print_answer(cli, sandbox, "id");
    else
        unmake(cli, id);
    return status;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct run_opts *o = opts;
    _cleanup_json_ json_t *sandbox = NULL;
    struct err err = ERR_INIT;
    if (o->tty && cli->json)
        return cli_usage(cli, "--json and a terminal do not go together");
    if (o->tty && !isatty(STDIN_FILENO))
        return cli_usage(cli, "-t needs a terminal, and standard input is none");
    if (o->remove && (o->keep || o->detach))
        return cli_usage(
            cli, "--rm does not go with --keep or -d; `warren rm -f` deletes what was kept");
    if (o->detach && (o->tty || o->interactive))
        return cli_usage(cli, "-d does not go with -i or -t; `warren attach` joins it later");
    if (o->detach && argc == 0)
        return cli_usage(cli, "-d needs a program; `warren create` makes a sandbox without one");
    if (o->detach)
        return run_detached(cli, o, argc, argv);
    if (argc == 0 && !session_has_piped_stdin() && !isatty(STDIN_FILENO))
        return cli_usage(cli, "there is nothing to run");
    /* From here on a signal must not end us before the sandbox is deleted. Whoever loses a terminal
     * finds the sandbox again, however long that takes. */
    bool tty = has_terminal(o, argc);
    if (signals_catch(tty, &err) < 0 || make(cli, o, !o->keep && !tty, &sandbox, &err) < 0)
        return cli_fail(cli, &err);

    const char *id = member_text(sandbox, "id");
    bool left = false;
    int signo = signals_next();
    int status = signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT
                     ? 128 + signo
                     : run_in(cli, o, id, argc, argv, &left);
    if (o->keep)
        cli_note("kept sandbox %s", id);
    else if (left)
        cli_note("kept sandbox %s; `warren rm -f %s` deletes it", id, id);
    else
        unmake(cli, id);
    return status;
}

const struct command cmd_run = {
    .name = "run",
    .summary = "Run one program in a fresh sandbox, then delete it",
    .synopsis = "[OPTIONS] [--] [PROGRAM [ARG...]]",
    .description =
        "Makes a sandbox, runs PROGRAM in it, passes its output on as it comes (standard output "
        "and standard error apart), deletes the sandbox with everything in it, and ends with the "
        "program's own exit status. Without PROGRAM it runs a shell: at a terminal, an "
        "interactive one; else one that reads its commands from standard input.\n\n"
        "Options end where PROGRAM begins; everything after it belongs to the program. Standard "
        "input is passed on when it is not a terminal, or with -i.\n\n"
        "The first interrupt (Ctrl-C) or termination signal goes to the program, the second kills "
        "it, the third stops waiting. The sandbox is deleted each time. Should the daemon be "
        "restarted meanwhile, the program goes on and so does its output here.\n\n"
        "With a terminal, Ctrl-] or Ctrl-P Ctrl-Q leaves the program running and keeps the sandbox, "
        "and so does closing the window or losing the connection; `warren attach` comes back to "
        "it.\n\n"
        "What the program prints can do nothing to your terminal: unless -t is given, control "
        "sequences other than colours are shown as text. Output to a file or a pipe is passed "
        "untouched.",
    .exit_status = "N    the program's own exit status\n"
                   "125  warren itself failed: no daemon, no such image, a bad option\n"
                   "126  the program cannot be executed\n"
                   "127  there is no such program in the sandbox\n"
                   "128+N  signal N ended the program (137: killed, also when out of memory or "
                   "time)",
    .examples =
        (const struct example[]){
            { "A first program", "warren run echo hello" },
            { "An interactive shell, gone afterwards", "warren run -it bash" },
            { "A script from standard input, with little memory and time",
              "warren run --memory 256m --timeout 10s python3 - < script.py" },
            { "With a key that it never sees",
              "warren run --bind 'openai@api.openai.com' curl https://api.openai.com/v1/models" },
            { "In a pipeline", "tar c src | warren run sh -c 'tar x && ls -R' | tee listing" },
            { "Keep what it made, and look around in it",
              "warren run --keep --name box touch /root/file" },
            { "A server that stays", "warren run -d --name web python3 -m http.server" },
            { NULL, NULL } },
    COMMAND_OPTS(run_table, struct run_opts),
    .stop_after = 0,
    .max_args = -1,
    .fail_status = STATUS_WARREN,
    .run = run,
};

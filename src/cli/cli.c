#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "cli/colour.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/target.h"
#include "cli/term.h"
#include "cli/typed.h"
#include "cli/xmem.h"

struct client *cli_client(struct cli *cli, struct err *err)
{
    struct target target = TARGET_INIT;
    if (cli->client)
        return cli->client;
    int r = target_find(cli, &target, err);
    if (r == 0)
        r = client_new(&target.config, &cli->client, err);
    target_done(&target);
    return r < 0 ? NULL : cli->client;
}

int cli_call_code(struct cli *cli, const char *method, const char *path, const json_t *body,
                  json_t **ret_json, char ret_code[REQUEST_CODE_MAX], struct err *err)
{
    struct client *c = cli_client(cli, err);
    if (!c)
        return err->code ? -err->code : -EIO;
    return client_call(c, method, path, body, ret_json, ret_code, err);
}

int cli_call(struct cli *cli, const char *method, const char *path, const json_t *body,
             json_t **ret_json, struct err *err)
{
    return cli_call_code(cli, method, path, body, ret_json, NULL, err);
}

int cli_each(struct cli *cli, int argc, char **argv,
             int (*one)(struct cli *cli, const char *arg, const void *opts, struct err *err),
             const void *opts)
{
    int status = 0;
    for (int i = 0; i < argc; i++) {
        struct err err = ERR_INIT;
        int r = *argv[i] ? one(cli, argv[i], opts, &err)
                         : err_set(&err, EINVAL, "an empty word names nothing");
        if (r < 0)
            status = cli_fail(cli, &err);
    }
    return status;
}

int cli_ask(struct cli *cli, const char *path, struct err *err)
{
    _cleanup_json_ json_t *answer = NULL;
    int r = cli_call(cli, "POST", path, NULL, &answer, err);
    if (r >= 0)
        cli_print_answer(cli, answer, "id");
    return r;
}

static int remove_one(struct cli *cli, const char *name, const void *above, struct err *err)
{
    _cleanup_free_ char *path = api_below(above, name);
    int r = cli_call(cli, "DELETE", path, NULL, NULL, err);
    if (r == 0 && !cli->json)
        (void)printf("%s\n", name);
    return r;
}

int cli_remove(struct cli *cli, const char *collection, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path(collection, NULL);
    return cli_remove_below(cli, path, argc, argv);
}

int cli_remove_below(struct cli *cli, const char *path, int argc, char **argv)
{
    return cli_each(cli, argc, argv, remove_one, path);
}

int cli_show(struct cli *cli, const char *collection, const char *name)
{
    _cleanup_free_ char *path = api_path(collection, name, NULL);
    _cleanup_json_ json_t *o = NULL;
    struct err err = ERR_INIT;
    if (!*name)
        return cli_usage(cli, "an empty word names nothing");
    if (cli_call(cli, "GET", path, NULL, &o, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_json(o);
    return 0;
}

/* ---- what people read ---- */

static void say(enum colour colour, const char *text)
{
    _cleanup_free_ char *line = text_line(text);
    (void)fflush(stdout);
    (void)fprintf(stderr, "%swarren:%s %s\n", colour_on(stderr, colour), colour_off(stderr, colour),
                  line);
}

void cli_note(const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    say(COLOUR_NONE, text);
    free(text);
}

int cli_fail(const struct cli *cli, const struct err *err)
{
    term_restore();
    _cleanup_free_ char *text = typed_sentence(cli->command, err->msg);
    say(COLOUR_RED, text[0] ? text : strerror(err->code));
    return cli->command && cli->command->fail_status ? cli->command->fail_status : 1;
}

int cli_usage(const struct cli *cli, const char *fmt, ...)
{
    va_list ap;
    char text[ERR_MSG_MAX];
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    const struct command *c = cli->command;
    say(COLOUR_RED, text);
    if (c)
        (void)fprintf(stderr, "usage: warren %s %s\n`warren help %s` says more\n", c->name,
                      c->synopsis, c->name);
    else
        (void)fprintf(stderr, "`warren help` lists the commands\n");
    return c && c->fail_status ? c->fail_status : STATUS_USAGE;
}

void cli_print_json(const json_t *v)
{
    /* ASCII on a terminal: an escaped character cannot do anything to it. */
    size_t flags = JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) |
                   (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0);
    (void)json_dumpf(v, stdout, flags);
    (void)fputc('\n', stdout);
}

void cli_print_answer(const struct cli *cli, const json_t *answer, const char *name)
{
    if (cli->json) {
        cli_print_json(answer);
        return;
    }
    _cleanup_free_ char *text = text_line(member_text(answer, name));
    (void)printf("%s\n", text);
}

/* ---- from argv to a command ---- */

static int unknown_command(const struct cli *cli, const char *word)
{
    _cleanup_free_ const char **words = xcalloc(commands_n, sizeof(*words));
    size_t n = 0;
    for (size_t i = 0; i < commands_n; i++)
        if (!commands[i]->hidden)
            words[n++] = commands[i]->name;
    const char *near = nearest(word, words, n);
    if (near)
        return cli_usage(cli, "there is no command '%s'; did you mean '%s'?", word, near);
    return cli_usage(cli, "there is no command '%s'", word);
}

static int check_operands(const struct cli *cli, int n, char **operands)
{
    const struct command *c = cli->command;
    if (n < c->min_args) {
        _cleanup_free_ char *name = typed_operand(c->synopsis, n);
        return cli_usage(cli, "missing %s", name ? name : "word");
    }
    if (c->max_args >= 0 && n > c->max_args)
        return cli_usage(cli, "unexpected word '%s'", operands[c->max_args]);
    return 0;
}

static int choose_colour(const struct cli *cli, struct err *err)
{
    if (cli->color && colour_choose(cli->color) < 0)
        return err_set(err, EINVAL, "--color is auto, always or never, not '%s'", cli->color);
    return 0;
}

static int run_command(struct cli *cli, int argc, char **argv)
{
    const struct command *c = cli->command;
    _cleanup_free_ void *opts = xcalloc(1, c->opts_size);
    _cleanup_free_ char **operands = xcalloc((size_t)argc + 1, sizeof(*operands));
    struct opt_set sets[] = { { c->opts, c->nopts, opts }, { global_opts, global_opts_n, cli } };
    struct err err = ERR_INIT;
    int n = 0;
    int r = opts_parse(sets, ARRAY_LEN(sets), c->stop_after, argc, argv, operands, &n, &err);
    if (r >= 0)
        r = choose_colour(cli, &err);
    if (cli->help) {
        help_command(stdout, c);
        r = 0;
    } else if (r < 0) {
        r = cli_usage(cli, "%s", err.msg);
    } else {
        r = check_operands(cli, n, operands);
        if (r == 0)
            r = c->run(cli, opts, n, operands);
    }
    opts_done(&sets[0]);
    return r;
}

static int dispatch(struct cli *cli, int argc, char **argv)
{
    _cleanup_free_ char **words = xcalloc((size_t)argc + 1, sizeof(*words));
    struct opt_set globals = { global_opts, global_opts_n, cli };
    struct err err = ERR_INIT;
    int n = 0, used = 0;
    if (opts_parse(&globals, 1, 0, argc - 1, argv + 1, words, &n, &err) < 0 ||
        choose_colour(cli, &err) < 0)
        return cli_usage(cli, "%s", err.msg);
    if (cli->version) {
        (void)printf("warren %s\n", WARREN_VERSION);
        return 0;
    }
    if (n == 0) {
        if (cli->help)
            help_overview(stdout);
        else
            help_screen(isatty(STDOUT_FILENO) ? stdout : stderr);
        return cli->help ? 0 : STATUS_USAGE;
    }
    cli->command = command_find(n, words, &used);
    if (!cli->command) {
        int r = help_group(n > 1 && words[1][0] == '-' ? 1 : n, words); /* "warren image --help" */
        return r < 0 ? unknown_command(cli, words[0]) : r;
    }
    return run_command(cli, n - used, words + used);
}

/* A descriptor we open must never take the place of a closed stdin, stdout or stderr. */
static void fill_standard_fds(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

int cli_main(int argc, char **argv)
{
    struct cli cli = { .socket = NULL };
    fill_standard_fds();
    int status = dispatch(&cli, argc, argv);
    client_free(cli.client);
    if (fflush(stdout) != 0 && status == 0) {
        if (errno != EPIPE)
            cli_note("cannot write the output: %s", strerror(errno));
        status = 1;
    }
    return status;
}

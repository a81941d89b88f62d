#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/shape.h"
#include "cli/table.h"
#include "cli/units.h"

struct template_opts {
    struct shape shape;
    const char *ready_command, *ready_http;
    struct opt_number ready_port, ready_timeout, warm;
    struct opt_list ports;
    bool public;
};

static const struct opt template_table[] = {
    SHAPE_IMAGE_OPTS(struct template_opts),
    SHAPE_LIMIT_OPTS(struct template_opts),
    SHAPE_NET_OPTS(struct template_opts),
    SHAPE_DOOR_OPTS(struct template_opts),
    { 0, "nofile", OPT_COUNT, offsetof(struct template_opts, shape.nofile), "N",
      "Open files of one process. Default 65536.", NULL },
    { 'e', "env", OPT_PAIRS, offsetof(struct template_opts, shape.env), "NAME=VALUE",
      "An environment variable for every command; may be given again.", NULL },
    { 'u', "user", OPT_TEXT, offsetof(struct template_opts, shape.user), "USER",
      "Who commands run as: a name, a uid, or uid:gid.", NULL },
    { 'w', "workdir", OPT_TEXT, offsetof(struct template_opts, shape.workdir), "DIR",
      "Where commands start.", NULL },
    { 0, "ready", OPT_TEXT, offsetof(struct template_opts, ready_command), "COMMAND",
      "It is ready once this shell command exits with 0.", NULL },
    { 0, "ready-port", OPT_COUNT, offsetof(struct template_opts, ready_port), "PORT",
      "It is ready once something inside takes connections on this port.", NULL },
    { 0, "ready-http", OPT_TEXT, offsetof(struct template_opts, ready_http), "PORT[/PATH]",
      "It is ready once an HTTP server inside answers this with 200.", NULL },
    { 0, "ready-timeout", OPT_DURATION, offsetof(struct template_opts, ready_timeout), "TIME",
      "How long it may take. Default 60s.", NULL },
    { 'p', "port", OPT_LIST, offsetof(struct template_opts, ports), "PORT",
      "A port that it serves; may be given again.", NULL },
    { 0, "warm", OPT_COUNT, offsetof(struct template_opts, warm), "N",
      "Sandboxes kept booted and ready. Default 0.", NULL },
    { 0, "public", OPT_FLAG, offsetof(struct template_opts, public), NULL,
      "Let other teams use it.", NULL },
};

static int put_http(json_t *ready, const char *text, struct err *err)
{
    const char *slash = strchr(text, '/');
    int64_t port;
    char number[8] = "";
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    if (n < sizeof(number))
        memcpy(number, text, n);
    if (count_parse(number, &port) < 0)
        return err_set(err, EINVAL, "--ready-http looks like 8080 or 8080/health");
    json_t *http = json_object();
    (void)json_object_set_new(ready, "http", http);
    (void)json_object_set_new(http, "port", json_integer(port));
    return object_text(http, "path", slash ? slash : "/", err);
}

static int put_ready(json_t *body, const struct template_opts *o, struct err *err)
{
    if (!!o->ready_command + o->ready_port.set + !!o->ready_http > 1)
        return err_set(err, EINVAL, "one of --ready, --ready-port and --ready-http is enough");
    if (!o->ready_command && !o->ready_port.set && !o->ready_http)
        return 0;
    json_t *ready = json_object();
    (void)json_object_set_new(body, "ready", ready);
    if (o->ready_port.set)
        (void)json_object_set_new(ready, "port", json_integer(o->ready_port.v));
    if (o->ready_http)
        return put_http(ready, o->ready_http, err);
    return o->ready_command ? object_text(ready, "command", o->ready_command, err) : 0;
}

static int put_rest(json_t *body, const struct template_opts *o, int argc, char **argv,
                    struct err *err)
{
    int r = object_text(body, "name", argv[0], err);
    if (argc > 1) {
        json_t *words = json_array();
        (void)json_object_set_new(body, "start_command", words);
        for (int i = 1; i < argc && r == 0; i++)
            r = list_text(words, argv[i], err);
    }
    if (o->ports.n) {
        json_t *ports = json_array();
        (void)json_object_set_new(body, "ports", ports);
        for (size_t i = 0; i < o->ports.n && r == 0; i++) {
            int64_t port;
            if (count_parse(o->ports.items[i], &port) < 0)
                r = err_set(err, EINVAL, "--port must be a number");
            else
                (void)json_array_append_new(ports, json_integer(port));
        }
    }
    if (o->ready_timeout.set)
        (void)json_object_set_new(body, "ready_timeout_s",
                                  json_real((double)o->ready_timeout.v / 1000));
    if (o->warm.set)
        (void)json_object_set_new(body, "warm", json_integer(o->warm.v));
    if (o->public)
        (void)json_object_set_new(body, "public", json_true());
    return r;
}

static int run_create(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct template_opts *o = opts;
    _cleanup_free_ char *path = api_path("templates", NULL);
    _cleanup_json_ json_t *body = NULL;
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    if (shape_body(&o->shape, &body, &err) < 0 || put_ready(body, o, &err) < 0 ||
        put_rest(body, o, argc, argv, &err) < 0 ||
        cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, made, "name");
    return 0;
}

static void put_row(struct listing *t, const json_t *o)
{
    char text[UNIT_TEXT_MAX], ready[48];
    cell_text(t, o, "name");
    cell_text(t, o, "team");
    cell_text(t, o, "image");
    listing_text(t, real_text(member_real(o, "cpus"), text));
    listing_text(t, size_text(member_int(o, "memory_mb") * 1024 * 1024, text));
    (void)snprintf(ready, sizeof(ready), "%lld of %lld",
                   (long long)member_int(o, "ready_sandboxes"), (long long)member_int(o, "warm"));
    listing_text(t, member_int(o, "warm") ? ready : NULL);
    cell_age(t, o, "created_at");
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "TEMPLATE", false }, { "TEAM", false }, { "IMAGE", false }, { "CPUS", true },
        { "MEMORY", true },    { "READY", true }, { "AGE", true },
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("templates", NULL);
    return table_pages(cli, path, "templates", &table);
}

static int run_get(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_show(cli, "templates", argv[0]);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_remove(cli, "templates", argc, argv);
}

const struct command cmd_template_create = {
    .name = "template create",
    .summary = "Make a template, or replace one",
    .synopsis = "[OPTIONS] NAME [-- START-COMMAND...]",
    .description =
        "Makes a starting point for sandboxes: an image, limits, a command that runs from the "
        "start, and how to tell that it is ready. `warren create --template NAME` answers once "
        "it is; with --warm, some are kept ready ahead and handed out at once.",
    .examples =
        (const struct example[]){
            { "A server, two of them ready at any time",
              "warren template create --ready-http 8000 --warm 2 web -- python3 -m http.server" },
            { "Small ones", "warren template create --memory 128m --cpus 0.5 small" },
            { "Ones that reach registries, git hosts and models",
              "warren template create --net agents coder" },
            { "Use it", "warren run --template web -- curl -s localhost:8000" },
            { NULL, NULL } },
    COMMAND_OPTS(template_table, struct template_opts),
    .stop_after = 1,
    .min_args = 1,
    .max_args = -1,
    .run = run_create,
};

const struct command cmd_template_ls = {
    .name = "template ls",
    .alias = "templates",
    .summary = "List templates",
    .synopsis = "",
    .description = "Lists your team's templates and the public ones of others, with how many "
                   "sandboxes of each are ready ahead.",
    .examples = (const struct example[]){ { "All", "warren template ls" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_ls,
};

const struct command cmd_template_get = {
    .name = "template get",
    .summary = "Show a template",
    .synopsis = "NAME",
    .description = "Prints the template as the API has it.",
    .examples = (const struct example[]){ { "One", "warren template get web" },
                                          { "How many are ready",
                                            "warren template get web | jq .ready_sandboxes" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@template",
    .run = run_get,
};

const struct command cmd_template_rm = {
    .name = "template rm",
    .summary = "Delete templates",
    .synopsis = "NAME...",
    .description = "Deletes each template and what is kept ready of it. Sandboxes that were made "
                   "from it stay.",
    .examples = (const struct example[]){ { "One", "warren template rm web" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@template",
    .run = run_rm,
};

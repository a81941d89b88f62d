#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"
#include "cli/units.h"

struct create_opts {
    struct opt_number port, expires;
    const char *data;
};

static const struct opt create_table[] = {
    { 'p', "port", OPT_COUNT, offsetof(struct create_opts, port), "PORT",
      "Only for this port. Default: every port.", NULL },
    { 0, "expires", OPT_DURATION, offsetof(struct create_opts, expires), "TIME",
      "How long it is good: 10m, 12h. Default one day.", NULL },
    { 0, "data", OPT_TEXT, offsetof(struct create_opts, data), "JSON",
      "An object that the server inside gets with each request, as X-Verified-User-Data.", NULL },
};

static int make_body(const struct create_opts *o, json_t **ret_body, struct err *err)
{
    _cleanup_json_ json_t *body = json_object();
    if (o->port.set)
        (void)json_object_set_new(body, "port", json_integer(o->port.v));
    if (o->expires.set)
        (void)json_object_set_new(body, "expires_s", json_integer(o->expires.v / 1000));
    if (o->data) {
        json_t *data = json_loads(o->data, 0, NULL);
        if (!json_is_object(data)) {
            json_decref(data);
            return err_set(err, EINVAL,
                           "--data must be a JSON object, such as '{\"user\":\"ann\"}'");
        }
        (void)json_object_set_new(body, "data", data);
    }
    *ret_body = take_ptr(body);
    return 0;
}

static int run_create(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "previews", "tokens", NULL);
    _cleanup_json_ json_t *body = NULL;
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    if (make_body(opts, &body, &err) < 0 || cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, made, *member_text(made, "url") ? "url" : "token");
    return 0;
}

static void put_row(struct listing *t, const json_t *o)
{
    char text[UNIT_TEXT_MAX], port[24] = "any";
    const json_t *data = json_object_get(o, "data");
    _cleanup_free_ char *shown = json_is_object(data) ? json_dumps(data, JSON_COMPACT) : NULL;
    if (member_int(o, "port"))
        (void)snprintf(port, sizeof(port), "%lld", (long long)member_int(o, "port"));
    cell_text(t, o, "id");
    listing_text(t, port);
    listing_text(t, duration_text(member_moment(o, "expires_at") - clock_now_ms(), text));
    listing_text(t, shown);
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "TOKEN", false }, { "PORT", true }, { "EXPIRES IN", true }, { "DATA", false }
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "previews", "tokens", NULL);
    return table_pages(cli, path, "tokens", &table);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "previews", "tokens", NULL);
    return cli_remove_below(cli, path, argc - 1, argv + 1);
}

const struct command cmd_token_create = {
    .name = "token create",
    .summary = "Make a token that lets its bearer into a sandbox's previews",
    .synopsis = "[OPTIONS] SANDBOX",
    .description =
        "Prints an address that a browser opens (with --port), or the token itself, which a "
        "program sends as X-Warren-Preview-Token. It is shown this once. A private sandbox "
        "asks for one; a public one does not, but the data of a token reaches its server "
        "all the same.",
    .examples =
        (const struct example[]){
            { "For a person, one hour", "warren token create --port 3000 --expires 1h box" },
            { "That says who comes",
              "warren token create --port 3000 --data '{\"user\":\"ann\"}' box" },
            { "Make a sandbox private", "warren update --preview private box" },
            { NULL, NULL } },
    COMMAND_OPTS(create_table, struct create_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_create,
};

const struct command cmd_token_ls = {
    .name = "token ls",
    .summary = "List the preview tokens of a sandbox",
    .synopsis = "SANDBOX",
    .description = "Lists the tokens that are good now: their ids, not the tokens themselves.",
    .examples = (const struct example[]){ { "All", "warren token ls box" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_ls,
};

const struct command cmd_token_rm = {
    .name = "token rm",
    .summary = "Revoke preview tokens",
    .synopsis = "SANDBOX TOKEN...",
    .description = "Revokes each token, by its id; it is refused within a second.",
    .examples = (const struct example[]){ { "One", "warren token rm box k3f9…" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_rm,
};

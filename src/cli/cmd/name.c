#include <errno.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"
#include "cli/units.h"

static int run_add(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("names", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    uint32_t port = 0;
    if (number_u32(argv[2], 65535, &port) < 0 || port == 0)
        return cli_usage(cli, "'%s' is no port: 1 to 65535", argv[2]);
    (void)json_object_set_new(body, "port", json_integer(port));
    if (object_text(body, "name", argv[0], &err) < 0 ||
        object_text(body, "sandbox", argv[1], &err) < 0 ||
        cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, made, "name");
    return 0;
}

/* How long one of its own is good, or why there is none. */
static void put_certificate(struct listing *t, const json_t *certificate)
{
    char left[UNIT_TEXT_MAX], text[UNIT_TEXT_MAX + 16];
    int64_t until = member_moment(certificate, "expires_at");
    if (!until) {
        listing_text(t, member_text(certificate, "error"));
        return;
    }
    (void)snprintf(text, sizeof(text), "%s left", duration_text(until - clock_now_ms(), left));
    listing_text(t, text);
}

static void put_row(struct listing *t, const json_t *o)
{
    cell_text(t, o, "name");
    cell_text(t, o, "sandbox");
    cell_int(t, o, "port");
    cell_age(t, o, "created_at");
    put_certificate(t, json_object_get(o, "certificate"));
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "NAME", false }, { "SANDBOX", false },     { "PORT", true },
        { "AGE", true },   { "CERTIFICATE", false },
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("names", NULL);
    return table_pages(cli, path, "names", &table);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_remove(cli, "names", argc, argv);
}

const struct command cmd_name_add = {
    .name = "name add",
    .summary = "Reach a port of a sandbox under a name of your own",
    .synopsis = "NAME SANDBOX PORT",
    .description =
        "Requests for NAME go to PORT of SANDBOX. That the name leads to this machine (a "
        "CNAME or A record, or a proxy) is yours to see to. A name that you have already "
        "is moved; one of another team cannot be had.",
    .examples = (const struct example[]){ { "Name it", "warren name add app.example.com box 3000" },
                                          { "Move it to the next version",
                                            "warren name add app.example.com box-2 3000" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 3,
    .max_args = 3,
    .operands = "@sandbox",
    .run = run_add,
};

const struct command cmd_name_ls = {
    .name = "name ls",
    .alias = "names",
    .summary = "List names of your own",
    .synopsis = "",
    .description = "Lists your team's names, the ports that they lead to, and for how long the "
                   "certificate that is a name's own is good, or what keeps it from one.",
    .examples = (const struct example[]){ { "All", "warren name ls" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_ls,
};

const struct command cmd_name_rm = {
    .name = "name rm",
    .summary = "Give names up",
    .synopsis = "NAME...",
    .description = "Each name leads nowhere from then on, and anybody may take it.",
    .examples =
        (const struct example[]){ { "One", "warren name rm app.example.com" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .run = run_rm,
};

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"

static void put_row(struct listing *t, const char *name, const json_t *sum, const char *events)
{
    listing_text(t, name);
    cell_int(t, sum, events);
    cell_int(t, sum, "denied");
    cell_size(t, sum, "sent_bytes");
    cell_size(t, sum, "received_bytes");
}

static void print_usage(const json_t *usage)
{
    static const struct column columns[] = {
        { "HOST", false }, { "CONNECTIONS", true }, { "DENIED", true },
        { "SENT", true },  { "RECEIVED", true },
    };
    const json_t *other = json_object_get(usage, "other"), *h;
    const json_t *previews = json_object_get(usage, "previews");
    struct listing t;
    size_t i;
    listing_init(&t, columns, ARRAY_LEN(columns));
    json_array_foreach(member_list(usage, "hosts"), i, h)
        put_row(&t, member_text(h, "host"), h, "connections");
    if (member_int(other, "connections") || member_int(other, "denied"))
        put_row(&t, "(other hosts)", other, "connections");
    if (member_int(previews, "requests"))
        put_row(&t, "(previews)", previews, "requests");
    put_row(&t, "(all that left it)", json_object_get(usage, "egress"), "connections");
    table_finish(&t);
}

static int run_usage(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "network", "usage", NULL);
    _cleanup_json_ json_t *usage = NULL;
    struct err err = ERR_INIT;
    if (cli_call(cli, "GET", path, NULL, &usage, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(usage);
    else
        print_usage(usage);
    return 0;
}

const struct command cmd_net_usage = {
    .name = "net usage",
    .summary = "Show what a sandbox's network carried, by host",
    .synopsis = "SANDBOX",
    .description =
        "Lists the hosts that a sandbox talked to or tried to since it was made, those that carried most "
        "first, and what came in through previews. Open connections count.",
    .examples =
        (const struct example[]){ { "Where do its bytes go?", "warren net usage box" },
                                  { "One host", "warren --json net usage box | jq '.hosts[] | "
                                                "select(.host == \"example.com\")'" },
                                  { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_usage,
};

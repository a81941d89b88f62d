#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"

static void put_row(struct listing *t, const json_t *o)
{
    cell_int(t, o, "port");
    cell_text(t, o, "address");
    cell_text(t, o, "program");
    cell_text(t, o, "url");
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "PORT", true }, { "ADDRESS", false }, { "PROGRAM", false }, { "URL", false }
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "ports", NULL);
    return table_pages(cli, path, "ports", &table);
}

const struct command cmd_ports = {
    .name = "ports",
    .summary = "List what listens in a sandbox, and where it is reached",
    .synopsis = "SANDBOX",
    .description =
        "Lists the TCP ports that programs in the sandbox listen on, the program, and the "
        "address under which a browser or another program reaches it from outside. What "
        "listens on 127.0.0.1 inside is reached too.",
    .examples =
        (const struct example[]){
            { "What is there?", "warren ports box" },
            { "The address of port 3000",
              "warren --json ports box | jq -r '.[] | select(.port == 3000).url'" },
            { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run,
};

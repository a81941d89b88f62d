#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/object.h"
#include "cli/pages.h"
#include "cli/term.h"
#include "cli/units.h"

#define MIB (1024 * 1024)

struct create_opts {
    struct opt_number size;
};

static const struct opt create_table[] = {
    { 's', "size", OPT_SIZE, offsetof(struct create_opts, size), "SIZE",
      "What it may hold, such as 500m or 2g; a bare number is MiB. Default 10g.", NULL },
};

static void put_size(json_t *body, int64_t bytes)
{
    (void)json_object_set_new(body, "size_mb", json_integer(bytes / MIB + (bytes % MIB != 0)));
}

static int run_create(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct create_opts *o = opts;
    _cleanup_free_ char *path = api_path("volumes", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    if (o->size.set)
        put_size(body, o->size.v);
    if ((argc > 0 && object_text(body, "name", argv[0], &err) < 0) ||
        cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(made);
    else
        (void)printf("%s\n", member_text(made, "name"));
    return 0;
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "VOLUME", false },   { "ID", false }, { "SIZE", true },
        { "SANDBOXES", true }, { "AGE", true },
    };
    _cleanup_free_ char *path = api_path("volumes", NULL);
    _cleanup_json_ json_t *list = NULL;
    struct err err = ERR_INIT;
    struct listing t;
    const json_t *o;
    size_t i;
    if (pages_read(cli, path, "volumes", &list, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(list);
        return 0;
    }
    listing_init(&t, columns, ARRAY_LEN(columns));
    json_array_foreach(list, i, o)
    {
        char text[UNIT_TEXT_MAX], count[24];
        int64_t made = member_moment(o, "created_at");
        listing_text(&t, member_text(o, "name"));
        listing_text(&t, member_text(o, "id"));
        listing_text(&t, size_text(member_int(o, "size_mb") * MIB, text));
        (void)snprintf(count, sizeof(count), "%lld", (long long)member_int(o, "sandboxes"));
        listing_text(&t, count);
        listing_text(&t, made ? duration_text(clock_now_ms() - made, text) : NULL);
    }
    listing_print(&t, stdout, term_width(STDOUT_FILENO));
    listing_done(&t);
    return 0;
}

static int run_get(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_show(cli, "volumes", argv[0]);
}

static int run_resize(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("volumes", argv[0], NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *o = NULL;
    struct err err = ERR_INIT;
    int64_t bytes;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no volume");
    if (size_parse(argv[1], &bytes) < 0)
        return cli_usage(cli, "a size looks like 500m or 2g");
    put_size(body, bytes);
    if (cli_call(cli, "PATCH", path, body, &o, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(o);
    return 0;
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_remove(cli, "volumes", argc, argv);
}

const struct command cmd_volume_create = {
    .name = "volume create",
    .summary = "Make a volume",
    .synopsis = "[OPTIONS] [NAME]",
    .description = "Makes a place for files that outlive sandboxes, and prints its name. Sandboxes "
                   "see it with `--volume NAME:/PATH`, several at once if you like.",
    .examples =
        (const struct example[]){
            { "With a name and a limit", "warren volume create --size 2g data" },
            { "Use it", "warren run --volume data:/data -- sh -c 'date >> /data/log'" },
            { "Only to read", "warren run --volume data:/data:ro -- cat /data/log" },
            { NULL, NULL } },
    COMMAND_OPTS(create_table, struct create_opts),
    .stop_after = OPTS_ALL,
    .max_args = 1,
    .run = run_create,
};

const struct command cmd_volume_ls = {
    .name = "volume ls",
    .alias = "volumes",
    .summary = "List volumes",
    .synopsis = "",
    .description = "Lists your team's volumes, how much each may hold and how many sandboxes have "
                   "it.",
    .examples = (const struct example[]){ { "All", "warren volume ls" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_ls,
};

const struct command cmd_volume_get = {
    .name = "volume get",
    .summary = "Show a volume",
    .synopsis = "NAME",
    .description = "Prints the volume as the API has it, with how much it holds.",
    .examples =
        (const struct example[]){ { "How full it is", "warren volume get data | jq .used_bytes" },
                                  { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@volume",
    .run = run_get,
};

const struct command cmd_volume_resize = {
    .name = "volume resize",
    .summary = "Change how much a volume may hold",
    .synopsis = "NAME SIZE",
    .description = "Changes the limit at once, also while sandboxes use the volume. What is in it "
                   "stays, even where that is more than the new limit.",
    .examples = (const struct example[]){ { "More room", "warren volume resize data 20g" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = 2,
    .operands = "@volume",
    .run = run_resize,
};

const struct command cmd_volume_rm = {
    .name = "volume rm",
    .summary = "Delete volumes",
    .synopsis = "NAME...",
    .description = "Deletes each volume and all files in it. One that a sandbox has, running or "
                   "stopped, stays: delete the sandbox first.",
    .examples = (const struct example[]){ { "One", "warren volume rm data" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@volume",
    .run = run_rm,
};

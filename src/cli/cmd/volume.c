#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"
#include "cli/units.h"

#define MIB (1024 * 1024)

struct create_opts {
    struct opt_number size;
    const char *bucket, *endpoint, *prefix, *region, *access_key, *secret;
    bool path_style, read_only;
};

static const struct opt create_table[] = {
    { 's', "size", OPT_SIZE, offsetof(struct create_opts, size), "SIZE",
      "What it may hold, such as 500m or 2g; a bare number is MiB. Default 10g.", NULL },
    { 0, "bucket", OPT_TEXT, offsetof(struct create_opts, bucket), "BUCKET",
      "Show this bucket of an object store instead of files of its own.", NULL },
    { 0, "endpoint", OPT_TEXT, offsetof(struct create_opts, endpoint), "URL",
      "Where the store is, such as https://s3.example.org.", NULL },
    { 0, "access-key", OPT_TEXT, offsetof(struct create_opts, access_key), "KEY",
      "The public half of the key to the bucket.", NULL },
    { 0, "secret", OPT_TEXT, offsetof(struct create_opts, secret), "NAME",
      "The secret with its other half; `warren secret set` makes one.", "@secret" },
    { 0, "prefix", OPT_TEXT, offsetof(struct create_opts, prefix), "PREFIX",
      "Only what lies below this in the bucket.", NULL },
    { 0, "region", OPT_TEXT, offsetof(struct create_opts, region), "REGION",
      "The store's region. Default us-east-1.", NULL },
    { 0, "path-style", OPT_FLAG, offsetof(struct create_opts, path_style), NULL,
      "The bucket's name is in the path, not in the host's name.", NULL },
    { 0, "read-only", OPT_FLAG, offsetof(struct create_opts, read_only), NULL,
      "Nobody writes to the bucket.", NULL },
};

static void put_size(json_t *body, int64_t bytes)
{
    (void)json_object_set_new(body, "size_mb", json_integer(bytes / MIB + (bytes % MIB != 0)));
}

static int put_bucket(json_t *body, const struct create_opts *o, struct err *err)
{
    const struct {
        const char *name, *value;
    } texts[] = { { "bucket", o->bucket },         { "endpoint", o->endpoint },
                  { "access_key", o->access_key }, { "secret", o->secret },
                  { "prefix", o->prefix },         { "region", o->region } };
    json_t *b = json_object();
    int r = 0;
    (void)json_object_set_new(body, "kind", json_string("bucket"));
    (void)json_object_set_new(body, "bucket", b);
    for (size_t i = 0; i < ARRAY_LEN(texts) && r >= 0; i++)
        if (texts[i].value)
            r = object_text(b, texts[i].name, texts[i].value, err);
    if (o->path_style)
        (void)json_object_set_new(b, "path_style", json_true());
    if (o->read_only)
        (void)json_object_set_new(b, "read_only", json_true());
    return r;
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
    if (!o->bucket && (o->endpoint || o->access_key || o->secret || o->prefix || o->region ||
                       o->path_style || o->read_only))
        return cli_usage(cli, "--bucket says which bucket these are about");
    if ((argc > 0 && object_text(body, "name", argv[0], &err) < 0) ||
        (o->bucket && put_bucket(body, o, &err) < 0) ||
        cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, made, "name");
    return 0;
}

static void put_row(struct listing *t, const json_t *o)
{
    char text[UNIT_TEXT_MAX];
    cell_text(t, o, "name");
    cell_text(t, o, "id");
    bool bucket = strcmp(member_text(o, "kind"), "bucket") == 0;
    listing_text(t, bucket ? "bucket" : size_text(member_int(o, "size_mb") * MIB, text));
    cell_int(t, o, "sandboxes");
    cell_age(t, o, "created_at");
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "VOLUME", false },   { "ID", COLUMN_ID }, { "SIZE", true },
        { "SANDBOXES", true }, { "AGE", true },
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("volumes", NULL);
    return table_pages(cli, path, "volumes", &table);
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
                   "see it with `--volume NAME:/PATH`, several at once if you like. With "
                   "--bucket the files are the objects of a bucket; its key stays outside of "
                   "every sandbox.",
    .examples =
        (const struct example[]){
            { "With a name and a limit", "warren volume create --size 2g data" },
            { "Use it", "warren run --volume data:/data -- sh -c 'date >> /data/log'" },
            { "Only to read", "warren run --volume data:/data:ro -- cat /data/log" },
            { "A bucket of an object store",
              "warren volume create --bucket models --endpoint https://s3.example.org "
              "--access-key AKIA1 --secret s3 models" },
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
    .description = "Deletes each volume, all files in it and its checkpoints. One that a sandbox "
                   "has, running or stopped, stays: delete the sandbox first.",
    .examples = (const struct example[]){ { "One", "warren volume rm data" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@volume",
    .run = run_rm,
};

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"

#define VALUE_MAX (64 * 1024)

/* Standard input whole, less one line end: a value on the command line would be seen by others. */
static int read_value(struct buf *out, struct err *err)
{
    char block[4096];
    ssize_t n;
    while ((n = read(STDIN_FILENO, block, sizeof(block))) > 0)
        if (buf_append(out, block, (size_t)n) < 0)
            return err_set(err, EFBIG, "a secret has at most %d bytes", VALUE_MAX);
    if (n < 0)
        return err_set(err, errno, "cannot read standard input");
    if (out->len && out->data[out->len - 1] == '\n')
        out->len--;
    if (out->len == 0)
        return err_set(err, EINVAL, "standard input is empty: it is the secret");
    if (buf_append(out, "", 1) < 0)
        return err_set(err, EFBIG, "a secret has at most %d bytes", VALUE_MAX);
    return 0;
}

static int put_value(struct cli *cli, const char *name, const char *value, json_t **ret_s,
                     struct err *err)
{
    char code[REQUEST_CODE_MAX] = "";
    _cleanup_free_ char *all = api_path("secrets", NULL), *one = api_path("secrets", name, NULL);
    _cleanup_json_ json_t *body = json_object();
    int r = object_text(body, "value", value, err);
    if (r == 0)
        r = cli_call_code(cli, "PATCH", one, body, ret_s, code, err);
    if (r == 0 || strcmp(code, "secret_not_found") != 0)
        return r;
    r = object_text(body, "name", name, err);
    return r < 0 ? r : cli_call(cli, "POST", all, body, ret_s, err);
}

static int run_set(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_(buf_done) struct buf value = BUF_INIT(VALUE_MAX + 2);
    _cleanup_json_ json_t *s = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no secret");
    if (isatty(STDIN_FILENO))
        cli_note("reading the value from standard input; end it with ctrl-d");
    if (read_value(&value, &err) < 0 || put_value(cli, argv[0], value.data, &s, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, s, "name");
    return 0;
}

static void put_row(struct listing *t, const json_t *o)
{
    cell_text(t, o, "name");
    cell_text(t, o, "id");
    cell_int(t, o, "version");
    cell_age(t, o, "updated_at");
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "SECRET", false },
        { "ID", COLUMN_ID },
        { "VERSION", true },
        { "CHANGED", true },
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("secrets", NULL);
    return table_pages(cli, path, "secrets", &table);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_remove(cli, "secrets", argc, argv);
}

const struct command cmd_secret_set = {
    .name = "secret set",
    .summary = "Keep a secret, or change one",
    .synopsis = "NAME",
    .description =
        "Reads the value from standard input, less one line end, and keeps it under NAME. "
        "It is never shown again; each change is a new version.",
    .examples =
        (const struct example[]){
            { "From a file", "warren secret set openai < key.txt" },
            { "From a password manager", "pass show api/openai | warren secret set openai" },
            { "Let a sandbox's requests carry it", "warren create --bind openai@api.openai.com" },
            { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@secret",
    .run = run_set,
};

const struct command cmd_secret_ls = {
    .name = "secret ls",
    .alias = "secrets",
    .summary = "List secrets",
    .synopsis = "",
    .description = "Lists your team's secrets: their names, not their values.",
    .examples = (const struct example[]){ { "All", "warren secret ls" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_ls,
};

const struct command cmd_secret_rm = {
    .name = "secret rm",
    .summary = "Forget secrets",
    .synopsis = "NAME...",
    .description = "Forgets each secret for good.",
    .examples = (const struct example[]){ { "One", "warren secret rm openai" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@secret",
    .run = run_rm,
};

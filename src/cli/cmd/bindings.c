#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"

static void put_methods(struct listing *t, const json_t *binding)
{
    _cleanup_free_ char *methods = member_words(binding, "methods", ",");
    listing_text(t, *methods ? methods : "any");
}

static void put_place(struct listing *t, const json_t *binding)
{
    char text[300];
    (void)snprintf(text, sizeof(text), "%s:%d", member_text(binding, "host"),
                   (int)member_int(binding, "port"));
    listing_text(t, text);
}

/* How requests carry it: "header x-api-key", "basic me". */
static void put_way(struct listing *t, const json_t *binding)
{
    static const char *const details[] = { "header", "query", "user", "service" };
    char text[400];
    const char *detail = "";
    for (size_t i = 0; i < ARRAY_LEN(details) && !*detail; i++)
        detail = member_text(binding, details[i]);
    (void)snprintf(text, sizeof(text), "%s%s%.300s", member_text(binding, "as"), *detail ? " " : "",
                   detail);
    listing_text(t, text);
}

static void put_name(struct listing *t, const json_t *binding)
{
    char text[100] = "";
    const char *name = member_text(binding, "name");
    if (*name)
        (void)snprintf(text, sizeof(text), "http://%.63s.warren", name);
    listing_text(t, text);
}

static void put_row(struct listing *t, const json_t *binding)
{
    cell_text(t, binding, "secret");
    put_place(t, binding);
    put_methods(t, binding);
    cell_text(t, binding, "path");
    put_way(t, binding);
    put_name(t, binding);
    listing_text(t, member_true(binding, "transparent") ? "yes" : "no");
    cell_text(t, binding, "answer");
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "SECRET", false }, { "HOST", false }, { "METHODS", false }, { "PATH", false },
        { "AS", false },     { "NAME", false }, { "HTTPS", false },   { "ANSWER", false },
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], NULL);
    _cleanup_json_ json_t *sandbox = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (cli_call(cli, "GET", path, NULL, &sandbox, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(member_list(sandbox, "bindings"));
    else
        table_print(&table, member_list(sandbox, "bindings"), SIZE_MAX);
    return 0;
}

const struct command cmd_bindings = {
    .name = "bindings",
    .summary = "Show which secrets a sandbox's requests carry",
    .synopsis = "SANDBOX",
    .description =
        "Lists a sandbox's bindings: the secret, which requests carry it, and how. The value is added "
        "on the way out and is never inside. A binding is written SECRET@HOST[:PORT][/PATH] and "
        "words: as=bearer (the default), as=header header=NAME format=\"Key {}\", as=query "
        "query=NAME, as=basic user=NAME, as=git, as=sigv4 access_key=ID region=R service=S; "
        "methods=GET,POST; name=NAME for http://NAME.warren; transparent=no if https://HOST itself "
        "is not to be answered; answer=json-only, status or none to let less of an answer back.",
    .examples =
        (const struct example[]){
            { "A key, once", "warren secret set anthropic" },
            { "Let requests carry it",
              "warren create --name box --bind 'anthropic@api.anthropic.com/v1/* "
              "as=header header=x-api-key name=anthropic'" },
            { "What there is", "warren bindings box" },
            { "Take it away", "warren update --no-bindings box" },
            { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run,
};

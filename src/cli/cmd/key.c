#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"
#include "cli/units.h"

struct key_opts {
    const char *for_team;
    bool admin;
};

static const struct opt key_table[] = {
    { 0, "for-team", OPT_TEXT, offsetof(struct key_opts, for_team), "NAME",
      "The team it belongs to. Default: your own.", "@team" },
    { 0, "admin", OPT_FLAG, offsetof(struct key_opts, admin), NULL,
      "An operator's: it looks after all teams.", NULL },
};

static int run_create(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct key_opts *o = opts;
    _cleanup_free_ char *path = api_path("keys", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *key = NULL;
    struct err err = ERR_INIT;
    if (o->admin)
        (void)json_object_set_new(body, "role", json_string("admin"));
    if (object_text(body, "name", argv[0], &err) < 0 ||
        (o->for_team && object_text(body, "team", o->for_team, &err) < 0) ||
        cli_call(cli, "POST", path, body, &key, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, key, "key");
    if (isatty(STDOUT_FILENO))
        cli_note("this is the only time the key is shown");
    return 0;
}

static void put_row(struct listing *t, const json_t *key)
{
    char text[UNIT_TEXT_MAX];
    int64_t used = member_moment(key, "last_used_at");
    cell_text(t, key, "id");
    cell_text(t, key, "name");
    cell_text(t, key, "team");
    cell_text(t, key, "role");
    cell_age(t, key, "created_at");
    listing_text(t, used ? duration_text(clock_now_ms() - used, text) : "never");
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "ID", COLUMN_ID }, { "NAME", false }, { "TEAM", false },
        { "ROLE", false },   { "AGE", true },   { "LAST USED", true },
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("keys", NULL);
    return table_pages(cli, path, "keys", &table);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_remove(cli, "keys", argc, argv);
}

const struct command cmd_key_create = {
    .name = "key create",
    .summary = "Issue an API key and print it",
    .synopsis = "[OPTIONS] NAME",
    .description =
        "Issues a key for the API and prints it, once: only its hash is stored. It works over "
        "TCP, in the Authorization header or as WARREN_API_KEY. NAME is for you to know it by.",
    .examples =
        (const struct example[]){
            { "For a program", "warren key create ci" },
            { "For another team, as the operator", "warren key create --for-team red ci" },
            { "And use it", "WARREN_URL=http://127.0.0.1:7070 WARREN_API_KEY=... warren ls" },
            { NULL, NULL } },
    COMMAND_OPTS(key_table, struct key_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .run = run_create,
};

const struct command cmd_key_ls = {
    .name = "key ls",
    .alias = "keys",
    .summary = "List API keys",
    .synopsis = "",
    .description =
        "Lists the keys that work: id, name, team, role, when each was issued and last used. The "
        "keys themselves are not stored and cannot be shown.",
    .examples = (const struct example[]){ { "All", "warren key ls" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_ls,
};

const struct command cmd_key_rm = {
    .name = "key rm",
    .summary = "Revoke API keys",
    .synopsis = "ID...",
    .description = "Revokes each key by its id, as `warren key ls` shows it. It is refused from "
                   "then on.",
    .examples =
        (const struct example[]){ { "One", "warren key rm k3f9a2c8d1e07b645f21" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@key",
    .run = run_rm,
};

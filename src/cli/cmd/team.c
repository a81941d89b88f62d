#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"
#include "cli/units.h"

#define MIB (1024 * 1024)

struct quota_opts {
    struct opt_number sandboxes, memory, disk;
    struct opt_real cpus;
    struct opt_list no;
};

static const struct opt quota_table[] = {
    { 0, "sandboxes", OPT_COUNT, offsetof(struct quota_opts, sandboxes), "N",
      "How many sandboxes it may have.", NULL },
    { 0, "cpus", OPT_REAL, offsetof(struct quota_opts, cpus), "N",
      "How many cpus its running sandboxes may have together.", NULL },
    { 0, "memory", OPT_SIZE, offsetof(struct quota_opts, memory), "SIZE",
      "How much memory its running sandboxes may have together.", NULL },
    { 0, "disk", OPT_SIZE, offsetof(struct quota_opts, disk), "SIZE",
      "How much disk its sandboxes may have together.", NULL },
    { 0, "no", OPT_LIST, offsetof(struct quota_opts, no), "QUOTA",
      "Lift this quota; may be given again.", "sandboxes cpus memory disk" },
};

static void put_count(json_t *o, const char *name, const struct opt_number *n, int64_t unit)
{
    if (n->set)
        (void)json_object_set_new(o, name, json_integer(n->v / unit + (n->v % unit != 0)));
}

/* The member `quotas` of a request, with what was given. */
static int put_quotas(json_t *body, const struct quota_opts *o, struct err *err)
{
    static const char *const names[][2] = { { "sandboxes", "sandboxes" },
                                            { "cpus", "cpus" },
                                            { "memory", "memory_mb" },
                                            { "disk", "disk_mb" } };
    json_t *quotas = json_object();
    (void)json_object_set_new(body, "quotas", quotas);
    put_count(quotas, "sandboxes", &o->sandboxes, 1);
    put_count(quotas, "memory_mb", &o->memory, MIB);
    put_count(quotas, "disk_mb", &o->disk, MIB);
    if (o->cpus.set)
        (void)json_object_set_new(quotas, "cpus", json_real(o->cpus.v));
    for (size_t i = 0; i < o->no.n; i++) {
        size_t k = 0;
        while (k < ARRAY_LEN(names) && strcmp(names[k][0], o->no.items[i]) != 0)
            k++;
        if (k == ARRAY_LEN(names))
            return err_set(err, EINVAL,
                           "there is no quota '%s'; there are sandboxes, cpus, "
                           "memory and disk",
                           o->no.items[i]);
        (void)json_object_set_new(quotas, names[k][1], json_null());
    }
    return 0;
}

static int ask(struct cli *cli, const char *method, const char *path, json_t *body,
               const struct quota_opts *o)
{
    _cleanup_json_ json_t *team = NULL;
    struct err err = ERR_INIT;
    if (put_quotas(body, o, &err) < 0 || cli_call(cli, method, path, body, &team, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, team, "name");
    return 0;
}

static int run_create(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("teams", NULL);
    _cleanup_json_ json_t *body = json_object();
    struct err err = ERR_INIT;
    if (object_text(body, "name", argv[0], &err) < 0)
        return cli_fail(cli, &err);
    return ask(cli, "POST", path, body, opts);
}

static int run_update(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("teams", argv[0], NULL);
    _cleanup_json_ json_t *body = json_object();
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no team");
    return ask(cli, "PATCH", path, body, opts);
}

/* "3 of 10", "3". */
static void put_use(struct listing *t, const json_t *team, const char *name, int64_t unit)
{
    const json_t *quotas = json_object_get(team, "quotas"),
                 *in_use = json_object_get(team, "in_use");
    char used[UNIT_TEXT_MAX], limit[UNIT_TEXT_MAX], text[2 * UNIT_TEXT_MAX + 8];
    double now = member_real(in_use, name), most = member_real(quotas, name);
    const char *a = unit ? size_text((int64_t)now * unit, used) : real_text(now, used);
    const char *b = unit ? size_text((int64_t)most * unit, limit) : real_text(most, limit);
    if (json_is_null(json_object_get(quotas, name)))
        (void)snprintf(text, sizeof(text), "%s", a);
    else
        (void)snprintf(text, sizeof(text), "%s of %s", a, b);
    listing_text(t, text);
}

static void put_row(struct listing *t, const json_t *team)
{
    cell_text(t, team, "name");
    put_use(t, team, "sandboxes", 0);
    put_use(t, team, "cpus", 0);
    put_use(t, team, "memory_mb", MIB);
    put_use(t, team, "disk_mb", MIB);
    cell_age(t, team, "created_at");
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "TEAM", false },  { "SANDBOXES", true }, { "CPUS", true },
        { "MEMORY", true }, { "DISK", true },      { "AGE", true },
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("teams", NULL);
    return table_pages(cli, path, "teams", &table);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_remove(cli, "teams", argc, argv);
}

const struct command cmd_team_create = {
    .name = "team create",
    .summary = "Make a team",
    .synopsis = "[OPTIONS] NAME",
    .description = "Makes a team: sandboxes, images, templates and keys that other teams' keys "
                   "cannot see, and quotas on what they may use. Its keys come from `warren key "
                   "create --for-team`. For the operator.",
    .examples =
        (const struct example[]){
            { "With a key", "warren team create red && warren key create --for-team red ci" },
            { "Ten sandboxes, of which four may run at once",
              "warren team create --sandboxes 10 --cpus 4 --memory 4g red" },
            { "Work for it", "warren --team red ls" },
            { NULL, NULL } },
    COMMAND_OPTS(quota_table, struct quota_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .run = run_create,
};

const struct command cmd_team_update = {
    .name = "team update",
    .summary = "Change a team's quotas",
    .synopsis = "OPTIONS NAME",
    .description = "Sets the quotas that are given and leaves the others. What is over a new quota "
                   "goes on; nothing can be added to it.",
    .examples = (const struct example[]){ { "More cpus", "warren team update --cpus 8 red" },
                                          { "Any number of sandboxes",
                                            "warren team update --no sandboxes red" },
                                          { NULL, NULL } },
    COMMAND_OPTS(quota_table, struct quota_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@team",
    .run = run_update,
};

const struct command cmd_team_ls = {
    .name = "team ls",
    .alias = "teams",
    .summary = "List teams and what they use",
    .synopsis = "",
    .description = "Lists the teams with what each has in use and, where it has quotas, of how "
                   "much. A member's key sees its own team.",
    .examples = (const struct example[]){ { "All", "warren team ls" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_ls,
};

const struct command cmd_team_rm = {
    .name = "team rm",
    .summary = "Delete teams and revoke their keys",
    .synopsis = "NAME...",
    .description = "Deletes each team that has no sandboxes and no images left: its keys are "
                   "refused from then on, its templates and what is known of its past go.",
    .examples = (const struct example[]){ { "One", "warren team rm red" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@team",
    .run = run_rm,
};

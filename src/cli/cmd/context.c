#include <string.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/object.h"
#include "cli/table.h"

/* ---- ls ---- */

static void put_context(struct listing *t, bool current, const char *name, const json_t *c)
{
    listing_text(t, current ? "*" : " ");
    listing_text(t, name);
    listing_text(t, c ? member_text(c, "url") : "this machine's socket");
    listing_text(t, c ? member_text(c, "team") : "");
}

static json_t *shown(const char *name, const json_t *c, bool current)
{
    json_t *o = json_pack("{s:s,s:b}", "name", name, "current", current);
    (void)json_object_set(o, "url", c ? json_object_get(c, "url") : NULL);
    if (!c)
        (void)json_object_set_new(o, "url", json_null());
    return o;
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "", false }, { "CONTEXT", false }, { "ADDRESS", false }, { "TEAM", false }
    };
    _cleanup_(contexts_freep) struct contexts *all = NULL;
    _cleanup_json_ json_t *list = json_array();
    struct listing t;
    struct err err = ERR_INIT;
    const char *name;
    json_t *c;
    if (contexts_read(&all, &err) < 0)
        return cli_fail(cli, &err);
    const char *current = contexts_current(all);
    (void)json_array_append_new(list, shown(CONTEXT_LOCAL, NULL, !current));
    listing_init(&t, columns, ARRAY_LEN(columns));
    put_context(&t, !current, CONTEXT_LOCAL, NULL);
    json_object_foreach((json_t *)(uintptr_t)contexts_all(all), name, c) {
        bool is_current = current && strcmp(name, current) == 0;
        put_context(&t, is_current, name, c);
        (void)json_array_append_new(list, shown(name, c, is_current));
    }
    if (!cli->json) {
        table_finish(&t);
        return 0;
    }
    listing_done(&t);
    cli_print_json(list);
    return 0;
}

const struct command cmd_context_ls = {
    .name = "context ls",
    .summary = "List the daemons that you logged in to",
    .synopsis = "",
    .description = "Lists contexts by name, the current one with a star. No key is shown.",
    .examples = (const struct example[]){ { "All", "warren context ls" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_ls,
};

/* ---- use ---- */

static int run_use(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_(contexts_freep) struct contexts *all = NULL;
    struct err err = ERR_INIT;
    if (contexts_read_to_change(&all, &err) < 0 || contexts_use(all, argv[0], &err) < 0 ||
        contexts_write(all, &err) < 0)
        return cli_fail(cli, &err);
    (void)printf("%s\n", argv[0]);
    return 0;
}

const struct command cmd_context_use = {
    .name = "context use",
    .summary = "Choose the daemon that commands talk to",
    .synopsis = "CONTEXT",
    .description = "Commands go to this daemon from now on, unless an option or a variable says "
                   "otherwise. `local` is this machine's own.",
    .examples = (const struct example[]){ { "Another daemon", "warren context use staging" },
                                          { "This machine's own", "warren context use local" },
                                          { "For one command", "warren --context staging ls" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@context",
    .run = run_use,
};

/* ---- rm ---- */

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_(contexts_freep) struct contexts *all = NULL;
    struct err err = ERR_INIT;
    if (contexts_read_to_change(&all, &err) < 0)
        return cli_fail(cli, &err);
    for (int i = 0; i < argc; i++)
        if (contexts_remove(all, argv[i], &err) < 0)
            return cli_fail(cli, &err);
    if (contexts_write(all, &err) < 0)
        return cli_fail(cli, &err);
    for (int i = 0; i < argc; i++)
        (void)printf("%s\n", argv[i]);
    return 0;
}

const struct command cmd_context_rm = {
    .name = "context rm",
    .summary = "Forget daemons and their keys",
    .synopsis = "CONTEXT...",
    .description =
        "Removes contexts from this machine. The daemons still take the keys: `warren key "
        "rm` revokes them there.",
    .examples = (const struct example[]){ { "One", "warren context rm staging" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@context",
    .run = run_rm,
};

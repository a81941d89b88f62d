#include <errno.h>
#include <string.h>

#include "cli/batch.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/xmem.h"

struct rm_opts {
    bool force, all;
};

static const struct opt rm_table[] = {
    { 'f', "force", OPT_FLAG, offsetof(struct rm_opts, force), NULL,
      "Also those that run; one that is not there is no failure.", NULL },
    { 'a', "all", OPT_FLAG, offsetof(struct rm_opts, all), NULL,
      "Every stopped sandbox; with -f every one there is.", NULL },
};

struct removal {
    struct cli *cli;
    bool force;
    int status;
};

static char *sandbox_path(const char *id)
{
    return api_path("sandboxes", id, NULL);
}

/* A frozen one runs as well: its programs go on at the next touch. */
static void check_stopped(struct batch_item *item, void *arg)
{
    static const char *const runs[] = { "creating", "running", "frozen" };
    json_t *s = take_ptr(item->answer);
    const char *state = member_text(s, "state");
    for (size_t i = 0; item->result == 0 && i < ARRAY_LEN(runs); i++)
        if (strcmp(state, runs[i]) == 0)
            item->result = err_set(&item->err, EBUSY,
                                   "sandbox '%s' is %s; stop it first, or `warren rm -f %s`",
                                   item->name, state, item->name);
    json_decref(s);
}

static bool was_gone(const struct batch_item *item)
{
    return strcmp(item->code, "sandbox_not_found") == 0 || strcmp(item->code, "sandbox_gone") == 0;
}

static void tell_removed(struct batch_item *item, void *arg)
{
    struct removal *rm = arg;
    json_decref(item->answer);
    if (item->result < 0 && !(rm->force && was_gone(item)))
        rm->status = cli_fail(rm->cli, &item->err);
    else if (item->result == 0 && !rm->cli->json)
        (void)printf("%s\n", item->name);
}

static int remove_all(struct removal *rm, struct batch_item *items, size_t n)
{
    const struct batch check = { "GET", sandbox_path, check_stopped, NULL };
    const struct batch removing = { "DELETE", sandbox_path, tell_removed, rm };
    struct err err = ERR_INIT;
    int r = rm->force ? 0 : batch_run(rm->cli, &check, items, n, &err);
    if (r == 0)
        r = batch_run(rm->cli, &removing, items, n, &err);
    return r < 0 ? cli_fail(rm->cli, &err) : rm->status;
}

static int rm_named(struct cli *cli, bool force, int argc, char **argv)
{
    struct removal rm = { .cli = cli, .force = force };
    _cleanup_free_ struct batch_item *items = xcalloc((size_t)argc, sizeof(*items));
    for (int i = 0; i < argc; i++) {
        items[i].name = argv[i];
        if (!*argv[i])
            items[i].result = err_set(&items[i].err, EINVAL, "an empty word names nothing");
    }
    return remove_all(&rm, items, (size_t)argc);
}

static int rm_all(struct cli *cli, bool running_too)
{
    const struct sandbox_query q = { .state = running_too ? NULL : "stopped" };
    struct removal rm = { .cli = cli, .force = true };
    _cleanup_json_ json_t *list = NULL;
    struct err err = ERR_INIT;
    if (sandboxes_list(cli, &q, &list, &err) < 0)
        return cli_fail(cli, &err);
    size_t n = json_array_size(list);
    _cleanup_free_ struct batch_item *items = xcalloc(n, sizeof(*items));
    for (size_t i = 0; i < n; i++)
        items[i].name = member_text(json_array_get(list, i), "id");
    return remove_all(&rm, items, n);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct rm_opts *o = opts;
    if (o->all && argc > 0)
        return cli_usage(cli, "--all leaves nothing to name");
    if (!o->all && argc == 0)
        return cli_usage(cli, "say which sandboxes to delete, or --all");
    return o->all ? rm_all(cli, o->force) : rm_named(cli, o->force, argc, argv);
}

const struct command cmd_rm = {
    .name = "rm",
    .alias = "delete",
    .summary = "Delete sandboxes, files and all",
    .synopsis = "[OPTIONS] SANDBOX... | --all",
    .description =
        "Deletes each sandbox with everything in it and prints the word it was named by. There is "
        "no way back. One that runs is only deleted with -f. Many are deleted at once.",
    .examples = (const struct example[]){ { "One, whatever it is doing", "warren rm -f box" },
                                          { "All that are stopped", "warren rm --all" },
                                          { "Everything", "warren rm --all -f" },
                                          { NULL, NULL } },
    COMMAND_OPTS(rm_table, struct rm_opts),
    .stop_after = OPTS_ALL,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run,
};

#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"

struct rm_opts {
    bool force, all;
};

static const struct opt rm_table[] = {
    { 'f', "force", OPT_FLAG, offsetof(struct rm_opts, force), NULL,
      "Also those that run; one that is not there is no failure.", NULL },
    { 'a', "all", OPT_FLAG, offsetof(struct rm_opts, all), NULL,
      "Every stopped sandbox; with -f every one there is.", NULL },
};

static int check_stopped(struct cli *cli, const char *path, const char *id, struct err *err)
{
    _cleanup_json_ json_t *s = NULL;
    int r = cli_call(cli, "GET", path, NULL, &s, err);
    if (r < 0)
        return r;
    if (strcmp(member_text(s, "state"), "running") == 0)
        return err_set(err, EBUSY, "sandbox '%s' is running; stop it first, or `warren rm -f %s`",
                       id, id);
    return 0;
}

static int rm_one(struct cli *cli, const char *id, const void *opts, struct err *err)
{
    const struct rm_opts *o = opts;
    _cleanup_free_ char *path = api_path("sandboxes", id, NULL);
    char code[REQUEST_CODE_MAX] = "";
    int r = o->force ? 0 : check_stopped(cli, path, id, err);
    if (r < 0)
        return r;
    r = cli_call_code(cli, "DELETE", path, NULL, NULL, code, err);
    if (r < 0 && o->force &&
        (strcmp(code, "sandbox_not_found") == 0 || strcmp(code, "sandbox_gone") == 0))
        return 0;
    if (r < 0)
        return r;
    if (!cli->json)
        (void)printf("%s\n", id);
    return 0;
}

static int rm_all(struct cli *cli, const struct rm_opts *o)
{
    struct sandbox_query q = { .state = o->force ? NULL : "stopped" };
    struct rm_opts each = { .force = true };
    _cleanup_json_ json_t *list = NULL;
    struct err err = ERR_INIT;
    const json_t *s;
    size_t i;
    int status = 0;
    if (sandboxes_list(cli, &q, &list, &err) < 0)
        return cli_fail(cli, &err);
    json_array_foreach(list, i, s)
    {
        const char *id = member_text(s, "id");
        err = (struct err)ERR_INIT;
        if (*id && rm_one(cli, id, &each, &err) < 0)
            status = cli_fail(cli, &err);
    }
    return status;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct rm_opts *o = opts;
    if (o->all && argc > 0)
        return cli_usage(cli, "--all leaves nothing to name");
    if (!o->all && argc == 0)
        return cli_usage(cli, "say which sandboxes to delete, or --all");
    return o->all ? rm_all(cli, o) : cli_each(cli, argc, argv, rm_one, o);
}

const struct command cmd_rm = {
    .name = "rm",
    .alias = "delete",
    .summary = "Delete sandboxes, files and all",
    .synopsis = "[OPTIONS] SANDBOX... | --all",
    .description =
        "Deletes each sandbox with everything in it and prints the word it was named by. There is "
        "no way back. One that runs is only deleted with -f.",
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

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/units.h"

static int run_tag(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("images", argv[0], "tag", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *image = NULL;
    struct err err = ERR_INIT;
    if (object_text(body, "name", argv[1], &err) < 0 ||
        cli_call(cli, "POST", path, body, &image, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, image, "name");
    return 0;
}

static int run_prune(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("images", "prune", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *answer = NULL;
    struct err err = ERR_INIT;
    char size[UNIT_TEXT_MAX];
    if (cli_call(cli, "POST", path, body, &answer, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(answer);
        return 0;
    }
    (void)printf("%zu layers removed, %s freed\n",
                 json_array_size(json_object_get(answer, "removed")),
                 size_text(member_int(answer, "freed_bytes"), size));
    return 0;
}

struct commit_opts {
    const char *user, *workdir;
    struct opt_list env, labels, cmd, entrypoint;
};

static const struct opt commit_table[] = {
    { 'e', "env", OPT_PAIRS, offsetof(struct commit_opts, env), "NAME=VALUE",
      "A variable for everything that runs in sandboxes of it. May be given again.", NULL },
    { 'l', "label", OPT_PAIRS, offsetof(struct commit_opts, labels), "NAME=VALUE",
      "A label. May be given again.", NULL },
    { 0, "cmd", OPT_LIST, offsetof(struct commit_opts, cmd), "WORD",
      "A word of its command; once for each word.", NULL },
    { 0, "entrypoint", OPT_LIST, offsetof(struct commit_opts, entrypoint), "WORD",
      "A word of its entry point; once for each word.", NULL },
    { 'u', "user", OPT_TEXT, offsetof(struct commit_opts, user), "USER", "Who commands run as.",
      NULL },
    { 'w', "workdir", OPT_TEXT, offsetof(struct commit_opts, workdir), "DIR", "Where commands run.",
      NULL },
};

static int put_words(json_t *body, const char *name, const struct opt_list *list, struct err *err)
{
    if (list->n == 0)
        return 0;
    json_t *words = json_array();
    int r = 0;
    for (size_t i = 0; r == 0 && i < list->n; i++)
        r = list_text(words, list->items[i], err);
    (void)json_object_set_new(body, name, words);
    return r;
}

static int commit_body(json_t *body, const struct commit_opts *o, const char *name, struct err *err)
{
    int r = object_text(body, "name", name, err);
    if (r == 0 && o->user)
        r = object_text(body, "user", o->user, err);
    if (r == 0 && o->workdir)
        r = object_text(body, "workdir", o->workdir, err);
    if (r == 0 && o->env.n)
        r = object_pairs(body, "env", o->env.items, o->env.n, err);
    if (r == 0 && o->labels.n)
        r = object_pairs(body, "labels", o->labels.items, o->labels.n, err);
    if (r == 0)
        r = put_words(body, "cmd", &o->cmd, err);
    return r < 0 ? r : put_words(body, "entrypoint", &o->entrypoint, err);
}

static int run_commit(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "commit", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *image = NULL;
    struct err err = ERR_INIT;
    char size[UNIT_TEXT_MAX];
    if (commit_body(body, opts, argv[1], &err) < 0 ||
        cli_call(cli, "POST", path, body, &image, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(image);
        return 0;
    }
    _cleanup_free_ char *name = text_line(member_text(image, "name"));
    (void)printf("%s  %s\n", name, size_text(member_int(image, "size_bytes"), size));
    return 0;
}

const struct command cmd_image_tag = {
    .name = "image tag",
    .alias = "tag",
    .summary = "Give an image one more name",
    .synopsis = "IMAGE NAME",
    .description =
        "Lets NAME mean the same image. It takes no room; each name is removed on its own.",
    .examples =
        (const struct example[]){ { "Before a push", "warren image tag app localhost:5000/app:v1" },
                                  { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = 2,
    .operands = "@image",
    .run = run_tag,
};

const struct command cmd_image_prune = {
    .name = "image prune",
    .summary = "Remove layers that no image needs",
    .synopsis = "",
    .description =
        "Removes what is left of builds and of pulls that failed: layers, and archives of "
        "layers, that no image and no sandbox uses. Images stay. A team's member removes what is "
        "the team's; the operator, without --team, what is anyone's.",
    .examples = (const struct example[]){ { "Make room", "warren image prune" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_prune,
};

const struct command cmd_commit = {
    .name = "commit",
    .summary = "Make an image of what a sandbox is now",
    .synopsis = "[OPTIONS] SANDBOX NAME",
    .description =
        "Writes what the sandbox changed as one more layer on its image and calls the result NAME. "
        "The sandbox stands still while its files are read, and goes on. Memory and processes are "
        "not part of it.",
    .examples =
        (const struct example[]){
            { "Keep what was installed", "warren commit box tools:1" },
            { "With settings", "warren commit -e LANG=C.UTF-8 -w /srv box app" },
            { NULL, NULL } },
    COMMAND_OPTS(commit_table, struct commit_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = 2,
    .operands = "@sandbox",
    .run = run_commit,
};

#include <string.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/object.h"
#include "cli/pages.h"

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    if (completion_print(stdout, argv[0]) < 0)
        return cli_usage(cli, "there is completion for bash, zsh and fish, not for '%s'", argv[0]);
    return 0;
}

const struct command cmd_completion = {
    .name = "completion",
    .summary = "Print a completion script for your shell",
    .synopsis = "bash|zsh|fish",
    .description = "Prints a script that teaches the shell the commands, their options, and the "
                   "names of your sandboxes and images.",
    .examples =
        (const struct example[]){
            { "bash, for this shell", "source <(warren completion bash)" },
            { "bash, for good",
              "warren completion bash > ~/.local/share/bash-completion/completions/warren" },
            { "zsh, in a directory of $fpath", "warren completion zsh > ~/.zfunc/_warren" },
            { "fish", "warren completion fish > ~/.config/fish/completions/warren.fish" },
            { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "bash zsh fish",
    .run = run,
};

/* ---- what the scripts ask for ---- */

static void print_members(const json_t *list, const char *first, const char *second)
{
    const json_t *o;
    size_t i;
    json_array_foreach(list, i, o) {
        if (*member_text(o, first))
            (void)printf("%s\n", member_text(o, first));
        if (second && *member_text(o, second))
            (void)printf("%s\n", member_text(o, second));
    }
}

static void print_contexts(void)
{
    _cleanup_(contexts_freep) struct contexts *all = NULL;
    const char *name;
    json_t *c;
    (void)printf(CONTEXT_LOCAL "\n");
    if (contexts_read(&all, NULL) < 0)
        return;
    json_object_foreach((json_t *)(uintptr_t)contexts_all(all), name, c)
        (void)printf("%s\n", name);
}

/* Silent when anything fails: this runs while someone types. */
static int complete(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct {
        const char *kind, *collection, *first, *second;
    } kinds[] = {
        { "sandbox", "sandboxes", "name", "id" },
        { "image", "images", "name", NULL },
        { "key", "keys", "id", NULL },
        { "team", "teams", "name", NULL },
        { "template", "templates", "name", NULL },
        { "volume", "volumes", "name", NULL },
        { "secret", "secrets", "name", NULL },
        { "checkpoint", "checkpoints", "name", "id" },
        { "state", "checkpoints", "name", "id" },
        { "state", "sandboxes", "name", "id" },
    };
    struct err err = ERR_INIT;
    if (strcmp(argv[0], "context") == 0)
        print_contexts();
    for (size_t i = 0; strcmp(argv[0], "command") == 0 && i < commands_n; i++)
        if (!commands[i]->hidden)
            (void)printf("%s\n", commands[i]->name);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        _cleanup_free_ char *path = api_path(kinds[i].collection, NULL);
        _cleanup_json_ json_t *list = NULL;
        if (strcmp(argv[0], kinds[i].kind) == 0 &&
            pages_read(cli, path, kinds[i].collection, &list, &err) == 0)
            print_members(list, kinds[i].first, kinds[i].second);
    }
    return 0;
}

const struct command cmd_complete = {
    .name = "__complete",
    .summary = "List names for a completion script",
    .synopsis = "sandbox|image|key|team|template|checkpoint|context|command",
    .description = "Prints what may stand on a command line, one a line.",
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .hidden = true,
    .run = complete,
};

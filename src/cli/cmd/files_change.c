/* files: make, move, copy, remove, and who may. */
#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/place.h"
#include "cli/sanitise.h"

struct change_opts {
    const char *user, *mode;
    bool recursive, force, no_clobber;
};

#define AT(member_) offsetof(struct change_opts, member_)
#define USER_ROW                                                             \
    {                                                                        \
        'u', "user", OPT_TEXT, AT(user), "USER",                             \
            "As this user of the sandbox. Default: the sandbox's own.", NULL \
    }
#define RECURSIVE_ROW(help_)                                         \
    {                                                                \
        'r', "recursive", OPT_FLAG, AT(recursive), NULL, help_, NULL \
    }

static const struct opt mkdir_table[] = {
    USER_ROW,
    { 'm', "mode", OPT_TEXT, AT(mode), "MODE", "Permissions, octal. Default 0755.", NULL },
};
static const struct opt two_table[] = {
    USER_ROW,
    { 'n', "no-clobber", OPT_FLAG, AT(no_clobber), NULL, "Refuse to replace what is there.", NULL },
};
static const struct opt rm_table[] = {
    USER_ROW,
    RECURSIVE_ROW("Directories with all they hold."),
    { 'f', "force", OPT_FLAG, AT(force), NULL, "What is not there is fine.", NULL },
};
static const struct opt mode_table[] = { USER_ROW, RECURSIVE_ROW("And everything below.") };
static const struct opt user_table[] = { USER_ROW };

/* POST to files/SUB with these members (NULL values are left out; "true" is true). */
static int post(struct cli *cli, const char *sandbox, const char *sub,
                const char *const (*members)[2], size_t n, struct err *err)
{
    _cleanup_free_ char *url = files_path(sandbox, sub, NULL, NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *entry = NULL;
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++) {
        const char *name = members[i][0], *value = members[i][1];
        if (!value)
            continue;
        if (strcmp(value, "\1true") == 0 || strcmp(value, "\1false") == 0)
            (void)json_object_set_new(body, name, json_boolean(value[1] == 't'));
        else
            r = object_text(body, name, value, err);
    }
    if (r >= 0)
        r = cli_call(cli, "POST", url, body, &entry, err);
    if (r >= 0 && cli->json)
        cli_print_json(entry);
    return r;
}
#define YES "\1true"
#define NO "\1false"

static int run_mkdir(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct change_opts *o = opts;
    int status = 0;
    for (int i = 1; i < argc; i++) {
        const char *const members[][2] = { { "path", argv[i] },
                                           { "user", o->user },
                                           { "mode", o->mode } };
        struct err err = ERR_INIT;
        if (post(cli, argv[0], "mkdir", members, ARRAY_LEN(members), &err) < 0)
            status = cli_fail(cli, &err);
    }
    return status;
}

static int two(struct cli *cli, const char *sub, const struct change_opts *o, char **argv)
{
    const char *const members[][2] = { { "from", argv[1] },
                                       { "to", argv[2] },
                                       { "user", o->user },
                                       { "overwrite", o->no_clobber ? NO : NULL } };
    struct err err = ERR_INIT;
    return post(cli, argv[0], sub, members, ARRAY_LEN(members), &err) < 0 ? cli_fail(cli, &err) : 0;
}

static int run_mv(struct cli *cli, const void *opts, int argc, char **argv)
{
    return two(cli, "move", opts, argv);
}

static int run_cp(struct cli *cli, const void *opts, int argc, char **argv)
{
    return two(cli, "copy", opts, argv);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct change_opts *o = opts;
    int status = 0;
    for (int i = 1; i < argc; i++) {
        char *query = files_path(argv[0], "", argv[i], o->user);
        if (o->recursive)
            query = api_query(query, "recursive", "true");
        if (o->force)
            query = api_query(query, "force", "true");
        _cleanup_free_ char *url = query;
        struct err err = ERR_INIT;
        if (cli_call(cli, "DELETE", url, NULL, NULL, &err) < 0)
            status = cli_fail(cli, &err);
    }
    return status;
}

/* chmod, chown: SANDBOX VALUE PATH... */
static int each_with(struct cli *cli, const char *sub, const char *name, const void *opts, int argc,
                     char **argv)
{
    const struct change_opts *o = opts;
    int status = 0;
    for (int i = 2; i < argc; i++) {
        const char *const members[][2] = { { "path", argv[i] },
                                           { name, argv[1] },
                                           { "user", o->user },
                                           { "recursive", o->recursive ? YES : NULL } };
        struct err err = ERR_INIT;
        if (post(cli, argv[0], sub, members, ARRAY_LEN(members), &err) < 0)
            status = cli_fail(cli, &err);
    }
    return status;
}

static int run_chmod(struct cli *cli, const void *opts, int argc, char **argv)
{
    return each_with(cli, "chmod", "mode", opts, argc, argv);
}

static int run_chown(struct cli *cli, const void *opts, int argc, char **argv)
{
    return each_with(cli, "chown", "owner", opts, argc, argv);
}

static int run_ln(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct change_opts *o = opts;
    const char *const members[][2] = { { "target", argv[1] },
                                       { "path", argv[2] },
                                       { "user", o->user } };
    struct err err = ERR_INIT;
    return post(cli, argv[0], "symlink", members, ARRAY_LEN(members), &err) < 0
               ? cli_fail(cli, &err)
               : 0;
}

#define COMMON .stop_after = OPTS_ALL, .operands = "@sandbox"
#define EXAMPLES(...)                    \
    .examples = (const struct example[]) \
    {                                    \
        __VA_ARGS__,                     \
        {                                \
            NULL, NULL                   \
        }                                \
    }
#define ONE(what_, line_) \
    {                     \
        what_, line_      \
    }

const struct command cmd_files_mkdir = {
    .name = "files mkdir",
    .summary = "Make directories in a sandbox",
    .synopsis = "[OPTIONS] SANDBOX PATH...",
    .description = "Makes each directory and those above it. One that is there already is fine.",
    EXAMPLES(ONE("Two", "warren files mkdir box /srv/a /srv/b")),
    COMMAND_OPTS(mkdir_table, struct change_opts),
    .min_args = 2,
    .max_args = -1,
    .run = run_mkdir,
    COMMON,
};

const struct command cmd_files_mv = {
    .name = "files mv",
    .summary = "Move or rename a file or directory of a sandbox",
    .synopsis = "[OPTIONS] SANDBOX FROM TO",
    .description = "Moves FROM to the name TO, making the directories above it. A file that is "
                   "there is replaced.",
    EXAMPLES(ONE("Rename", "warren files mv box notes.txt old-notes.txt")),
    COMMAND_OPTS(two_table, struct change_opts),
    .min_args = 3,
    .max_args = 3,
    .run = run_mv,
    COMMON,
};

const struct command cmd_files_cp = {
    .name = "files cp",
    .summary = "Copy a file or directory within a sandbox",
    .synopsis = "[OPTIONS] SANDBOX FROM TO",
    .description = "Copies FROM, with all it holds, to the name TO, inside the sandbox: nothing "
                   "comes through here. `warren cp` copies between a sandbox and this machine.",
    EXAMPLES(ONE("A directory", "warren files cp box /etc /srv/etc-before")),
    COMMAND_OPTS(two_table, struct change_opts),
    .min_args = 3,
    .max_args = 3,
    .run = run_cp,
    COMMON,
};

const struct command cmd_files_rm = {
    .name = "files rm",
    .summary = "Remove files and directories of a sandbox",
    .synopsis = "[OPTIONS] SANDBOX PATH...",
    .description = "Removes each path; a symbolic link itself, not what it leads to.",
    EXAMPLES(ONE("A file", "warren files rm box /tmp/x"),
             ONE("A tree", "warren files rm -r box /srv/app")),
    COMMAND_OPTS(rm_table, struct change_opts),
    .min_args = 2,
    .max_args = -1,
    .run = run_rm,
    COMMON,
};

const struct command cmd_files_chmod = {
    .name = "files chmod",
    .summary = "Set permissions of files of a sandbox",
    .synopsis = "[OPTIONS] SANDBOX MODE PATH...",
    .description = "Sets the permission bits, octal.",
    EXAMPLES(ONE("A program", "warren files chmod box 0755 /srv/run.sh")),
    COMMAND_OPTS(mode_table, struct change_opts),
    .min_args = 3,
    .max_args = -1,
    .run = run_chmod,
    COMMON,
};

const struct command cmd_files_chown = {
    .name = "files chown",
    .summary = "Give files of a sandbox to a user",
    .synopsis = "[OPTIONS] SANDBOX USER[:GROUP] PATH...",
    .description = "Changes the owner, the group, or both; names of the sandbox, or numbers.",
    EXAMPLES(ONE("A tree", "warren files chown -r box user:user /srv/app")),
    COMMAND_OPTS(mode_table, struct change_opts),
    .min_args = 3,
    .max_args = -1,
    .run = run_chown,
    COMMON,
};

const struct command cmd_files_ln = {
    .name = "files ln",
    .summary = "Make a symbolic link in a sandbox",
    .synopsis = "[OPTIONS] SANDBOX TARGET PATH",
    .description = "Makes PATH a symbolic link that says TARGET.",
    EXAMPLES(ONE("A link", "warren files ln box /opt/tool-1.2 /opt/tool")),
    COMMAND_OPTS(user_table, struct change_opts),
    .min_args = 3,
    .max_args = 3,
    .run = run_ln,
    COMMON,
};

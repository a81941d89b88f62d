/* files: what there is, and its bytes. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/object.h"
#include "cli/place.h"
#include "cli/sanitise.h"
#include "cli/term.h"
#include "cli/transfer.h"
#include "cli/units.h"
#include "cli/xmem.h"

#define USER_ROW(type_)                                                      \
    {                                                                        \
        'u', "user", OPT_TEXT, offsetof(type_, user), "USER",                \
            "As this user of the sandbox. Default: the sandbox's own.", NULL \
    }

struct ls_opts {
    const char *user;
    struct opt_number depth;
    bool all;
};

static const struct opt ls_table[] = {
    USER_ROW(struct ls_opts),
    { 'd', "depth", OPT_COUNT, offsetof(struct ls_opts, depth), "N",
      "How many directories deep to look. Default 1.", NULL },
    { 'l', "long", OPT_FLAG, offsetof(struct ls_opts, all), NULL,
      "Permissions, owner, size and time of each.", NULL },
};

struct user_opts {
    const char *user;
};

static const struct opt user_table[] = { USER_ROW(struct user_opts) };

static void print_long(const json_t *list)
{
    static const struct column columns[] = {
        { "MODE", false }, { "OWNER", false },    { "GROUP", false },
        { "SIZE", true },  { "MODIFIED", false }, { "PATH", false },
    };
    struct listing t;
    const json_t *e;
    size_t i;
    listing_init(&t, columns, ARRAY_LEN(columns));
    json_array_foreach(list, i, e) {
        const char *type = member_text(e, "type"), *target = member_text(e, "target");
        char uid[UNIT_TEXT_MAX], gid[UNIT_TEXT_MAX];
        char kind = strcmp(type, "file") == 0 ? '-' : *type == 's' ? 'l' : *type ? *type : '?';
        _cleanup_free_ char *mode = xasprintf("%c%s", kind, member_text(e, "permissions"));
        _cleanup_free_ char *path =
            xasprintf("%s%s%s", member_text(e, "path"), *target ? " -> " : "", target);
        (void)snprintf(uid, sizeof(uid), "%lld", (long long)member_int(e, "uid"));
        (void)snprintf(gid, sizeof(gid), "%lld", (long long)member_int(e, "gid"));
        listing_text(&t, mode);
        listing_text(&t, *member_text(e, "owner") ? member_text(e, "owner") : uid);
        listing_text(&t, *member_text(e, "group") ? member_text(e, "group") : gid);
        listing_int(&t, member_int(e, "size"));
        listing_text(&t, member_text(e, "modified_at"));
        listing_text(&t, path);
    }
    listing_print(&t, stdout, 0);
    listing_done(&t);
}

void files_print(const struct cli *cli, const json_t *list, bool details)
{
    const json_t *e;
    size_t i;
    if (cli->json) {
        cli_print_json(list);
        return;
    }
    if (details) {
        print_long(list);
        return;
    }
    json_array_foreach(list, i, e) {
        _cleanup_free_ char *path = text_line(member_text(e, "path"));
        bool dir = strcmp(member_text(e, "type"), "directory") == 0;
        (void)printf("%s%s\n", path, dir ? "/" : "");
    }
}

/* Every page of a directory. */
static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct ls_opts *o = opts;
    _cleanup_json_ json_t *all = json_array();
    _cleanup_free_ char *cursor = NULL;
    char depth[UNIT_TEXT_MAX];
    struct err err = ERR_INIT;

    (void)snprintf(depth, sizeof(depth), "%lld", (long long)(o->depth.set ? o->depth.v : 1));
    do {
        char *query = files_path(argv[0], "list", argc > 1 ? argv[1] : ".", o->user);
        query = api_query(query, "depth", depth);
        if (cursor)
            query = api_query(query, "cursor", cursor);
        _cleanup_free_ char *url = query;
        _cleanup_json_ json_t *page = NULL;
        if (cli_call(cli, "GET", url, NULL, &page, &err) < 0)
            return cli_fail(cli, &err);
        (void)json_array_extend(all, json_object_get(page, "entries"));
        free(cursor);
        const char *next = member_text(page, "next_cursor");
        cursor = *next ? xstrdup(next) : NULL;
    } while (cursor);
    files_print(cli, all, o->all);
    return 0;
}

static int run_stat(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct user_opts *o = opts;
    _cleanup_json_ json_t *all = json_array();
    int status = 0;
    for (int i = 1; i < argc; i++) {
        _cleanup_free_ char *url =
            api_query(files_path(argv[0], "stat", argv[i], o->user), "follow", "false");
        struct err err = ERR_INIT;
        json_t *e = NULL;
        if (cli_call(cli, "GET", url, NULL, &e, &err) < 0)
            status = cli_fail(cli, &err);
        else
            (void)json_array_append_new(all, e);
    }
    if (cli->json && argc == 2 && json_array_size(all) == 1)
        cli_print_json(json_array_get(all, 0));
    else if (json_array_size(all) > 0)
        files_print(cli, all, true);
    return status;
}

static int run_cat(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct user_opts *o = opts;
    struct transfer t = { .cli = cli, .user = o->user, .quiet = true };
    int status = 0;
    for (int i = 1; i < argc; i++) {
        struct err err = ERR_INIT;
        if (transfer_get(&t, argv[0], argv[i], STDOUT_FILENO, -1, &err) < 0)
            status = cli_fail(cli, &err);
    }
    return status;
}

struct write_opts {
    const char *user, *mode;
    bool append;
};

static const struct opt write_table[] = {
    USER_ROW(struct write_opts),
    { 'm', "mode", OPT_TEXT, offsetof(struct write_opts, mode), "MODE",
      "Permissions, octal. Default: the old file's, or 0644.", NULL },
    { 'a', "append", OPT_FLAG, offsetof(struct write_opts, append), NULL,
      "To the end of what is there.", NULL },
};

static int run_write(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct write_opts *o = opts;
    struct transfer t = { .cli = cli, .user = o->user, .quiet = true };
    struct err err = ERR_INIT;
    if (isatty(STDIN_FILENO))
        cli_note("reading from the terminal; end with ctrl-d");
    int r = transfer_put(&t, argv[0], argv[1], STDIN_FILENO, -1, o->mode, o->append, &err);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_files_ls = {
    .name = "files ls",
    .summary = "List a directory of a sandbox",
    .synopsis = "[OPTIONS] SANDBOX [PATH]",
    .description = "Lists what a directory holds, sorted, with full paths. Without PATH it is the "
                   "user's home.",
    .examples =
        (const struct example[]){ { "The root", "warren files ls box /" },
                                  { "Two deep, with sizes", "warren files ls -l -d 2 box /srv" },
                                  { NULL, NULL } },
    COMMAND_OPTS(ls_table, struct ls_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 2,
    .operands = "@sandbox",
    .run = run_ls,
};

const struct command cmd_files_stat = {
    .name = "files stat",
    .summary = "Show what files of a sandbox are",
    .synopsis = "[OPTIONS] SANDBOX PATH...",
    .description = "Shows type, permissions, owner, size and time of each path; of a symbolic "
                   "link itself. With --json everything the API tells, its ETag too.",
    .examples =
        (const struct example[]){ { "One", "warren files stat box /etc/passwd" }, { NULL, NULL } },
    COMMAND_OPTS(user_table, struct user_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_stat,
};

const struct command cmd_files_cat = {
    .name = "files cat",
    .summary = "Print files of a sandbox",
    .synopsis = "[OPTIONS] SANDBOX PATH...",
    .description = "Writes the bytes of each file to standard output, as they are.",
    .examples = (const struct example[]){ { "One", "warren files cat box /etc/os-release" },
                                          { NULL, NULL } },
    COMMAND_OPTS(user_table, struct user_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_cat,
};

const struct command cmd_files_write = {
    .name = "files write",
    .summary = "Write standard input to a file of a sandbox",
    .synopsis = "[OPTIONS] SANDBOX PATH",
    .description = "Writes what comes on standard input to the file, making its directories where "
                   "they are missing. The old file is replaced at once when everything is there; "
                   "until then, and if something goes wrong, it stays.",
    .examples =
        (const struct example[]){
            { "A line", "echo hello | warren files write box greeting.txt" },
            { "A program", "warren files write -m 0755 box /usr/local/bin/go < go.sh" },
            { NULL, NULL } },
    COMMAND_OPTS(write_table, struct write_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = 2,
    .operands = "@sandbox",
    .run = run_write,
};

/* files: how much, where, what is in them, what happens to them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/place.h"
#include "cli/sanitise.h"
#include "cli/units.h"

struct search_opts {
    const char *user, *type;
    struct opt_list include;
    struct opt_number limit;
    bool regex, ignore_case, dry_run, recursive;
};

#define AT(member_) offsetof(struct search_opts, member_)
#define USER_ROW                                                             \
    {                                                                        \
        'u', "user", OPT_TEXT, AT(user), "USER",                             \
            "As this user of the sandbox. Default: the sandbox's own.", NULL \
    }
#define TEXT_ROWS                                                                                  \
    { 'e', "regex", OPT_FLAG, AT(regex), NULL, "TEXT is an extended regular expression.", NULL },  \
        { 'i', "ignore-case", OPT_FLAG, AT(ignore_case), NULL, "Upper case is as lower.", NULL },  \
    {                                                                                              \
        0, "include", OPT_LIST, AT(include), "GLOB", "Only files of such names; may be repeated.", \
            NULL                                                                                   \
    }

static const struct opt user_table[] = { USER_ROW };
static const struct opt find_table[] = {
    USER_ROW,
    { 't', "type", OPT_TEXT, AT(type), "TYPE", "Only file, directory or symlink.",
      "file directory symlink" },
    { 0, "limit", OPT_COUNT, AT(limit), "N", "So many at most. Default 10000.", NULL },
};
static const struct opt search_table[] = {
    USER_ROW,
    TEXT_ROWS,
    { 0, "limit", OPT_COUNT, AT(limit), "N", "So many matches at most. Default 1000.", NULL },
};
static const struct opt replace_table[] = {
    USER_ROW,
    TEXT_ROWS,
    { 'n', "dry-run", OPT_FLAG, AT(dry_run), NULL, "Only tell what would change.", NULL },
};
static const struct opt watch_table[] = {
    USER_ROW,
    { 'r', "recursive", OPT_FLAG, AT(recursive), NULL, "And everything below.", NULL },
};

static int run_du(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct search_opts *o = opts;
    int status = 0;
    for (int i = 1; i < argc; i++) {
        _cleanup_free_ char *url = files_path(argv[0], "usage", argv[i], o->user);
        _cleanup_json_ json_t *u = NULL;
        struct err err = ERR_INIT;
        char size[UNIT_TEXT_MAX];
        if (cli_call(cli, "GET", url, NULL, &u, &err) < 0) {
            status = cli_fail(cli, &err);
        } else if (cli->json) {
            cli_print_json(u);
        } else {
            _cleanup_free_ char *path = text_line(argv[i]);
            (void)printf("%10s  %" PRId64 " files  %" PRId64 " directories  %s\n",
                         size_text(member_int(u, "disk_bytes"), size), member_int(u, "files"),
                         member_int(u, "directories"), path);
        }
    }
    return status;
}

static int run_find(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct search_opts *o = opts;
    _cleanup_json_ json_t *found = NULL;
    struct err err = ERR_INIT;
    char limit[UNIT_TEXT_MAX];
    char *query = files_path(argv[0], "find", argv[1], o->user);
    for (int i = 2; i < argc; i++)
        query = api_query(query, "name", argv[i]);
    if (o->type)
        query = api_query(query, "type", o->type);
    if (o->limit.set) {
        (void)snprintf(limit, sizeof(limit), "%" PRId64, o->limit.v);
        query = api_query(query, "limit", limit);
    }
    _cleanup_free_ char *url = query;
    if (cli_call(cli, "GET", url, NULL, &found, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(found);
    else
        files_print(cli, json_object_get(found, "entries"), false);
    if (member_true(found, "truncated"))
        cli_note("there are more; --limit shows them");
    return 0;
}

static json_t *text_body(const struct search_opts *o, char **paths, int n, const char *text,
                         struct err *err)
{
    json_t *body = json_object(), *list = json_array(), *globs = json_array();
    int r = object_text(body, "text", text, err);
    for (int i = 0; i < n && r >= 0; i++)
        r = list_text(list, paths[i], err);
    for (size_t i = 0; i < o->include.n && r >= 0; i++)
        r = list_text(globs, o->include.items[i], err);
    if (r >= 0 && o->user)
        r = object_text(body, "user", o->user, err);
    (void)json_object_set_new(body, "paths", list);
    (void)json_object_set_new(body, "regex", json_boolean(o->regex));
    (void)json_object_set_new(body, "ignore_case", json_boolean(o->ignore_case));
    if (o->include.n)
        (void)json_object_set_new(body, "include", globs);
    else
        json_decref(globs);
    if (r < 0) {
        json_decref(body);
        return NULL;
    }
    return body;
}

static void note_skipped(const json_t *answer)
{
    const json_t *list = member_list(answer, "skipped"), *s;
    size_t i;
    json_array_foreach(list, i, s)
        cli_note("%s: %s", member_text(s, "path"), member_text(s, "message"));
}

static int run_search(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct search_opts *o = opts;
    struct err err = ERR_INIT;
    _cleanup_free_ char *url = files_path(argv[0], "search", NULL, NULL);
    _cleanup_json_ json_t *found = NULL;
    _cleanup_json_ json_t *body = text_body(o, argv + 2, argc - 2, argv[1], &err);
    const json_t *m;
    size_t i;
    if (!body)
        return cli_fail(cli, &err);
    if (o->limit.set)
        (void)json_object_set_new(body, "limit", json_integer(o->limit.v));
    if (cli_call(cli, "POST", url, body, &found, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(found);
        return 0;
    }
    json_array_foreach(json_object_get(found, "matches"), i, m) {
        _cleanup_free_ char *path = text_line(member_text(m, "path"));
        _cleanup_free_ char *text = text_line(member_text(m, "text"));
        (void)printf("%s:%" PRId64 ":%" PRId64 ":%s\n", path, member_int(m, "line"),
                     member_int(m, "column"), text);
    }
    note_skipped(found);
    if (member_true(found, "truncated"))
        cli_note("there are more; --limit shows them");
    return json_array_size(json_object_get(found, "matches")) > 0 ? 0 : 1;
}

static int run_replace(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct search_opts *o = opts;
    struct err err = ERR_INIT;
    _cleanup_free_ char *url = files_path(argv[0], "replace", NULL, NULL);
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_json_ json_t *body = text_body(o, argv + 3, argc - 3, argv[1], &err);
    const json_t *c;
    size_t i;
    if (!body || object_text(body, "replacement", argv[2], &err) < 0)
        return cli_fail(cli, &err);
    (void)json_object_set_new(body, "dry_run", json_boolean(o->dry_run));
    if (cli_call(cli, "POST", url, body, &answer, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "changed"), i, c) {
        _cleanup_free_ char *path = text_line(member_text(c, "path"));
        (void)printf("%6" PRId64 "  %s\n", member_int(c, "count"), path);
    }
    note_skipped(answer);
    return 0;
}

static int print_change(void *arg, const json_t *event)
{
    const struct cli *cli = arg;
    const char *type = member_text(event, "type");
    if (strcmp(type, "ping") == 0 || strcmp(type, "ready") == 0)
        return 0;
    if (cli->json) {
        (void)json_dumpf(event, stdout,
                         JSON_COMPACT | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0));
        (void)putchar('\n');
    } else if (strcmp(type, "error") == 0) {
        cli_note("%s", member_text(event, "message"));
    } else {
        _cleanup_free_ char *path = text_line(member_text(event, "path"));
        _cleanup_free_ char *to = text_line(member_text(event, "to"));
        (void)printf("%-8s  %s%s%s\n", type, path, *to ? " -> " : "", to);
    }
    return fflush(stdout) != 0 ? -EPIPE : 0;
}

static int run_watch(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct search_opts *o = opts;
    struct err err = ERR_INIT;
    char *query = files_path(argv[0], "watch", argv[1], o->user);
    if (o->recursive)
        query = api_query(query, "recursive", "true");
    _cleanup_free_ char *url = query;
    struct client *client = cli_client(cli, &err);
    if (!client)
        return cli_fail(cli, &err);
    _cleanup_(request_done) struct request call = {
        .method = "GET", .path = url, .on_line = print_change, .arg = cli, .timeout_s = -1
    };
    return client_perform(client, &call, &err) < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_files_du = {
    .name = "files du",
    .summary = "Show how much room trees of a sandbox take",
    .synopsis = "[OPTIONS] SANDBOX PATH...",
    .description = "Counts what the files below each path really take; a file with several names "
                   "counts once.",
    .examples = (const struct example[]){ { "One", "warren files du box /usr" }, { NULL, NULL } },
    COMMAND_OPTS(user_table, struct search_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_du,
};

const struct command cmd_files_find = {
    .name = "files find",
    .summary = "Find files of a sandbox by name",
    .synopsis = "[OPTIONS] SANDBOX PATH [GLOB...]",
    .description = "Lists what is below PATH and has a name of one of the patterns; a pattern with "
                   "a slash is for the whole path.",
    .examples =
        (const struct example[]){ { "Python", "warren files find box /srv '*.py'" },
                                  { "Directories", "warren files find -t directory box /srv" },
                                  { NULL, NULL } },
    COMMAND_OPTS(find_table, struct search_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_find,
};

const struct command cmd_files_search = {
    .name = "files search",
    .summary = "Search the text of a sandbox's files",
    .synopsis = "[OPTIONS] SANDBOX TEXT PATH...",
    .description = "Prints each line that holds TEXT as FILE:LINE:COLUMN:TEXT. Files that are not "
                   "text are passed over.",
    .exit_status = "0  something was found\n1  nothing was found, or it failed\n",
    .examples =
        (const struct example[]){ { "A word", "warren files search box TODO /srv/app" },
                                  { "A pattern in some files",
                                    "warren files search -e --include '*.c' box 'int +main' /src" },
                                  { NULL, NULL } },
    COMMAND_OPTS(search_table, struct search_opts),
    .stop_after = OPTS_ALL,
    .min_args = 3,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_search,
};

const struct command cmd_files_replace = {
    .name = "files replace",
    .summary = "Replace text across a sandbox's files",
    .synopsis = "[OPTIONS] SANDBOX TEXT REPLACEMENT PATH...",
    .description = "Replaces TEXT wherever it stands and prints how often in which file. Each file "
                   "is replaced whole, or left as it was.",
    .examples =
        (const struct example[]){ { "First look", "warren files replace -n box old new /srv/app" },
                                  { "Then do it", "warren files replace box old new /srv/app" },
                                  { NULL, NULL } },
    COMMAND_OPTS(replace_table, struct search_opts),
    .stop_after = OPTS_ALL,
    .min_args = 4,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_replace,
};

const struct command cmd_files_watch = {
    .name = "files watch",
    .summary = "Print changes of a sandbox's files as they happen",
    .synopsis = "[OPTIONS] SANDBOX PATH",
    .description = "Prints a line for each change under PATH until interrupted.",
    .examples =
        (const struct example[]){ { "A tree", "warren files watch -r box /srv" }, { NULL, NULL } },
    COMMAND_OPTS(watch_table, struct search_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = 2,
    .operands = "@sandbox",
    .run = run_watch,
};

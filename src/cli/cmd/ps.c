#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/pages.h"
#include "cli/table.h"
#include "cli/units.h"

struct ps_opts {
    bool all, quiet;
};

static const struct opt ps_table[] = {
    { 'a', "all", OPT_FLAG, offsetof(struct ps_opts, all), NULL,
      "Also those that have ended, and those that programs started themselves. Without SANDBOX: those that do not run, too.",
      NULL },
    { 'q', "quiet", OPT_FLAG, offsetof(struct ps_opts, quiet), NULL,
      "Without SANDBOX: ids only, one a line.", NULL },
};

static int fetch(struct cli *cli, const char *sandbox, bool all, json_t **ret_list, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", sandbox, "processes", NULL);
    if (all)
        path = api_query(path, "all", "true");
    return pages_read(cli, path, "processes", ret_list, err);
}

int process_newest(struct cli *cli, const char *sandbox, bool running, int64_t *ret_process,
                   struct err *err)
{
    _cleanup_json_ json_t *list = NULL;
    int64_t newest = 0;
    const json_t *p;
    size_t i;
    int r = fetch(cli, sandbox, false, &list, err);
    if (r < 0)
        return r;
    json_array_foreach(list, i, p) {
        int64_t n = member_int(p, "process");
        if (n > newest && (!running || strcmp(member_text(p, "state"), "running") == 0))
            newest = n;
    }
    if (newest == 0)
        return err_set(err, ENOENT,
                       running ? "nothing that was started by a client runs in '%s'"
                               : "nothing was run in '%s' yet",
                       sandbox);
    *ret_process = newest;
    return 0;
}

static void put_command(struct listing *t, const json_t *p)
{
    _cleanup_free_ char *words = member_words(p, "argv", " ");
    listing_text(t, words);
}

static void put_state(struct listing *t, const json_t *p)
{
    char text[64];
    const char *reason = member_text(p, "reason"), *signal = member_text(p, "signal");
    if (strcmp(member_text(p, "state"), "ended") != 0) {
        listing_text(t, "running");
        return;
    }
    if (strcmp(reason, "exit") == 0 || !*reason)
        (void)snprintf(text, sizeof(text), "exit %" PRId64, member_int(p, "exit_code"));
    else
        (void)snprintf(text, sizeof(text), "%s", strcmp(reason, "signal") == 0 ? signal : reason);
    listing_text(t, text);
}

static void print_table(const json_t *list, bool all)
{
    static const struct column columns[] = {
        { "PROCESS", true }, { "PID", true },    { "USER", false }, { "STATE", COLUMN_STATE },
        { "CPU", true },     { "MEMORY", true }, { "AGE", true },   { "COMMAND", false },
    };
    struct listing t;
    const json_t *p;
    size_t i;
    listing_init(&t, columns, ARRAY_LEN(columns));
    json_array_foreach(list, i, p) {
        char text[UNIT_TEXT_MAX];
        bool ended = strcmp(member_text(p, "state"), "ended") == 0;
        if (ended && !all)
            continue;
        if (member_int(p, "process"))
            listing_int(&t, member_int(p, "process"));
        else
            listing_text(&t, NULL);
        listing_int(&t, member_int(p, "pid"));
        listing_text(&t, member_text(p, "user"));
        put_state(&t, p);
        listing_text(&t, cpu_time_text(member_int(p, "cpu_us"), text));
        listing_text(&t, ended ? NULL : size_text(member_int(p, "rss_bytes"), text));
        cell_age(&t, p, "started_at");
        put_command(&t, p);
    }
    table_finish(&t);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct ps_opts *o = opts;
    _cleanup_json_ json_t *list = NULL;
    struct err err = ERR_INIT;
    struct sandbox_query q = { .state = o->all ? NULL : "running,frozen" };
    if (argc == 0)
        return sandboxes_print(cli, &q, o->quiet);
    if (o->quiet)
        return cli_usage(cli, "-q lists sandboxes; `warren --json ps %s` lists processes", argv[0]);
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (fetch(cli, argv[0], o->all, &list, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(list);
    else
        print_table(list, o->all);
    return 0;
}

const struct command cmd_ps = {
    .name = "ps",
    .alias = "top",
    .summary = "List the processes of a sandbox",
    .synopsis = "[OPTIONS] [SANDBOX]",
    .description =
        "Lists what runs in a sandbox. PROCESS is the number that logs, attach and kill take; "
        "PID is what the program itself sees. CPU is the time used so far, of the program and of "
        "its children that have ended.\n\n"
        "Without SANDBOX it lists the sandboxes that run, as `warren ls` lists all.",
    .examples =
        (const struct example[]){ { "What runs", "warren ps box" },
                                  { "And what ran, with exit status", "warren ps --all box" },
                                  { NULL, NULL } },
    COMMAND_OPTS(ps_table, struct ps_opts),
    .stop_after = OPTS_ALL,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run,
};

#include <errno.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"
#include "cli/units.h"

#define DEFAULT_S 3600

struct take_opts {
    struct opt_number span;
    const char *reason;
};

static const struct opt take_table[] = {
    { 0, "for", OPT_DURATION, offsetof(struct take_opts, span), "TIME",
      "How long: 10m, 2h, a day at most. Default one hour.", NULL },
    { 0, "reason", OPT_TEXT, offsetof(struct take_opts, reason), "TEXT",
      "Why, for whoever looks at it.", NULL },
};

static int run_take(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct take_opts *o = opts;
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "leases", NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *made = NULL;
    struct err err = ERR_INIT;
    (void)json_object_set_new(body, "seconds",
                              json_real(o->span.set ? (double)o->span.v / 1000 : DEFAULT_S));
    if ((o->reason && object_text(body, "reason", o->reason, &err) < 0) ||
        cli_call(cli, "POST", path, body, &made, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, made, "id");
    return 0;
}

static void put_row(struct listing *t, const json_t *o)
{
    char text[UNIT_TEXT_MAX];
    cell_text(t, o, "id");
    listing_text(t, duration_text(member_moment(o, "expires_at") - clock_now_ms(), text));
    cell_text(t, o, "reason");
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = { { "LEASE", false },
                                             { "ENDS IN", true },
                                             { "REASON", false } };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "leases", NULL);
    return table_pages(cli, path, "leases", &table);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "leases", NULL);
    return cli_remove_below(cli, path, argc - 1, argv + 1);
}

const struct command cmd_lease_take = {
    .name = "lease take",
    .alias = "keep-awake",
    .summary = "Keep a sandbox awake for a while",
    .synopsis = "[OPTIONS] SANDBOX",
    .description = "Until the lease ends the sandbox counts as at work: it is not frozen, and what "
                   "it does when idle does not happen; its timeout does. Wakes it if it sleeps. "
                   "Prints the lease's id.",
    .examples = (const struct example[]){ { "While a long download waits for its server",
                                            "warren keep-awake --for 2h --reason download box" },
                                          { NULL, NULL } },
    COMMAND_OPTS(take_table, struct take_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_take,
};

const struct command cmd_lease_ls = {
    .name = "lease ls",
    .summary = "List what keeps a sandbox awake",
    .synopsis = "SANDBOX",
    .description = "Lists the leases that are not over.",
    .examples = (const struct example[]){ { "All", "warren lease ls box" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_ls,
};

const struct command cmd_lease_rm = {
    .name = "lease rm",
    .summary = "End leases before their time",
    .synopsis = "SANDBOX LEASE...",
    .description = "Ends each lease, by its id. The sandbox may then be idle from now on.",
    .examples = (const struct example[]){ { "One", "warren lease rm box k3f9…" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_rm,
};

#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/pages.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/units.h"

static void put_row(struct listing *t, const char *id, const json_t *u)
{
    char text[UNIT_TEXT_MAX];
    listing_text(t, id);
    listing_text(t, cpu_time_text(member_int(u, "cpu_us"), text));
    cell_size(t, u, "memory_bytes");
    cell_size(t, u, "memory_peak_bytes");
    cell_size(t, u, "disk_bytes");
    cell_int(t, u, "pids");
    cell_int(t, u, "oom_kills");
}

struct usage_opts {
    const char *from, *to, *step;
    struct opt_number since;
};

static const struct opt usage_table[] = {
    { 0, "from", OPT_TEXT, offsetof(struct usage_opts, from), "TIME",
      "What was used since: 2026-01-31T12:00:00Z.", NULL },
    { 0, "to", OPT_TEXT, offsetof(struct usage_opts, to), "TIME", "And until. Default now.", NULL },
    { 0, "since", OPT_DURATION, offsetof(struct usage_opts, since), "TIME",
      "What was used in the last hours or days: 24h, 7d.", NULL },
    { 0, "step", OPT_TEXT, offsetof(struct usage_opts, step), "STEP",
      "Also by the hour or by the day.", "hour day" },
};

/* What they use at this moment. */
static int run_now(struct cli *cli, int argc, char **argv)
{
    static const struct column columns[] = {
        { "SANDBOX", false }, { "CPU", true },  { "MEMORY", true },    { "PEAK", true },
        { "DISK", true },     { "PIDS", true }, { "OOM KILLS", true },
    };
    struct listing t;
    _cleanup_json_ json_t *all = json_array();
    int status = 0;
    listing_init(&t, columns, ARRAY_LEN(columns));
    for (int i = 0; i < argc; i++) {
        _cleanup_free_ char *path = api_path("sandboxes", argv[i], "usage", NULL);
        struct err err = ERR_INIT;
        json_t *u = NULL;
        if (!*argv[i] || cli_call(cli, "GET", path, NULL, &u, &err) < 0) {
            status = cli_fail(cli, &err);
            continue;
        }
        put_row(&t, argv[i], u);
        (void)json_array_append_new(all, u);
    }
    if (cli->json && json_array_size(all) > 0)
        cli_print_json(argc == 1 ? json_array_get(all, 0) : all);
    else if (!cli->json && t.n > 0)
        table_finish(&t);
    return status;
}

/* ---- what was used over time ---- */

static void put_amount(struct listing *t, const json_t *a)
{
    char text[UNIT_TEXT_MAX];
    listing_text(t, cpu_time_text((int64_t)(member_real(a, "cpu_seconds") * 1e6), text));
    (void)snprintf(text, sizeof(text), "%.3f", member_real(a, "memory_gib_seconds") / 3600);
    listing_text(t, text);
    (void)snprintf(text, sizeof(text), "%.3f", member_real(a, "disk_gib_seconds") / 3600);
    listing_text(t, text);
    cell_size(t, a, "network_rx_bytes");
    cell_size(t, a, "network_tx_bytes");
}

static void print_report(const json_t *first, const json_t *sandboxes)
{
    static const struct column columns[] = {
        { "WHAT", false },     { "NAME", false }, { "CPU", true }, { "MEMORY GIBH", true },
        { "DISK GIBH", true }, { "IN", true },    { "OUT", true },
    };
    struct listing t;
    const json_t *o;
    size_t i;
    listing_init(&t, columns, ARRAY_LEN(columns));
    json_array_foreach(sandboxes, i, o) {
        listing_text(&t, member_text(o, "sandbox"));
        listing_text(&t, member_text(o, "name"));
        put_amount(&t, o);
    }
    json_array_foreach(member_list(first, "steps"), i, o) {
        listing_text(&t, member_text(o, "from"));
        listing_text(&t, NULL);
        put_amount(&t, o);
    }
    listing_text(&t, "total");
    listing_text(&t, member_text(first, "team"));
    put_amount(&t, json_object_get(first, "total"));
    table_finish(&t);
}

static char *query_of(const struct usage_opts *o, const char *sandbox)
{
    char *path = api_path("usage", NULL);
    if (o->since.set) {
        char text[CLOCK_TEXT_MAX];
        path = api_query(path, "from", clock_text(clock_now_ms() - o->since.v, text));
    }
    if (o->from)
        path = api_query(path, "from", o->from);
    if (o->to)
        path = api_query(path, "to", o->to);
    if (o->step)
        path = api_query(path, "step", o->step);
    if (sandbox)
        path = api_query(path, "sandbox", sandbox);
    return path;
}

static int run_range(struct cli *cli, const struct usage_opts *o, const char *sandbox)
{
    _cleanup_free_ char *path = query_of(o, sandbox);
    _cleanup_json_ json_t *first = NULL;
    _cleanup_json_ json_t *sandboxes = NULL;
    struct err err = ERR_INIT;
    if (cli_call(cli, "GET", path, NULL, &first, &err) < 0 ||
        pages_read(cli, path, "sandboxes", &sandboxes, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        (void)json_object_set(first, "sandboxes", sandboxes);
        (void)json_object_set_new(first, "next_cursor", json_null());
        cli_print_json(first);
    } else {
        print_report(first, sandboxes);
    }
    return 0;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct usage_opts *o = opts;
    bool range = o->from || o->to || o->step || o->since.set || argc == 0;
    if (o->since.set && o->from)
        return cli_usage(cli, "one of --since and --from is enough");
    if (!range)
        return run_now(cli, argc, argv);
    int status = 0;
    for (int i = 0; i < argc || i == 0; i++) {
        int r = run_range(cli, o, argc ? argv[i] : NULL);
        status = r ? r : status;
    }
    return status;
}

const struct command cmd_usage = {
    .name = "usage",
    .alias = "stats",
    .summary = "Show what sandboxes use now, or have used over time",
    .synopsis = "[OPTIONS] [SANDBOX...]",
    .description =
        "Without options, shows the processor time each sandbox named has used, its memory now "
        "and at its peak, the space its files take, how many processes and threads run, and how "
        "often the kernel had to kill one of them for want of memory.\n\n"
        "With --from, --to, --since or --step, or without a sandbox, shows what was used over a "
        "time, by sandbox, also by those that are gone: processor time, and memory and disk in "
        "GiB-hours. Without a beginning, the last 30 days. Times are rounded out to whole hours.",
    .examples =
        (const struct example[]){
            { "One, now", "warren usage box" },
            { "All that run", "warren usage $(warren ls -q --state running)" },
            { "The team's last day, by the hour", "warren usage --since 24h --step hour" },
            { "Another team's January, as the operator",
              "warren --team red usage --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z" },
            { NULL, NULL } },
    COMMAND_OPTS(usage_table, struct usage_opts),
    .stop_after = OPTS_ALL,
    .min_args = 0,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run,
};

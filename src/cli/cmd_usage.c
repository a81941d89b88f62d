#include <unistd.h>

#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/object.h"
#include "cli/term.h"
#include "cli/units.h"

static void put_row(struct listing *t, const char *id, const json_t *u)
{
    char text[UNIT_TEXT_MAX];
    listing_text(t, id);
    listing_text(t, cpu_time_text(member_int(u, "cpu_us"), text));
    listing_text(t, size_text(member_int(u, "memory_bytes"), text));
    listing_text(t, size_text(member_int(u, "memory_peak_bytes"), text));
    listing_text(t, size_text(member_int(u, "disk_bytes"), text));
    listing_int(t, member_int(u, "pids"));
    listing_int(t, member_int(u, "oom_kills"));
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
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
        listing_print(&t, stdout, term_width(STDOUT_FILENO));
    listing_done(&t);
    return status;
}

const struct command cmd_usage = {
    .name = "usage",
    .alias = "stats",
    .summary = "Show what sandboxes use: cpu, memory, disk, processes",
    .synopsis = "SANDBOX...",
    .description =
        "Shows the processor time each sandbox has used, its memory now and at its peak, the "
        "space its files take, how many processes and threads run, and how often the kernel had "
        "to kill one of them for want of memory.",
    .examples = (const struct example[]){ { "One", "warren usage box" },
                                          { "All that run",
                                            "warren usage $(warren ls -q --state running)" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run,
};

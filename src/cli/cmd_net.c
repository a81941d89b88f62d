#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/object.h"
#include "cli/term.h"
#include "cli/units.h"

struct log_opts {
    bool denied;
};

static const struct opt log_table[] = {
    { 0, "denied", OPT_FLAG, offsetof(struct log_opts, denied), NULL,
      "Only what was denied or could not be reached.", NULL },
};

/* Where to: the name if there is one, else the address; and the port. */
static void put_place(struct listing *t, const json_t *e)
{
    char text[300];
    const char *name = member_text(e, "name");
    const char *host = *name ? name : member_text(e, "address");
    if (member_int(e, "port"))
        (void)snprintf(text, sizeof(text), "%s:%d", host, (int)member_int(e, "port"));
    else
        (void)snprintf(text, sizeof(text), "%s", host);
    listing_text(t, text);
}

static bool is_denied(const json_t *e)
{
    return strcmp(member_text(e, "verdict"), "denied") == 0;
}

static void put_entry(struct listing *t, const json_t *e)
{
    char text[UNIT_TEXT_MAX];
    const char *rule = member_text(e, "rule"), *error = member_text(e, "error");
    listing_text(t, member_text(e, "time"));
    listing_text(t, member_text(e, "kind"));
    put_place(t, e);
    listing_text(t, *error ? error : member_text(e, "verdict"));
    listing_text(t, *rule ? rule : member_text(e, "reason"));
    listing_text(t, size_text(member_int(e, "sent_bytes"), text));
    listing_text(t, size_text(member_int(e, "received_bytes"), text));
}

static int run_log(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "TIME", false }, { "KIND", false }, { "TO", false },      { "VERDICT", false },
        { "RULE", false }, { "SENT", true },  { "RECEIVED", true },
    };
    const struct log_opts *o = opts;
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "network", "log", NULL);
    _cleanup_json_ json_t *log = NULL;
    struct err err = ERR_INIT;
    struct listing t;
    const json_t *e;
    size_t i;
    if (cli_call(cli, "GET", path, NULL, &log, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(member_list(log, "entries"));
        return 0;
    }
    listing_init(&t, columns, ARRAY_LEN(columns));
    json_array_foreach(member_list(log, "entries"), i, e)
    {
        if (!o->denied || is_denied(e) || *member_text(e, "error"))
            put_entry(&t, e);
    }
    listing_print(&t, stdout, term_width(STDOUT_FILENO));
    listing_done(&t);
    return 0;
}

const struct command cmd_net_log = {
    .name = "net log",
    .summary = "Show what a sandbox reached, and what it could not",
    .synopsis = "[OPTIONS] SANDBOX",
    .description = "Lists the latest attempts of a sandbox to resolve a name that was denied or to "
                   "connect to something: where to, what came of it and by which rule, and how "
                   "much went each way. Connections appear when they are over.",
    .examples =
        (const struct example[]){
            { "Why does it not work?", "warren net log --denied box" },
            { "Let it through", "warren update --rule 'allow *.example.com 443' box" },
            { "Whom did it talk to?",
              "warren --json net log box | jq -r '.[].name' | sort | uniq -c" },
            { NULL, NULL } },
    COMMAND_OPTS(log_table, struct log_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_log,
};

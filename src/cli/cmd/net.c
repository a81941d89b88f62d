#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/xmem.h"

struct log_opts {
    bool denied, follow;
};

static const struct opt log_table[] = {
    { 0, "denied", OPT_FLAG, offsetof(struct log_opts, denied), NULL,
      "Only what was denied or could not be reached.", NULL },
    { 'f', "follow", OPT_FLAG, offsetof(struct log_opts, follow), NULL,
      "Go on with what comes, until interrupted.", NULL },
};

#define PLACE_SIZE 400
#define HINTS_MAX 32 /* shown below one table */

/* Where to: the name if there is one, else the address, and the port; of what did not pass the address
 * that the name led to, too. */
static const char *place_text(const json_t *e, char out[PLACE_SIZE])
{
    const char *name = member_text(e, "name"), *address = member_text(e, "address");
    const char *host = *name ? name : address;
    bool v6 = strchr(host, ':') != NULL, both = *name && *address && *member_text(e, "hint");
    int port = (int)member_int(e, "port");
    int n = snprintf(out, PLACE_SIZE, "%s%s%s", v6 ? "[" : "", host, v6 ? "]" : "");
    if (port && n > 0 && n < PLACE_SIZE)
        n += snprintf(out + n, (size_t)(PLACE_SIZE - n), ":%d", port);
    if (both && n > 0 && n < PLACE_SIZE)
        (void)snprintf(out + n, (size_t)(PLACE_SIZE - n), " (%s)", address);
    return out;
}

static bool is_denied(const json_t *e)
{
    return strcmp(member_text(e, "verdict"), "denied") == 0;
}

static void put_entry(struct listing *t, const json_t *e)
{
    const char *rule = member_text(e, "rule"), *error = member_text(e, "error");
    char place[PLACE_SIZE];
    listing_text(t, member_text(e, "time"));
    listing_text(t, member_text(e, "kind"));
    listing_text(t, place_text(e, place));
    listing_text(t, *error ? error : member_text(e, "verdict"));
    listing_text(t, *rule ? rule : member_text(e, "reason"));
    listing_text(t, *member_text(e, "program") ? member_text(e, "program") : "-");
    cell_size(t, e, "sent_bytes");
    cell_size(t, e, "received_bytes");
}

static bool is_wanted(const struct log_opts *o, const json_t *e)
{
    return !o->denied || is_denied(e) || *member_text(e, "error");
}

/* How to get each of them through, once for each place; the latest last. */
static void print_hints(const struct log_opts *o, const json_t *log)
{
    _cleanup_json_ json_t *said = json_object();
    const json_t *e;
    size_t i;
    json_array_foreach(member_list(log, "entries"), i, e) {
        char place[PLACE_SIZE];
        const char *hint = member_text(e, "hint");
        if (!*hint || !is_wanted(o, e) || json_object_size(said) >= HINTS_MAX)
            continue;
        _cleanup_free_ char *text = xasprintf("%s: %s", place_text(e, place), hint);
        if (json_object_get(said, text))
            continue;
        _cleanup_free_ char *clean = text_line(text);
        (void)printf("%s%s\n", json_object_size(said) ? "" : "\n", clean);
        (void)json_object_set_new(said, text, json_true());
    }
}

static void print_entries(struct cli *cli, const struct log_opts *o, const json_t *log)
{
    static const struct column columns[] = {
        { "TIME", false }, { "KIND", false },    { "TO", false },  { "VERDICT", false },
        { "RULE", false }, { "PROGRAM", false }, { "SENT", true }, { "RECEIVED", true },
    };
    struct listing t;
    const json_t *e;
    size_t i;
    listing_init(&t, columns, ARRAY_LEN(columns));
    json_array_foreach(member_list(log, "entries"), i, e) {
        if (is_wanted(o, e))
            put_entry(&t, e);
    }
    table_finish(&t);
    print_hints(o, log);
}

static void print_json(const struct log_opts *o, const json_t *log)
{
    _cleanup_json_ json_t *wanted = json_array();
    json_t *e;
    size_t i;
    json_array_foreach(member_list(log, "entries"), i, e) {
        if (is_wanted(o, e))
            (void)json_array_append(wanted, e);
    }
    cli_print_json(wanted);
}

/* One a line, as they come: there are no columns that could fit what is not there yet. */
static int print_now(struct cli *cli, const struct log_opts *o, const json_t *log)
{
    const json_t *e;
    size_t i;
    json_array_foreach(member_list(log, "entries"), i, e) {
        char sent[UNIT_TEXT_MAX], received[UNIT_TEXT_MAX], place[PLACE_SIZE];
        const char *rule = member_text(e, "rule");
        const char *error = member_text(e, "error"), *program = member_text(e, "program");
        if (!is_wanted(o, e))
            continue;
        if (cli->json) {
            (void)json_dumpf(e, stdout,
                             JSON_COMPACT | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0));
            (void)putchar('\n');
            continue;
        }
        _cleanup_free_ char *line = NULL;
        const char *hint = member_text(e, "hint");
        if (asprintf(&line, "%s  %s  %s  %s  %s  %s  %s  %s%s%s%s", member_text(e, "time"),
                     member_text(e, "kind"), place_text(e, place),
                     *error ? error : member_text(e, "verdict"),
                     *rule ? rule : member_text(e, "reason"), *program ? program : "-",
                     size_text(member_int(e, "sent_bytes"), sent),
                     size_text(member_int(e, "received_bytes"), received),
                     json_is_true(json_object_get(e, "open")) ? "  open" : "", *hint ? "  -> " : "",
                     hint) < 0)
            return -ENOMEM;
        _cleanup_free_ char *clean = text_line(line);
        (void)puts(clean);
    }
    return fflush(stdout) != 0 ? -EPIPE : 0;
}

static int call_log(struct cli *cli, const char *sandbox, int64_t after, bool wait,
                    json_t **ret_log, struct err *err)
{
    char number[24];
    char *path = api_path("sandboxes", sandbox, "network", "log", NULL);
    (void)snprintf(number, sizeof(number), "%lld", (long long)after);
    path = api_query(path, "after", number);
    if (wait)
        path = api_query(path, "wait_s", "30");
    int r = cli_call(cli, "GET", path, NULL, ret_log, err);
    free(path);
    return r;
}

static int follow(struct cli *cli, const struct log_opts *o, const char *sandbox, struct err *err)
{
    int64_t after = 0;
    for (bool wait = false;; wait = true) {
        _cleanup_json_ json_t *log = NULL;
        int r = call_log(cli, sandbox, after, wait, &log, err);
        if (r < 0)
            return r;
        after = member_int(log, "next");
        if (print_now(cli, o, log) < 0)
            return 0;
    }
}

static int run_log(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct log_opts *o = opts;
    _cleanup_json_ json_t *log = NULL;
    struct err err = ERR_INIT;
    if (o->follow)
        return follow(cli, o, argv[0], &err) < 0 ? cli_fail(cli, &err) : 0;
    if (call_log(cli, argv[0], 0, false, &log, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        print_json(o, log);
    else
        print_entries(cli, o, log);
    return 0;
}

const struct command cmd_net_log = {
    .name = "net log",
    .summary = "Show what a sandbox reached, and what it could not",
    .synopsis = "[OPTIONS] SANDBOX",
    .description =
        "Lists the latest attempts of a sandbox to resolve a name that was denied or leads "
        "nowhere, or to connect to something: where to, what came of it and by which "
        "rule, and how much went each way, and the program inside; below, how to get "
        "each through that did not pass. Connections appear when they are over, or "
        "after ten seconds.",
    .examples =
        (const struct example[]){
            { "Why does it not work?", "warren net log --denied box" },
            { "Watch", "warren net log -f box" },
            { "Let it through", "warren net set box 'allow *.example.com 443'" },
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

/* A rule has at least two words; what has one is the name of a set of them. */
static json_t *network_of(int n, char **words)
{
    if (n == 1 && !strchr(words[0], ' '))
        return json_string(words[0]);
    json_t *rules = json_array();
    for (int i = 0; i < n; i++)
        (void)json_array_append_new(rules, json_string(words[i]));
    return json_pack("{s:o}", "rules", rules);
}

struct set_opts {
    bool cut;
};

static const struct opt set_table[] = {
    { 0, "cut", OPT_FLAG, offsetof(struct set_opts, cut), NULL,
      "End connections that are open and not allowed any more.", NULL },
};

static int run_set(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct set_opts *o = opts;
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], NULL);
    _cleanup_json_ json_t *body = json_object();
    _cleanup_json_ json_t *sandbox = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "allow") == 0 || strcmp(argv[i], "deny") == 0)
            return cli_usage(cli, "each rule is one word for the shell: quote it, '%s %s'", argv[i],
                             i + 1 < argc ? argv[i + 1] : "example.com");
    if (json_object_set_new(body, "network", network_of(argc - 1, argv + 1)) < 0)
        return cli_usage(cli, "a rule is text in UTF-8");
    if (o->cut)
        path = api_query(path, "cut", "true");
    if (cli_call(cli, "PATCH", path, body, &sandbox, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(json_object_get(sandbox, "network"));
    return 0;
}

const struct command cmd_net_set = {
    .name = "net set",
    .summary = "Change what a sandbox may reach, at once",
    .synopsis = "[--cut] SANDBOX none|agents|open|RULE...",
    .description =
        "Takes the place of all that was said before, for what begins from now on; with --cut, and with none, for what is open as well. A rule allows or "
        "denies a host, everything below one, an address, a range or all, and says ports and "
        "protocol if need be; the first that fits decides, and what none allows is denied. "
        "`warren net log` shows what was tried.",
    .examples =
        (const struct example[]){
            { "One host, TLS alone", "warren net set box 'allow api.example.com 443'" },
            { "Several, without one below them",
              "warren net set box 'deny ads.example.com' 'allow *.example.com'" },
            { "A range, on some ports",
              "warren net set box 'allow 203.0.113.0/24 8000-8010,9000'" },
            { "Registries, git hosts and models", "warren net set box agents" },
            { "What is open must hold under it, too",
              "warren net set --cut box 'allow api.example.com 443'" },
            { "Nothing any more", "warren net set box none" },
            { NULL, NULL } },
    COMMAND_OPTS(set_table, struct set_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run_set,
};

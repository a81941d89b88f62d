#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/sink.h"
#include "cli/units.h"

#define EVENT_BYTES_MAX (2u << 20)

struct logs_opts {
    bool follow, events;
    const char *since, *level;
};

#define AT(member_) offsetof(struct logs_opts, member_)
static const struct opt logs_table[] = {
    { 'f', "follow", OPT_FLAG, AT(follow), NULL, "Go on with what comes.", NULL },
    { 0, "since", OPT_TEXT, AT(since), "WHEN",
      "Only what came since a time (2026-01-31T12:00:00Z) or within a span (10m); of one process, "
      "only what follows so many bytes of output.",
      NULL },
    { 0, "level", OPT_TEXT, AT(level), "LEVEL",
      "Of the daemon's log, only lines of this weight or more: debug, info, warn, error.",
      "debug info warn error" },
    { 0, "events", OPT_FLAG, AT(events), NULL,
      "Of a sandbox, also what happened: starts and ends, on standard error.", NULL },
};

struct reader {
    struct sink sink;
    struct buf scratch;
    bool json, events;
};

static int print_json(const json_t *event)
{
    if (strcmp(member_text(event, "type"), "ping") == 0)
        return 0;
    (void)json_dumpf(event, stdout, JSON_COMPACT | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0));
    (void)putchar('\n');
    return fflush(stdout) != 0 ? -EPIPE : 0;
}

/* A line of the daemon's log, as its own log has it. */
static int on_line(void *arg, const json_t *line)
{
    const struct reader *r = arg;
    const char *name;
    json_t *value;
    if (r->json || strcmp(member_text(line, "type"), "ping") == 0)
        return r->json ? print_json(line) : 0;
    _cleanup_free_ char *time = text_line(member_text(line, "time"));
    _cleanup_free_ char *module = text_line(member_text(line, "module"));
    _cleanup_free_ char *message = text_line(member_text(line, "message"));
    (void)printf("%s %-5s %-9s %s", time, member_text(line, "level"), module, message);
    json_object_foreach((json_t *)(uintptr_t)line, name, value) {
        bool shown = strcmp(name, "time") == 0 || strcmp(name, "level") == 0 ||
                     strcmp(name, "module") == 0 || strcmp(name, "message") == 0;
        _cleanup_free_ char *text = shown ? NULL : text_line(json_string_value(value));
        if (!shown)
            (void)printf(strchr(text, ' ') ? " %s=\"%s\"" : " %s=%s", name, text);
    }
    (void)putchar('\n');
    return fflush(stdout) != 0 ? -EPIPE : 0;
}

static int on_event(void *arg, const json_t *event)
{
    struct reader *r = arg;
    const char *type = member_text(event, "type"), *p;
    size_t n;
    int e = 0;
    if (r->json)
        return print_json(event);
    if (r->events && strcmp(type, "event") == 0) {
        _cleanup_free_ char *text = text_line(member_text(event, "text"));
        cli_note("%s %s", member_text(event, "event"), text);
    }
    if (strcmp(type, "dropped") == 0)
        cli_note("%" PRId64 " bytes were not kept", member_int(event, "bytes"));
    if (strcmp(type, "stdout") != 0 && strcmp(type, "stderr") != 0)
        return 0;
    e = event_bytes(event, &r->scratch, &p, &n);
    if (e == 0)
        e = sink_put(&r->sink, type[3] == 'o' ? STDOUT_FILENO : STDERR_FILENO, p, n);
    return e < 0 ? e : sink_flush(&r->sink);
}

/* "10m" or a time, as the API wants it. */
static int when(const char *text, char out[CLOCK_TEXT_MAX], struct err *err)
{
    int64_t ms;
    if (duration_parse(text, &ms) >= 0)
        ms = clock_now_ms() - ms;
    else if (clock_parse(text, &ms) < 0)
        return err_set(err, EINVAL, "--since '%s' is no time, such as 2026-01-31T12:00:00Z or 10m",
                       text);
    (void)clock_text(ms > 0 ? ms : 1, out);
    return 0;
}

/* Takes path. */
static int stream(struct cli *cli, char *path, const struct logs_opts *o, const char *since,
                  int (*on)(void *, const json_t *), struct err *err)
{
    _cleanup_free_ char *whole = path;
    struct reader reader = { .scratch = BUF_INIT(EVENT_BYTES_MAX),
                             .json = cli->json,
                             .events = o->events };
    struct client *client = cli_client(cli, err);
    if (!client)
        return -EIO;
    if (since)
        whole = api_query(whole, "since", since);
    if (o->level)
        whole = api_query(whole, "level", o->level);
    whole = api_query(whole, "follow", o->follow ? "true" : "false");
    sink_init(&reader.sink, false);
    _cleanup_(request_done) struct request call = {
        .method = "GET", .path = whole, .on_line = on, .arg = &reader
    };
    int r = client_perform(client, &call, err);
    (void)sink_end(&reader.sink);
    sink_done(&reader.sink);
    buf_done(&reader.scratch);
    return r == -EPIPE ? 0 : r;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct logs_opts *o = opts;
    struct err err = ERR_INIT;
    char since[CLOCK_TEXT_MAX];
    int64_t n = 0;
    int r = 0;
    if (argc > 0 && !*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (argc > 0 && o->level)
        return cli_usage(cli, "--level is for the daemon's own log");
    if (argc > 1 && (count_parse(argv[1], &n) < 0 || n == 0))
        return cli_usage(cli, "'%s' is no process number; `warren ps --all %s` shows them", argv[1],
                         argv[0]);
    if (argc > 1 && o->since && count_parse(o->since, &n) < 0)
        return cli_usage(cli, "--since of a process is a number of bytes");
    if (argc < 2 && o->since)
        r = when(o->since, since, &err);
    if (r < 0)
        return cli_fail(cli, &err);
    if (argc == 0)
        r = stream(cli, api_path("logs", NULL), o, o->since ? since : NULL, on_line, &err);
    else if (argc == 1)
        r = stream(cli, api_path("sandboxes", argv[0], "logs", NULL), o, o->since ? since : NULL,
                   on_event, &err);
    else
        r = stream(cli, api_path("sandboxes", argv[0], "processes", argv[1], "output", NULL), o,
                   o->since, on_event, &err);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_logs = {
    .name = "logs",
    .summary = "Show the daemon's log, or what was printed in a sandbox",
    .synopsis = "[OPTIONS] [SANDBOX [PROCESS]]",
    .description =
        "Without a word: what the daemon logged; a key that is not an admin's sees the lines about "
        "its team's sandboxes. With SANDBOX: the output of everything that clients started in it, "
        "in the order it was started; with PROCESS, its number as `warren ps` shows it, of that one "
        "alone, whether it runs or has ended. Standard output and standard error go each to our own. "
        "Only the newest output of a talkative program is kept; what is missing is said. With "
        "--json, the API's lines.",
    .examples =
        (const struct example[]){
            { "All that was printed in a sandbox", "warren logs box" },
            { "Follow process 3", "warren logs -f box 3" },
            { "What went wrong lately?", "warren logs --level warn --since 1h" },
            { NULL, NULL } },
    COMMAND_OPTS(logs_table, struct logs_opts),
    .stop_after = OPTS_ALL,
    .min_args = 0,
    .max_args = 2,
    .operands = "@sandbox",
    .run = run,
};

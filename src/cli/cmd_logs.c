#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sink.h"
#include "cli/units.h"

#define EVENT_BYTES_MAX (2u << 20)

struct logs_opts {
    bool follow;
    struct opt_number since;
};

static const struct opt logs_table[] = {
    { 'f', "follow", OPT_FLAG, offsetof(struct logs_opts, follow), NULL, "Go on until it ends.",
      NULL },
    { 0, "since", OPT_COUNT, offsetof(struct logs_opts, since), "OFFSET",
      "Only what follows so many bytes of output.", NULL },
};

struct reader {
    struct sink sink;
    struct buf scratch;
    bool json;
};

static int on_event(void *arg, const json_t *event)
{
    struct reader *r = arg;
    const char *type = member_text(event, "type"), *p;
    size_t n;
    int e = 0;
    if (r->json) {
        if (strcmp(type, "ping") != 0) {
            (void)json_dumpf(event, stdout,
                             JSON_COMPACT | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0));
            (void)putchar('\n');
            (void)fflush(stdout);
        }
        return ferror(stdout) ? -EPIPE : 0;
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

static int stream(struct cli *cli, const char *sandbox, const char *process,
                  const struct logs_opts *o, struct err *err)
{
    _cleanup_free_ char *path =
        api_path("sandboxes", sandbox, "processes", process, "output", NULL);
    struct reader reader = { .scratch = BUF_INIT(EVENT_BYTES_MAX), .json = cli->json };
    struct client *client = cli_client(cli, err);
    char since[24];
    if (!client)
        return -EIO;
    (void)snprintf(since, sizeof(since), "%" PRId64, o->since.v);
    path = api_query(path, "since", since);
    path = api_query(path, "follow", o->follow ? "true" : "false");
    sink_init(&reader.sink, false);
    _cleanup_(request_done) struct request call = {
        .method = "GET", .path = path, .on_line = on_event, .arg = &reader
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
    char number[24];
    int64_t n = 0;
    int r = 0;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (argc > 1 && (count_parse(argv[1], &n) < 0 || n == 0))
        return cli_usage(cli, "'%s' is no process number; `warren ps --all %s` shows them", argv[1],
                         argv[0]);
    if (argc == 1)
        r = process_newest(cli, argv[0], false, &n, &err);
    (void)snprintf(number, sizeof(number), "%" PRId64, n);
    if (r == 0)
        r = stream(cli, argv[0], number, o, &err);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_logs = {
    .name = "logs",
    .summary = "Show what a process has printed",
    .synopsis = "[OPTIONS] SANDBOX [PROCESS]",
    .description =
        "Prints the output that is kept of a process, whether it runs or has ended: standard "
        "output and standard error each to our own. PROCESS is its number as `warren ps` shows "
        "it; the newest one where none is given. Only the newest output of a talkative program is "
        "kept; what is missing is said. With --json, the API's events, one a line.",
    .examples = (const struct example[]){ { "The newest process's output", "warren logs box" },
                                          { "Follow process 3", "warren logs -f box 3" },
                                          { NULL, NULL } },
    COMMAND_OPTS(logs_table, struct logs_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 2,
    .operands = "@sandbox",
    .run = run,
};

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"

#define FOLLOW_PAST 10 /* as tail has it */
#define RETRY_MS 250   /* between attempts to find the daemon again */
#define RETRY_FOR_MS 30000

struct events_opts {
    bool follow;
    const char *sandbox;
    struct opt_number since, limit;
};

#define AT(member_) offsetof(struct events_opts, member_)
static const struct opt events_table[] = {
    { 'f', "follow", OPT_FLAG, AT(follow), NULL, "Go on with what happens, until interrupted.",
      NULL },
    { 0, "sandbox", OPT_TEXT, AT(sandbox), "SANDBOX", "Only what is about this one.", "@sandbox" },
    { 0, "since", OPT_COUNT, AT(since), "SEQ", "Only events after this number.", NULL },
    { 0, "limit", OPT_COUNT, AT(limit), "N",
      "Of what has happened, only the newest so many. Default: all; with -f, 10.", NULL },
};

struct feed {
    struct cli *cli;
    const struct events_opts *opts;
    int64_t seq; /* of the last event seen */
};

static int print_event(void *arg, const json_t *event)
{
    struct feed *feed = arg;
    if (!json_object_get(event, "seq"))
        return 0; /* a ping */
    feed->seq = member_int(event, "seq");
    if (feed->cli->json) {
        (void)json_dumpf(event, stdout,
                         JSON_COMPACT | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0));
        (void)putchar('\n');
    } else {
        const json_t *data = json_object_get(event, "data");
        _cleanup_free_ char *text = json_object_size(data) ? json_dumps(data, JSON_COMPACT) : NULL;
        _cleanup_free_ char *detail = text_line(text);
        _cleanup_free_ char *time = text_line(member_text(event, "time"));
        _cleanup_free_ char *type = text_line(member_text(event, "type"));
        _cleanup_free_ char *id = text_line(member_text(event, "sandbox"));
        (void)printf("%6" PRId64 "  %s  %-16s  %-20s  %s\n", feed->seq, time, type, *id ? id : "-",
                     detail);
    }
    return ferror(stdout) ? -EPIPE : 0;
}

static int print_now(void *arg, const json_t *event)
{
    int r = print_event(arg, event);
    return fflush(stdout) != 0 ? -EPIPE : r;
}

static char *feed_path(const struct feed *feed)
{
    char *path = api_path("events", NULL);
    char number[24];
    (void)snprintf(number, sizeof(number), "%" PRId64, feed->seq);
    path = api_query(path, "since", number);
    return feed->opts->sandbox ? api_query(path, "sandbox", feed->opts->sandbox) : path;
}

/* What has happened: all of it, page by page, or the newest `keep`. */
static int past(struct feed *feed, size_t keep, struct err *err)
{
    _cleanup_json_ json_t *newest = json_array();
    const json_t *event;
    size_t i, n;
    do {
        _cleanup_free_ char *path = api_query(feed_path(feed), "limit", "1000");
        _cleanup_json_ json_t *page = NULL;
        int r = cli_call(feed->cli, "GET", path, NULL, &page, err);
        if (r < 0)
            return r;
        json_t *list = json_object_get(page, "events");
        n = json_array_size(list);
        feed->seq = member_int(page, "next");
        (void)json_array_extend(newest, list);
        while (keep > 0 && json_array_size(newest) > keep)
            (void)json_array_remove(newest, 0);
    } while (n > 0);
    int64_t last = feed->seq;
    json_array_foreach(newest, i, event)
        if (print_event(feed, event) < 0)
            break;
    feed->seq = last;
    (void)fflush(stdout);
    return 0;
}

/* What happens: also across restarts of the daemon, from the last event seen. */
static int follow(struct feed *feed, struct err *err)
{
    struct client *client = cli_client(feed->cli, err);
    int64_t lost_ms = 0;
    if (!client)
        return -EIO;
    for (;;) {
        _cleanup_free_ char *path = api_query(feed_path(feed), "follow", "true");
        _cleanup_(request_done) struct request call = {
            .method = "GET", .path = path, .on_line = print_now, .arg = feed
        };
        int r = client_perform(client, &call, err);
        if (r == -EPIPE)
            return 0;
        if (r < 0 && call.status >= 400)
            return r;
        int64_t now = clock_mono_ms();
        if (call.status > 0 || lost_ms == 0)
            lost_ms = now;
        if (now - lost_ms > RETRY_FOR_MS)
            return r < 0 ? r : err_set(err, EIO, "the feed ended");
        (void)poll(NULL, 0, RETRY_MS);
    }
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct events_opts *o = opts;
    struct feed feed = { .cli = cli, .opts = o, .seq = o->since.v };
    struct err err = ERR_INIT;
    size_t keep = o->limit.set ? (size_t)o->limit.v : o->follow && !o->since.set ? FOLLOW_PAST : 0;
    int r = past(&feed, keep, &err);
    if (r == 0 && o->follow)
        r = follow(&feed, &err);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_events = {
    .name = "events",
    .summary = "Show what happened: sandboxes, processes, images, keys",
    .synopsis = "[OPTIONS]",
    .description =
        "Prints the change feed, oldest first: number, time, what happened, to which sandbox, and "
        "details. With --json, the API's own events, one a line.",
    .examples = (const struct example[]){ { "Watch", "warren events -f" },
                                          { "The last few", "warren events --limit 5" },
                                          { "Why did it end?", "warren events --sandbox box" },
                                          { NULL, NULL } },
    COMMAND_OPTS(events_table, struct events_opts),
    .stop_after = OPTS_ALL,
    .run = run,
};

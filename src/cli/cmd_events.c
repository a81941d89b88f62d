#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"

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
    { 0, "limit", OPT_COUNT, AT(limit), "N", "At most so many.", NULL },
};

static int print_event(void *arg, const json_t *event)
{
    const struct cli *cli = arg;
    bool tty = isatty(STDOUT_FILENO);
    if (!json_object_get(event, "seq"))
        return 0; /* a ping */
    if (cli->json) {
        (void)json_dumpf(event, stdout, JSON_COMPACT | (tty ? JSON_ENSURE_ASCII : 0));
        (void)putchar('\n');
    } else {
        const json_t *data = json_object_get(event, "data");
        _cleanup_free_ char *text =
            json_object_size(data) ? json_dumps(data, JSON_COMPACT) : NULL;
        _cleanup_free_ char *detail = text_line(text);
        _cleanup_free_ char *time = text_line(member_text(event, "time"));
        _cleanup_free_ char *type = text_line(member_text(event, "type"));
        _cleanup_free_ char *id = text_line(member_text(event, "sandbox"));
        (void)printf("%6" PRId64 "  %s  %-16s  %-20s  %s\n", member_int(event, "seq"), time, type,
                     *id ? id : "-", detail);
    }
    (void)fflush(stdout); /* each as it happens */
    return ferror(stdout) ? -EPIPE : 0;
}

static int follow(struct cli *cli, const char *path, struct err *err)
{
    struct client *client = cli_client(cli, err);
    if (!client)
        return -EIO;
    _cleanup_(request_done) struct request call = { .method = "GET", .path = path,
                                                    .on_line = print_event, .arg = cli };
    int r = client_perform(client, &call, err);
    return r == -EPIPE ? 0 : r;
}

static int list(struct cli *cli, const char *path, struct err *err)
{
    _cleanup_json_ json_t *answer = NULL;
    const json_t *event;
    size_t i;
    int r = cli_call(cli, "GET", path, NULL, &answer, err);
    if (r < 0)
        return r;
    json_array_foreach(json_object_get(answer, "events"), i, event)
        if (print_event(cli, event) < 0)
            break;
    return 0;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct events_opts *o = opts;
    _cleanup_free_ char *path = api_path("events", NULL);
    struct err err = ERR_INIT;
    char number[24];
    if (o->since.set) {
        (void)snprintf(number, sizeof(number), "%" PRId64, o->since.v);
        path = api_query(path, "since", number);
    }
    if (o->limit.set) {
        (void)snprintf(number, sizeof(number), "%" PRId64, o->limit.v);
        path = api_query(path, "limit", number);
    }
    if (o->sandbox)
        path = api_query(path, "sandbox", o->sandbox);
    if (o->follow)
        path = api_query(path, "follow", "true");
    int r = o->follow ? follow(cli, path, &err) : list(cli, path, &err);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_events = {
    .name = "events",
    .summary = "Show what happened: sandboxes, processes, images, keys",
    .synopsis = "[OPTIONS]",
    .description =
        "Prints the change feed, oldest first: number, time, what happened, to which sandbox, and "
        "details. With --json, the API's own events, one a line.",
    .examples = (const struct example[]){
        { "Watch", "warren events -f" },
        { "Why did it end?", "warren events --sandbox box" },
        { NULL, NULL } },
    COMMAND_OPTS(events_table, struct events_opts),
    .stop_after = OPTS_ALL,
    .run = run,
};

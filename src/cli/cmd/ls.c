#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/xmem.h"

struct ls_opts {
    const char *state;
    struct opt_list metadata;
    struct opt_number limit;
    bool quiet, oldest;
};

#define AT(member_) offsetof(struct ls_opts, member_)
static const struct opt ls_table[] = {
    { 0, "state", OPT_TEXT, AT(state), "STATE",
      "Only those in this state; several with commas: running,stopped.",
      "creating running frozen stopping stopped pausing paused archived deleting" },
    { 0, "metadata", OPT_PAIRS, AT(metadata), "NAME=VALUE",
      "Only those with this label; given again, all must match.", NULL },
    { 0, "limit", OPT_COUNT, AT(limit), "N", "At most so many.", NULL },
    { 0, "oldest", OPT_FLAG, AT(oldest), NULL, "Oldest first; else newest first.", NULL },
    { 'q', "quiet", OPT_FLAG, AT(quiet), NULL, "Ids only, one a line.", NULL },
};

int sandboxes_list(struct cli *cli, const struct sandbox_query *q, json_t **ret_list,
                   struct err *err)
{
    _cleanup_json_ json_t *all = json_array();
    _cleanup_free_ char *cursor = NULL;
    do {
        _cleanup_free_ char *path = api_query(api_path("sandboxes", NULL), "limit", "1000");
        _cleanup_json_ json_t *page = NULL;
        if (q->state)
            path = api_query(path, "state", q->state);
        if (q->oldest)
            path = api_query(path, "order", "asc");
        if (cursor)
            path = api_query(path, "cursor", cursor);
        for (size_t i = 0; i < q->nmetadata; i++) {
            const char *eq = strchr(q->metadata[i], '=');
            _cleanup_free_ char *name =
                xasprintf("metadata.%.*s", (int)(eq - q->metadata[i]), q->metadata[i]);
            path = api_query(path, name, eq + 1);
        }
        int r = cli_call(cli, "GET", path, NULL, &page, err);
        if (r < 0)
            return r;
        (void)json_array_extend(all, json_object_get(page, "sandboxes"));
        const char *next = member_text(page, "next_cursor");
        free(cursor);
        cursor = *next ? xstrdup(next) : NULL;
    } while (cursor && (q->limit == 0 || json_array_size(all) < q->limit));
    while (q->limit > 0 && json_array_size(all) > q->limit)
        (void)json_array_remove(all, json_array_size(all) - 1);
    *ret_list = take_ptr(all);
    return 0;
}

static void put_row(struct listing *t, const json_t *s)
{
    char text[UNIT_TEXT_MAX];
    _cleanup_(buf_done) struct buf labels = BUF_INIT(1u << 20);
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(s, "metadata"), name, value) {
        (void)buf_printf(&labels, "%s%s=%s", labels.len ? " " : "", name,
                         json_is_string(value) ? json_string_value(value) : "");
    }
    cell_text(t, s, "id");
    cell_text(t, s, "name");
    cell_text(t, s, "state");
    cell_text(t, s, "image");
    listing_text(t, real_text(member_real(s, "cpus"), text));
    listing_text(t, size_text(member_int(s, "memory_mb") << 20, text));
    cell_age(t, s, "created_at");
    listing_text(t, labels.data);
}

static const struct column columns[] = {
    { "ID", COLUMN_ID }, { "NAME", false },  { "STATE", COLUMN_STATE }, { "IMAGE", false },
    { "CPUS", true },    { "MEMORY", true }, { "AGE", true },           { "METADATA", false },
};
static const struct table table = TABLE(columns, put_row);

int sandboxes_print(struct cli *cli, const struct sandbox_query *q, bool quiet)
{
    _cleanup_json_ json_t *list = NULL;
    struct err err = ERR_INIT;
    if (sandboxes_list(cli, q, &list, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(list);
    } else if (quiet) {
        const json_t *s;
        size_t i;
        json_array_foreach(list, i, s)
            (void)printf("%s\n", member_text(s, "id"));
    } else {
        table_print(&table, list, SIZE_MAX);
    }
    return 0;
}

/* A disk that fills up, to whoever looks around; a daemon that does not say is no matter here. */
static void warn_of_disk(struct cli *cli)
{
    _cleanup_free_ char *path = api_path("health", NULL);
    _cleanup_json_ json_t *health = NULL;
    struct err err = ERR_INIT;
    if (cli_call(cli, "GET", path, NULL, &health, &err) < 0)
        return;
    const char *disk = member_text(health, "disk");
    if (strcmp(disk, "full") == 0)
        cli_note("the disk of this Warren is nearly full: nothing new can be made until something "
                 "is deleted (`warren doctor` says how full)");
    else if (strcmp(disk, "low") == 0)
        cli_note("the disk of this Warren fills up (`warren doctor` says how full)");
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct ls_opts *o = opts;
    struct sandbox_query q = { .state = o->state,
                               .metadata = o->metadata.items,
                               .nmetadata = o->metadata.n,
                               .oldest = o->oldest,
                               .limit = o->limit.set ? (size_t)o->limit.v : 0 };
    int r = sandboxes_print(cli, &q, o->quiet);
    if (r == 0 && !o->quiet && !cli->json)
        warn_of_disk(cli);
    return r;
}

const struct command cmd_ls = {
    .name = "ls",
    .alias = "list",
    .summary = "List sandboxes",
    .synopsis = "[OPTIONS]",
    .description = "Lists the sandboxes there are, running and stopped, newest first.",
    .examples = (const struct example[]){ { "All", "warren ls" },
                                          { "Those that run and belong to a project",
                                            "warren ls --state running --metadata project=x" },
                                          { "Delete all that are stopped",
                                            "warren ls -q --state stopped | xargs -r warren rm" },
                                          { NULL, NULL } },
    COMMAND_OPTS(ls_table, struct ls_opts),
    .stop_after = OPTS_ALL,
    .run = run,
};

#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/table.h"
#include "cli/units.h"

#define FILES_SHOWN 20
#define PROGRAMS_SHOWN 20

/* ---- what changed ---- */

static void put_change(struct listing *t, const json_t *c)
{
    char text[UNIT_TEXT_MAX];
    const char *change = member_text(c, "change");
    bool file = strcmp(member_text(c, "type"), "file") == 0;
    listing_text(t, *change == 'a' ? "+" : *change == 'r' ? "-" : "~");
    listing_text(t, file ? size_text(member_int(c, "size_bytes"), text) : member_text(c, "type"));
    listing_text(t, member_text(c, "path"));
}

static void print_changes(const json_t *files, size_t max, const char *more)
{
    static const struct column columns[] = { { "", false }, { "SIZE", true }, { "PATH", false } };
    static const struct table table = TABLE(columns, put_change);
    const json_t *list = member_list(files, "changes");
    char text[UNIT_TEXT_MAX];
    (void)printf("%lld added, %lld changed, %lld removed, %s\n",
                 (long long)member_int(files, "added"), (long long)member_int(files, "changed"),
                 (long long)member_int(files, "removed"),
                 size_text(member_int(files, "bytes"), text));
    if (json_array_size(list) == 0)
        return;
    table_print(&table, list, max);
    if (json_array_size(list) > max || member_true(files, "more"))
        (void)printf("and more: %s\n", more);
}

struct changes_opts {
    struct opt_number limit;
};

static const struct opt changes_table[] = {
    { 'n', "limit", OPT_COUNT, offsetof(struct changes_opts, limit), "N",
      "At most so many, 100000. Default 1000.", NULL },
};

static int run_changes(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct changes_opts *o = opts;
    _cleanup_json_ json_t *files = NULL;
    struct err err = ERR_INIT;
    char limit[32];
    char *path = api_path("sandboxes", argv[0], "changes", NULL);
    if (o->limit.set) {
        (void)snprintf(limit, sizeof(limit), "%lld", (long long)o->limit.v);
        path = api_query(path, "limit", limit);
    }
    int r = cli_call(cli, "GET", path, NULL, &files, &err);
    free(path);
    if (r < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(files);
    else
        print_changes(files, SIZE_MAX, "--limit");
    return 0;
}

const struct command cmd_changes = {
    .name = "changes",
    .summary = "Show which files a sandbox changed",
    .synopsis = "[OPTIONS] SANDBOX",
    .description =
        "Lists what was added (+), changed (~) and removed (-) since the sandbox was made "
        "from its image, by name. Files are compared by their bytes, whatever time they "
        "claim to have been written.",
    .examples =
        (const struct example[]){
            { "What did it do to /etc?", "warren changes box | grep ' /etc/'" },
            { "The largest new files",
              "warren --json changes box | jq -r '.changes | sort_by(-.size_bytes) | .[:10][].path'" },
            { NULL, NULL } },
    COMMAND_OPTS(changes_table, struct changes_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_changes,
};

/* ---- the page ---- */

static void title(const char *text)
{
    (void)printf("\n%s\n", text);
}

static void print_network(const json_t *page)
{
    const json_t *network = json_object_get(page, "network"), *rule, *secret;
    size_t i;
    title("CAN REACH");
    if (json_is_string(network))
        (void)printf("  %s\n", json_string_value(network));
    if (*member_text(network, "preset"))
        (void)printf("  %s\n", member_text(network, "preset"));
    json_array_foreach(member_list(network, "rules"), i, rule) {
        _cleanup_free_ char *text = text_line(json_string_value(rule));
        (void)printf("  %s\n", text);
    }
    json_array_foreach(member_list(page, "secrets"), i, secret) {
        if (*member_text(secret, "path")) {
            (void)puts("  and, by requests that fit, the hosts that its secrets are bound to");
            break;
        }
    }
}

static void put_host(struct listing *t, const json_t *h)
{
    cell_text(t, h, "host");
    cell_int(t, h, "connections");
    cell_size(t, h, "sent_bytes");
    cell_size(t, h, "received_bytes");
}

static void print_reached(const json_t *page)
{
    static const struct column columns[] = {
        { "HOST", false }, { "CONNECTIONS", true }, { "SENT", true }, { "RECEIVED", true }
    };
    static const struct table table = TABLE(columns, put_host);
    const json_t *list = member_list(page, "reached"), *other = json_object_get(page, "other");
    char sent[UNIT_TEXT_MAX], received[UNIT_TEXT_MAX];
    title("REACHED");
    if (json_array_size(list) == 0)
        (void)puts("  nothing");
    else
        table_print(&table, list, SIZE_MAX);
    if (member_int(other, "connections"))
        (void)printf("and other hosts: %lld connections, %s sent, %s received\n",
                     (long long)member_int(other, "connections"),
                     size_text(member_int(other, "sent_bytes"), sent),
                     size_text(member_int(other, "received_bytes"), received));
    if (member_int(page, "denied"))
        (void)printf("%lld attempts were denied: warren net log --denied\n",
                     (long long)member_int(page, "denied"));
}

static void put_secret(struct listing *t, const json_t *s)
{
    char where[600];
    cell_text(t, s, "secret");
    const char *path = member_text(s, "path");
    (void)snprintf(where, sizeof(where), "%s%s", member_text(s, "host"),
                   *path ? path : " (no longer)");
    listing_text(t, where);
    cell_int(t, s, "used");
}

static void put_port(struct listing *t, const json_t *p)
{
    cell_int(t, p, "port");
    cell_text(t, p, "program");
    cell_text(t, p, "url");
}

static void put_volume(struct listing *t, const json_t *v)
{
    _cleanup_free_ char *others = member_words(v, "shared_with", " ");
    cell_text(t, v, "volume");
    cell_text(t, v, "path");
    listing_text(t, member_true(v, "read_only") ? "read" : "read, write");
    listing_text(t, others);
}

static const struct column secret_columns[] = { { "SECRET", false },
                                                { "FOR", false },
                                                { "USED", true } };
static const struct column port_columns[] = { { "PORT", true },
                                              { "PROGRAM", false },
                                              { "FROM OUTSIDE", false } };
static const struct column volume_columns[] = {
    { "VOLUME", false }, { "PATH", false }, { "MAY", false }, { "SHARED WITH", false }
};

/* What is left out where there is nothing of it. */
static const struct section {
    const char *title, *member;
    struct table table;
} sections[] = {
    { "SECRETS IT MAY USE, AND DID", "secrets", TABLE(secret_columns, put_secret) },
    { "PORTS IT OPENED", "ports", TABLE(port_columns, put_port) },
    { "VOLUMES", "volumes", TABLE(volume_columns, put_volume) },
};

static void print_section(const json_t *page, const struct section *s)
{
    const json_t *list = member_list(page, s->member);
    if (json_array_size(list) == 0)
        return;
    title(s->title);
    table_print(&s->table, list, SIZE_MAX);
}

static void put_program(struct listing *t, const json_t *p)
{
    cell_int(t, p, "count");
    cell_text(t, p, "path");
}

static void print_programs(const json_t *page)
{
    static const struct column columns[] = { { "TIMES", true }, { "PROGRAM", false } };
    static const struct table table = TABLE(columns, put_program);
    const json_t *list = member_list(page, "programs");
    title("PROGRAMS IT RAN");
    if (!member_true(page, "programs_counted")) {
        (void)puts("not counted: this machine's kernel does not let Warren see them");
        return;
    }
    table_print(&table, list, PROGRAMS_SHOWN);
    if (json_array_size(list) > PROGRAMS_SHOWN)
        (void)printf("and %zu more: warren --json blast\n", json_array_size(list) - PROGRAMS_SHOWN);
}

static void print_page(const json_t *page)
{
    _cleanup_free_ char *name = text_line(member_text(page, "name"));
    (void)printf("%s%s%s, %s\n", member_text(page, "sandbox"), *name ? " " : "", name,
                 member_text(page, "state"));
    print_network(page);
    print_reached(page);
    for (size_t i = 0; i < ARRAY_LEN(sections); i++)
        print_section(page, &sections[i]);
    print_programs(page);
    title("FILES IT CHANGED");
    print_changes(json_object_get(page, "files"), FILES_SHOWN, "warren changes");
}

static int run_blast(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], "blast", NULL);
    _cleanup_json_ json_t *page = NULL;
    struct err err = ERR_INIT;
    if (cli_call(cli, "GET", path, NULL, &page, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(page);
    else
        print_page(page);
    return 0;
}

const struct command cmd_blast = {
    .name = "blast",
    .summary = "Show what a sandbox can reach and has reached: its blast radius",
    .synopsis = "SANDBOX",
    .description =
        "One page for the day something inside goes wrong: the network it may use and whom it "
        "talked to, secrets, ports, volumes and who shares them, programs it ran and "
        "files it changed. Told by the kernel, the broker and the disk; nothing is asked of "
        "the sandbox.",
    .examples =
        (const struct example[]){
            { "The page", "warren blast box" },
            { "Everything, for a report", "warren --json blast box > blast.json" },
            { "Cut it off first", "warren update --net none box && warren blast box" },
            { NULL, NULL } },
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_blast,
};

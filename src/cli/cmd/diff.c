#include <string.h>
#include <unistd.h>

#include "cli/colour.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/xmem.h"

struct diff_opts {
    bool text;
    struct opt_number limit;
};

static const struct opt diff_table[] = {
    { 't', "text", OPT_FLAG, offsetof(struct diff_opts, text), NULL,
      "Show how texts changed, as a unified diff.", NULL },
    { 'n', "limit", OPT_COUNT, offsetof(struct diff_opts, limit), "N",
      "At most so many files, 100000. Default 1000.", NULL },
};

/* ---- a list ---- */

static bool is_file(const json_t *c)
{
    return strcmp(member_text(c, "type"), "file") == 0;
}

/* "1.2 KiB", or "1.2 KiB -> 3 KiB"; what is no file is told by its type. */
static void put_size(struct listing *t, const json_t *c)
{
    char now[UNIT_TEXT_MAX], before[UNIT_TEXT_MAX];
    int64_t size = member_int(c, "size_bytes"), old = member_int(c, "size_before_bytes");
    const char *change = member_text(c, "change");
    if (!is_file(c)) {
        listing_text(t, member_text(c, "type"));
        return;
    }
    (void)size_text(size, now);
    (void)size_text(old, before);
    if (*change == 'c' && size != old) {
        _cleanup_free_ char *both = xasprintf("%s -> %s", before, now);
        listing_text(t, both);
    } else {
        listing_text(t, *change == 'r' ? before : now);
    }
}

static void put_row(struct listing *t, const json_t *c)
{
    const char *change = member_text(c, "change");
    const char *mode = member_text(c, "mode"), *before = member_text(c, "mode_before");
    listing_text(t, *change == 'a' ? "+" : *change == 'r' ? "-" : "~");
    put_size(t, c);
    if (*mode && *before && strcmp(mode, before) != 0) {
        _cleanup_free_ char *both = xasprintf("%s -> %s", before, mode);
        listing_text(t, both);
    } else {
        listing_text(t, *mode ? mode : before);
    }
    cell_text(t, c, "path");
}

/* ---- texts ---- */

/* What a sandbox wrote goes to a terminal only when it is harmless there. */
static void print_harmless(const char *text, size_t n)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(4u << 20);
    struct sanitiser s = { 0 };
    if (!isatty(STDOUT_FILENO))
        (void)fwrite(text, 1, n, stdout);
    else if (sanitise(&s, text, n, &out) >= 0 && sanitise_end(&s, &out) >= 0 && out.len)
        (void)fwrite(out.data, 1, out.len, stdout);
}

static enum colour colour_of_line(const char *line)
{
    switch (*line) {
    case '+': return COLOUR_GREEN;
    case '-': return COLOUR_RED;
    case '@': return COLOUR_CYAN;
    default: return COLOUR_NONE;
    }
}

static void print_text(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n"), end = text[n] == '\n';
        enum colour colour = colour_of_line(text);
        (void)fputs(colour_on(stdout, colour), stdout);
        print_harmless(text, n);
        (void)fputs(colour_off(stdout, colour), stdout);
        (void)fputs(end ? "\n" : "", stdout);
        text += n + end;
    }
}

static void print_change(const json_t *c)
{
    _cleanup_free_ char *path = text_line(member_text(c, "path"));
    const char *change = member_text(c, "change"), *state = member_text(c, "text_state");
    bool added = *change == 'a', removed = *change == 'r';
    (void)printf("%sdiff a%s b%s%s\n", colour_on(stdout, COLOUR_BOLD), path, path,
                 colour_off(stdout, COLOUR_BOLD));
    if (added || removed)
        (void)printf("%s %s, mode %s\n", change, member_text(c, "type"),
                     member_text(c, added ? "mode" : "mode_before"));
    else if (strcmp(member_text(c, "mode"), member_text(c, "mode_before")) != 0)
        (void)printf("mode %s -> %s\n", member_text(c, "mode_before"), member_text(c, "mode"));
    if (*member_text(c, "text")) {
        (void)printf("--- %s%s\n+++ %s%s\n", added ? "/dev/null" : "a", added ? "" : path,
                     removed ? "/dev/null" : "b", removed ? "" : path);
        print_text(member_text(c, "text"));
    }
    if (strcmp(state, "binary") == 0)
        (void)puts("not text");
    else if (strcmp(state, "too_large") == 0)
        (void)puts("too large to show");
    else if (strcmp(state, "cut") == 0)
        (void)puts("and more: too large to show");
}

/* ---- the command ---- */

static char *ask_for(const struct diff_opts *o, int argc, char **argv)
{
    char *path = api_query(api_path("checkpoints", argv[0], "diff", NULL), "to", argv[1]);
    if (o->text)
        path = api_query(path, "text", "true");
    if (o->limit.set) {
        _cleanup_free_ char *limit = xasprintf("%lld", (long long)o->limit.v);
        path = api_query(path, "limit", limit);
    }
    for (int i = 2; i < argc; i++)
        path = api_query(path, "path", argv[i]);
    return path;
}

static void print_summary(const json_t *diff)
{
    char text[UNIT_TEXT_MAX];
    (void)printf("%lld added, %lld changed, %lld removed, %s\n",
                 (long long)member_int(diff, "added"), (long long)member_int(diff, "changed"),
                 (long long)member_int(diff, "removed"),
                 size_text(member_int(diff, "bytes"), text));
}

static void print_diff(const json_t *diff, bool text)
{
    static const struct column columns[] = {
        { "", false }, { "SIZE", true }, { "MODE", false }, { "PATH", false }
    };
    static const struct table table = TABLE(columns, put_row);
    const json_t *list = member_list(diff, "changes"), *c;
    size_t i;
    if (text) {
        json_array_foreach(list, i, c) {
            print_change(c);
        }
        return;
    }
    print_summary(diff);
    if (json_array_size(list) > 0)
        table_print(&table, list, json_array_size(list));
    if (member_true(diff, "more"))
        (void)puts("and more: --limit, or a path");
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct diff_opts *o = opts;
    _cleanup_json_ json_t *diff = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0] || !*argv[1])
        return cli_usage(cli, "an empty word names nothing");
    _cleanup_free_ char *path = ask_for(o, argc, argv);
    if (cli_call(cli, "GET", path, NULL, &diff, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(diff);
    else
        print_diff(diff, o->text);
    return 0;
}

const struct command cmd_diff = {
    .name = "diff",
    .summary = "Show which files differ between two states",
    .synopsis = "[--text] [--limit N] A B [PATH...]",
    .description =
        "Compares A with B: which files were added (+), changed (~) or removed (-) on the way from "
        "one to the other. Each is a checkpoint (an id, a name, or SANDBOX:NAME) or a sandbox, "
        "which means its files as they are now. They may be of different sandboxes, such as two "
        "copies of one, if their image is the same. PATHs narrow it to some files, or to what is "
        "in some directories. Files are compared by their bytes.",
    .examples =
        (const struct example[]){
            { "What happened since", "warren diff before-upgrade box" },
            { "What two copies did differently", "warren diff COPY1 COPY2" },
            { "In detail, as a patch", "warren diff --text before-upgrade box /etc /srv/app" },
            { NULL, NULL } },
    COMMAND_OPTS(diff_table, struct diff_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@state",
    .run = run,
};

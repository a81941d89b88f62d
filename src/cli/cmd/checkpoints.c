#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/lineage.h"
#include "cli/listing.h"
#include "cli/object.h"
#include "cli/pages.h"
#include "cli/term.h"
#include "cli/units.h"
#include "cli/xmem.h"

#define HERE_SHOWN 3 /* sandboxes that are at one checkpoint; of more, how many */

/* What there is, and who is where. */
struct view {
    json_t *checkpoints, *sandboxes;
    struct lineage_row *rows;
    bool *shown; /* by tree; NULL: all */
};

static void view_done(struct view *v)
{
    lineage_free(v->rows, json_array_size(v->checkpoints));
    json_decref(v->checkpoints);
    json_decref(v->sandboxes);
    free(v->shown);
}

/* ---- words for a row ---- */

static const char *name_of(const json_t *sandbox)
{
    const char *name = member_text(sandbox, "name");
    return *name ? name : member_text(sandbox, "id");
}

static const char *whose(const struct view *v, const json_t *checkpoint)
{
    const char *id = member_text(checkpoint, "sandbox");
    const json_t *s;
    size_t i;
    json_array_foreach(v->sandboxes, i, s) {
        if (strcmp(member_text(s, "id"), id) == 0)
            return name_of(s);
    }
    return id;
}

static void put_here(struct listing *t, const struct view *v, const char *checkpoint)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1u << 16);
    const json_t *s;
    size_t i, n = 0;
    json_array_foreach(v->sandboxes, i, s) {
        if (strcmp(member_text(s, "checkpoint"), checkpoint) == 0 && ++n <= HERE_SHOWN)
            (void)buf_printf(&b, "%s%s", n > 1 ? ", " : "", name_of(s));
    }
    if (n > HERE_SHOWN)
        (void)buf_printf(&b, " and %zu more", n - HERE_SHOWN);
    listing_text(t, b.data);
}

static void print_tree(const struct view *v)
{
    static const struct column columns[] = {
        { "CHECKPOINT", false }, { "NAME", false }, { "SANDBOX", false }, { "AGE", true },
        { "SIZE", true },        { "WHY", false },  { "HERE", false },    { "COMMENT", false },
    };
    int64_t now = clock_now_ms();
    struct listing t;
    listing_init(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < json_array_size(v->checkpoints); i++) {
        const json_t *c = v->rows[i].checkpoint;
        char text[UNIT_TEXT_MAX];
        if (v->shown && !v->shown[v->rows[i].root])
            continue;
        _cleanup_free_ char *id = xasprintf("%s%s", v->rows[i].stem, member_text(c, "id"));
        int64_t made = member_moment(c, "created_at");
        listing_text(&t, id);
        listing_text(&t, member_text(c, "name"));
        listing_text(&t, whose(v, c));
        listing_text(&t, made ? duration_text(now - made, text) : NULL);
        listing_text(&t, size_text(member_int(c, "disk_bytes"), text));
        listing_text(&t, member_text(c, "reason"));
        put_here(&t, v, member_text(c, "id"));
        listing_text(&t, member_text(c, "comment"));
    }
    listing_print(&t, stdout, term_width(STDOUT_FILENO));
    listing_done(&t);
}

/* ---- which trees ---- */

static bool is_one_of(const json_t *list, const char *id)
{
    const json_t *o;
    size_t i;
    json_array_foreach(list, i, o) {
        if (strcmp(member_text(o, "id"), id) == 0)
            return true;
    }
    return false;
}

/* Those trees that one of `own` stands in, or the sandbox itself. */
static void narrow(struct view *v, const char *sandbox, const json_t *own)
{
    size_t n = json_array_size(v->checkpoints), i;
    const char *at = "";
    const json_t *s;
    json_array_foreach(v->sandboxes, i, s) {
        if (strcmp(member_text(s, "id"), sandbox) == 0 ||
            strcmp(member_text(s, "name"), sandbox) == 0)
            at = member_text(s, "checkpoint");
    }
    v->shown = xcalloc(n + 1, sizeof(*v->shown));
    for (size_t k = 0; k < n; k++) {
        const char *id = member_text(v->rows[k].checkpoint, "id");
        if (strcmp(id, at) == 0 || is_one_of(own, id))
            v->shown[v->rows[k].root] = true;
    }
}

static int read_own(struct cli *cli, const char *sandbox, json_t **ret_list, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", sandbox, "checkpoints", NULL);
    return pages_read(cli, path, "checkpoints", ret_list, err);
}

static int read_view(struct cli *cli, struct view *v, struct err *err)
{
    _cleanup_free_ char *path = api_path("checkpoints", NULL);
    const struct sandbox_query all = { 0 };
    int r = pages_read(cli, path, "checkpoints", &v->checkpoints, err);
    if (r >= 0)
        r = sandboxes_list(cli, &all, &v->sandboxes, err);
    if (r >= 0)
        v->rows = lineage_draw(v->checkpoints);
    return r;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_(view_done) struct view v = { 0 };
    _cleanup_json_ json_t *own = NULL;
    struct err err = ERR_INIT;
    if (argc > 0 && !*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (argc > 0 && read_own(cli, argv[0], &own, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json && own) {
        cli_print_json(own);
        return 0;
    }
    if (read_view(cli, &v, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(v.checkpoints);
        return 0;
    }
    if (own)
        narrow(&v, argv[0], own);
    print_tree(&v);
    return 0;
}

const struct command cmd_checkpoint_ls = {
    .name = "checkpoint ls",
    .alias = "checkpoints",
    .summary = "Draw the tree of checkpoints",
    .synopsis = "[SANDBOX]",
    .description =
        "Draws your team's checkpoints as trees, or those trees that a sandbox has its part in. "
        "Each comes below the one that its sandbox's files came from; where ways part, each "
        "begins with a dot. SANDBOX is whose files they were, SIZE what it had written, HERE "
        "which sandboxes go on from there now.\n\n"
        "With --json and a sandbox, only that sandbox's own.",
    .examples = (const struct example[]){ { "All", "warren checkpoints" },
                                          { "Around one sandbox", "warren checkpoints box" },
                                          { "Ids of those made for forks",
                                            "warren --json checkpoints | jq -r "
                                            "'.[] | select(.reason == \"fork\").id'" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run,
};

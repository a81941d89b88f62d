#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/table.h"
#include "cli/units.h"

struct archive_opts {
    bool keep;
};

static const struct opt archive_table[] = {
    { 'k', "keep", OPT_FLAG, offsetof(struct archive_opts, keep), NULL,
      "Of a checkpoint: keep its files here too.", NULL },
};

static bool show(struct progress *progress, const json_t *event)
{
    const char *stage = member_text(event, "stage");
    if (strcmp(member_text(event, "type"), "progress") != 0)
        return false;
    _cleanup_json_ json_t *line = json_pack("{s:s, s:s, s:I, s:I}", "digest", stage, "state",
                                            strcmp(stage, "check") == 0 ? "checking" : "moving",
                                            "bytes", (json_int_t)member_int(event, "bytes"),
                                            "total", (json_int_t)member_int(event, "total"));
    if (line)
        progress_layer(progress, line);
    return true;
}

static int print_end(struct cli *cli, const json_t *last)
{
    const char *type = member_text(last, "type");
    const json_t *o = json_object_get(last, type);
    char size[UNIT_TEXT_MAX];
    if (cli->json) {
        cli_print_json(last);
        return 0;
    }
    (void)printf("%s  %lld of %lld pieces moved, %s\n", member_text(o, "id"),
                 (long long)member_int(last, "pieces_moved"), (long long)member_int(last, "pieces"),
                 size_text(member_int(last, "bytes_moved"), size));
    return 0;
}

/* A checkpoint of that id, or else a sandbox. */
static bool is_checkpoint(struct cli *cli, const char *who)
{
    _cleanup_free_ char *path = api_path("checkpoints", who, NULL);
    _cleanup_json_ json_t *o = NULL;
    return cli_call(cli, "GET", path, NULL, &o, NULL) >= 0;
}

static int run_archive(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct archive_opts *o = opts;
    bool point = is_checkpoint(cli, argv[0]);
    _cleanup_free_ char *path =
        api_path(point ? "checkpoints" : "sandboxes", argv[0], "archive", NULL);
    _cleanup_json_ json_t *body = point ? json_pack("{s:b}", "keep_local", o->keep) : NULL;
    _cleanup_json_ json_t *last = NULL;
    struct err err = ERR_INIT;
    if (o->keep && !point)
        return cli_usage(cli, "--keep is for checkpoints: a sandbox that is archived is not here");
    if (follow(cli, path, body, show, &last, &err) < 0)
        return cli_fail(cli, &err);
    return print_end(cli, last);
}

static int run_fetch(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("checkpoints", argv[0], "fetch", NULL);
    _cleanup_json_ json_t *last = NULL;
    struct err err = ERR_INIT;
    if (follow(cli, path, NULL, show, &last, &err) < 0)
        return cli_fail(cli, &err);
    return print_end(cli, last);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("checkpoints", argv[0], "archive", NULL);
    struct err err = ERR_INIT;
    return cli_call(cli, "DELETE", path, NULL, NULL, &err) < 0 ? cli_fail(cli, &err) : 0;
}

static void put_row(struct listing *t, const json_t *o)
{
    cell_text(t, o, "id");
    listing_text(t, json_is_true(json_object_get(o, "known")) ? "yes" : "no");
    cell_age(t, o, "archived_at");
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = { { "CHECKPOINT", false },
                                             { "KNOWN HERE", false },
                                             { "AGE", true } };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("archives", NULL);
    return table_pages(cli, path, "archives", &table);
}

static int run_import(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("archives", argv[0], "import", NULL);
    _cleanup_json_ json_t *last = NULL;
    struct err err = ERR_INIT;
    if (follow(cli, path, NULL, show, &last, &err) < 0)
        return cli_fail(cli, &err);
    return print_end(cli, last);
}

const struct command cmd_archive = {
    .name = "archive",
    .summary = "Move a sandbox or a checkpoint to object storage",
    .synopsis = "[--keep] SANDBOX|CHECKPOINT",
    .description =
        "Sends a checkpoint's files to the object storage that the daemon was started with, in pieces "
        "that are known by their content: what is there already is not sent again. Its files here go "
        "once all of it was seen there. A sandbox is stopped first; its next start, or any use of the "
        "checkpoint, brings the files back. Prints how many pieces had to be moved.",
    .examples =
        (const struct example[]){
            { "A sandbox that is not needed for a while", "warren archive box" },
            { "A checkpoint, kept here too", "warren archive --keep q3m8v0t2k5x7c9b1n4z6" },
            { NULL, NULL } },
    COMMAND_OPTS(archive_table, struct archive_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run_archive,
};

const struct command cmd_archive_fetch = {
    .name = "archive fetch",
    .alias = "unarchive",
    .summary = "Bring an archived checkpoint's files back",
    .synopsis = "CHECKPOINT",
    .description =
        "Fetches the files of a checkpoint from object storage and checks every piece of "
        "them. The archive stays. Using the checkpoint does the same by itself.",
    .examples = (const struct example[]){ { "One", "warren archive fetch q3m8v0t2k5x7c9b1n4z6" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .run = run_fetch,
};

const struct command cmd_archive_rm = {
    .name = "archive rm",
    .summary = "Remove a checkpoint from object storage",
    .synopsis = "CHECKPOINT",
    .description =
        "Removes the archive of a checkpoint whose files are here, and what nobody else needs "
        "of it. `warren checkpoint rm` removes both.",
    .examples = (const struct example[]){ { "One", "warren archive rm q3m8v0t2k5x7c9b1n4z6" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .run = run_rm,
};

const struct command cmd_archive_ls = {
    .name = "archive ls",
    .summary = "List what is in object storage",
    .synopsis = "",
    .description =
        "Lists your team's checkpoints in the object storage, those of other daemons that "
        "use the same one too.",
    .examples = (const struct example[]){ { "All", "warren archive ls" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_ls,
};

const struct command cmd_archive_import = {
    .name = "archive import",
    .summary = "Take over a checkpoint that another daemon archived",
    .synopsis = "CHECKPOINT",
    .description =
        "Makes an archive that this daemon does not know one of its checkpoints: its image is "
        "fetched, its files when they are needed. The environment and the bindings of its "
        "sandbox are not part of an archive.",
    .examples = (const struct example[]){ { "On another machine",
                                            "warren archive import q3m8v0t2k5x7c9b1n4z6" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .run = run_import,
};

#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/table.h"
#include "cli/units.h"

/* "sha256:" and twelve digits, as people know it. */
static const char *short_id(const char *id, char out[UNIT_TEXT_MAX])
{
    (void)snprintf(out, UNIT_TEXT_MAX, "%.12s", strncmp(id, "sha256:", 7) == 0 ? id + 7 : id);
    return out;
}

static void put_row(struct listing *t, const json_t *image)
{
    char text[UNIT_TEXT_MAX];
    cell_text(t, image, "name");
    cell_size(t, image, "size_bytes");
    cell_size(t, image, "shared_bytes");
    cell_int(t, image, "layers");
    cell_age(t, image, "created_at");
    listing_text(t, short_id(member_text(image, "id"), text));
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "NAME", false },  { "SIZE", true }, { "SHARED", true },
        { "LAYERS", true }, { "AGE", true },  { "ID", COLUMN_ID },
    };
    static const struct table table = TABLE(columns, put_row);
    _cleanup_free_ char *path = api_path("images", NULL);
    return table_pages(cli, path, "images", &table);
}

static int run_rm(struct cli *cli, const void *opts, int argc, char **argv)
{
    return cli_remove(cli, "images", argc, argv);
}

const struct command cmd_image_ls = {
    .name = "image ls",
    .alias = "images",
    .summary = "List the images sandboxes can start from",
    .synopsis = "",
    .description = "Lists each image, own and public: its name, what its layers take unpacked, how "
                   "much of that other images have too, when it was made, and its id.",
    .examples = (const struct example[]){ { "All", "warren image ls" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_ls,
};

const struct command cmd_image_rm = {
    .name = "image rm",
    .alias = "rmi",
    .summary = "Remove images",
    .synopsis = "IMAGE...",
    .description = "Removes each name; with an image's last name go the layers that nothing else "
                   "needs. One that a sandbox was made from is kept, and the command fails, until "
                   "that sandbox is deleted.",
    .examples = (const struct example[]){ { "One", "warren image rm old" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@image",
    .run = run_rm,
};

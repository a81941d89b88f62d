#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/object.h"
#include "cli/pages.h"
#include "cli/term.h"
#include "cli/units.h"

/* "sha256:" and twelve digits, as people know it. */
static const char *short_id(const char *id, char out[UNIT_TEXT_MAX])
{
    (void)snprintf(out, UNIT_TEXT_MAX, "%.12s", strncmp(id, "sha256:", 7) == 0 ? id + 7 : id);
    return out;
}

static int run_ls(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "NAME", false },  { "SIZE", true }, { "SHARED", true },
        { "LAYERS", true }, { "AGE", true },  { "ID", false },
    };
    _cleanup_free_ char *path = api_path("images", NULL);
    _cleanup_json_ json_t *list = NULL;
    struct err err = ERR_INIT;
    struct listing t;
    const json_t *image;
    size_t i;
    if (pages_read(cli, path, "images", &list, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(list);
        return 0;
    }
    listing_init(&t, columns, ARRAY_LEN(columns));
    json_array_foreach(list, i, image)
    {
        char text[UNIT_TEXT_MAX];
        int64_t at = member_moment(image, "created_at");
        listing_text(&t, member_text(image, "name"));
        listing_text(&t, size_text(member_int(image, "size_bytes"), text));
        listing_text(&t, size_text(member_int(image, "shared_bytes"), text));
        listing_int(&t, member_int(image, "layers"));
        listing_text(&t, at ? duration_text(clock_now_ms() - at, text) : NULL);
        listing_text(&t, short_id(member_text(image, "id"), text));
    }
    listing_print(&t, stdout, term_width(STDOUT_FILENO));
    listing_done(&t);
    return 0;
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

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/save.h"

struct export_opts {
    const char *output, *format;
};

static const struct opt export_table[] = {
    { 'o', "output", OPT_TEXT, offsetof(struct export_opts, output), "FILE",
      "Where to write it. Default: standard output.", "@file" },
    { 0, "format", OPT_TEXT, offsetof(struct export_opts, format), "FORMAT",
      "`oci` (a layout, which docker takes too) or `docker`. Default: oci.", "oci docker" },
};

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct export_opts *o = opts;
    _cleanup_free_ char *path = api_path("images", argv[0], "export", NULL);
    if (o->format)
        path = api_query(path, "format", o->format);
    return save_answer(cli, path, o->output);
}

const struct command cmd_image_export = {
    .name = "image export",
    .summary = "Write an image as an archive",
    .synopsis = "[--output FILE] [--format oci|docker] IMAGE",
    .description = "Writes an image with its layers, as they came in, and its settings: a tar that "
                   "`warren image import` and `docker load` take.",
    .examples = (const struct example[]){ { "To a file", "warren image export -o app.tar app" },
                                          { "To Docker", "warren image export app | docker load" },
                                          { NULL, NULL } },
    COMMAND_OPTS(export_table, struct export_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@image",
    .run = run,
};

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/xmem.h"

struct export_opts {
    const char *output, *format;
};

static const struct opt export_table[] = {
    { 'o', "output", OPT_TEXT, offsetof(struct export_opts, output), "FILE",
      "Where to write it. Default: standard output.", "@file" },
    { 0, "format", OPT_TEXT, offsetof(struct export_opts, format), "FORMAT",
      "`oci` (a layout, which docker takes too) or `docker`. Default: oci.", "oci docker" },
};

static int write_part(void *arg, const void *p, size_t n)
{
    return fd_write_full(*(const int *)arg, p, n);
}

static int fetch(struct cli *cli, const char *path, int fd, struct err *err)
{
    struct client *client = cli_client(cli, err);
    if (!client)
        return -EIO;
    _cleanup_(request_done) struct request call = {
        .method = "GET", .path = path, .sink = write_part, .arg = &fd, .timeout_s = -1
    };
    return client_perform(client, &call, err);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct export_opts *o = opts;
    _cleanup_free_ char *path = api_path("images", argv[0], "export", NULL), *part = NULL;
    struct err err = ERR_INIT;
    if (o->format)
        path = api_query(path, "format", o->format);
    if (!o->output || strcmp(o->output, "-") == 0) {
        if (isatty(STDOUT_FILENO))
            return cli_usage(cli, "standard output is a terminal; --output says where to write it");
        return fetch(cli, path, STDOUT_FILENO, &err) < 0 ? cli_fail(cli, &err) : 0;
    }
    /* A file that is there is whole. */
    part = xasprintf("%s.part", o->output);
    _cleanup_fd_ int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int r = fd < 0 ? err_set(&err, errno, "cannot write '%s': %s", part, strerror(errno))
                   : fetch(cli, path, fd, &err);
    if (r >= 0 && rename(part, o->output) < 0)
        r = err_set(&err, errno, "cannot write '%s': %s", o->output, strerror(errno));
    if (r < 0) {
        (void)unlink(part);
        return cli_fail(cli, &err);
    }
    return 0;
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

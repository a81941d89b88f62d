#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/term.h"
#include "cli/units.h"
#include "cli/upload.h"
#include "cli/xmem.h"

struct import_opts {
    const char *name;
    bool public;
};

static const struct opt import_table[] = {
    { 'n', "name", OPT_TEXT, offsetof(struct import_opts, name), "NAME",
      "What to call it. Default: the file's name without .tar and what follows.", NULL },
    { 0, "public", OPT_FLAG, offsetof(struct import_opts, public), NULL,
      "Let every team start sandboxes from it.", NULL },
};

/* "dir/debian-12.tar.zst" is called "debian-12". */
static char *name_of(const char *file)
{
    const char *base = strrchr(file, '/');
    base = base ? base + 1 : file;
    const char *tar = strstr(base, ".tar");
    const char *tgz = strstr(base, ".tgz");
    if (!tar || (tgz && tgz < tar))
        tar = tgz;
    return tar ? xstrndup(base, (size_t)(tar - base)) : xstrdup(base);
}

static int import(struct cli *cli, const char *name, bool public, const char *file,
                  json_t **ret_image, struct err *err)
{
    _cleanup_free_ char *path = api_path("images", name, NULL);
    if (public)
        path = api_query(path, "public", "true");
    return upload_file(cli, "PUT", path, file, ret_image, err);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct import_opts *o = opts;
    _cleanup_json_ json_t *image = NULL;
    _cleanup_free_ char *own = NULL;
    struct err err = ERR_INIT;
    char size[UNIT_TEXT_MAX];
    if (!o->name && strcmp(argv[0], "-") == 0)
        return cli_usage(cli, "--name says what to call it");
    if (strcmp(argv[0], "-") == 0 && isatty(STDIN_FILENO))
        return cli_usage(cli, "standard input is a terminal; pipe an archive into it");
    own = o->name ? xstrdup(o->name) : name_of(argv[0]);
    if (!*own)
        return cli_usage(cli, "--name says what to call it");
    if (import(cli, own, o->public, argv[0], &image, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(image);
        return 0;
    }
    _cleanup_free_ char *name = text_line(own);
    (void)printf("%s  %s\n", name, size_text(member_int(image, "size_bytes"), size));
    return 0;
}

const struct command cmd_image_import = {
    .name = "image import",
    .summary = "Make an image from an archive",
    .synopsis = "[--name NAME] [--public] FILE|-",
    .description =
        "Sends a root filesystem, a docker save archive or an OCI layout as a tar (plain, or "
        "packed with gzip, zstd, xz or bzip2); the daemon finds out which it is. `-` reads "
        "standard input. An image of the same name is replaced; sandboxes made from the old one "
        "keep it.",
    .examples =
        (const struct example[]){
            { "From a file; it will be called alpine", "warren image import alpine.tar.gz" },
            { "From a directory", "tar -C rootfs -c . | warren image import --name mine -" },
            { "From Docker, with its layers and settings",
              "docker save debian:12 | warren image import --name debian:12 -" },
            { "For every team", "warren image import --public --name tools tools.tar" },
            { "From Debian's packages",
              "mmdebstrap --variant=minbase bookworm - | warren image import --name bookworm -" },
            { NULL, NULL } },
    COMMAND_OPTS(import_table, struct import_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@file",
    .run = run,
};

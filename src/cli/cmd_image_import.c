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
#include "cli/xmem.h"

#define PROGRESS_EVERY_MS 100
#define BAR_WIDTH 30

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

struct upload {
    int fd;
    int64_t total; /* -1: unknown */
    int64_t sent;
    int64_t started_ms, shown_ms;
    bool progress; /* stderr is a terminal */
};

static void show(struct upload *u, bool last)
{
    char sent[UNIT_TEXT_MAX], total[UNIT_TEXT_MAX], rate[UNIT_TEXT_MAX], bar[BAR_WIDTH + 1];
    int64_t now = clock_mono_ms(), took = now - u->started_ms;
    if (!u->progress || (!last && now - u->shown_ms < PROGRESS_EVERY_MS))
        return;
    u->shown_ms = now;
    (void)size_text(u->sent, sent);
    (void)size_text(u->sent * 1000 / (took > 0 ? took : 1), rate);
    if (u->total > 0) {
        int64_t full = u->sent * BAR_WIDTH / u->total;
        for (int i = 0; i < BAR_WIDTH; i++)
            bar[i] = i < full ? '#' : '.';
        bar[BAR_WIDTH] = '\0';
        (void)fprintf(stderr, "\r[%s] %3d%%  %s of %s  %s/s\x1b[K", bar,
                      (int)(u->sent * 100 / u->total), sent, size_text(u->total, total), rate);
    } else {
        (void)fprintf(stderr, "\r%s  %s/s\x1b[K", sent, rate);
    }
    if (u->total >= 0 && u->sent >= u->total)
        (void)fprintf(stderr, "  unpacking...");
}

static ssize_t read_source(void *arg, void *p, size_t n)
{
    struct upload *u = arg;
    ssize_t r;
    do {
        r = read(u->fd, p, n);
    } while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;
    u->sent += r;
    show(u, r == 0);
    return r;
}

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

static int open_source(const char *file, struct upload *u, struct err *err)
{
    struct stat st;
    u->fd = strcmp(file, "-") == 0 ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
    if (u->fd < 0 || fstat(u->fd, &st) < 0)
        return err_set(err, errno, "cannot open '%s': %s", file, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return err_set(err, EISDIR,
                       "'%s' is a directory; pack it first: tar -C %s -c . | warren "
                       "image import --name NAME -",
                       file, file);
    u->total = S_ISREG(st.st_mode) && lseek(u->fd, 0, SEEK_CUR) == 0 ? st.st_size : -1;
    return 0;
}

static int import(struct cli *cli, const char *name, bool public, const char *file,
                  json_t **ret_image, struct err *err)
{
    _cleanup_free_ char *path = api_path("images", name, NULL);
    if (public)
        path = api_query(path, "public", "true");
    struct upload u = { .fd = -1,
                        .progress = isatty(STDERR_FILENO) && !cli->json,
                        .started_ms = clock_mono_ms() };
    struct client *client = cli_client(cli, err);
    if (!client)
        return -EIO;
    int r = open_source(file, &u, err);
    if (r == 0) {
        _cleanup_(request_done) struct request call = { .method = "PUT",
                                                        .path = path,
                                                        .source = read_source,
                                                        .source_len = u.total,
                                                        .arg = &u,
                                                        .body_type = "application/x-tar" };
        r = client_perform(client, &call, err);
        if (u.progress && u.shown_ms)
            (void)fprintf(stderr, "\r\x1b[K");
        if (r == 0)
            *ret_image = take_ptr(call.json);
    }
    if (u.fd > STDIN_FILENO)
        (void)close(u.fd);
    return r;
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

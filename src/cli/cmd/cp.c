#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/place.h"
#include "cli/transfer.h"
#include "cli/xmem.h"

struct cp_opts {
    const char *user;
    bool quiet, recursive;
};

static const struct opt cp_table[] = {
    { 'u', "user", OPT_TEXT, offsetof(struct cp_opts, user), "USER",
      "Read and write as this user of the sandbox. Default: the sandbox's.", NULL },
    { 'q', "quiet", OPT_FLAG, offsetof(struct cp_opts, quiet), NULL, "Show no progress.", NULL },
    { 'r', "recursive", OPT_FLAG, offsetof(struct cp_opts, recursive), NULL,
      "Changes nothing: directories are copied whole anyway.", NULL },
};

/* What is at a path of a sandbox; *ret_entry NULL: nothing. */
static int look(const struct transfer *t, const struct place *p, json_t **ret_entry,
                struct err *err)
{
    _cleanup_free_ char *url = files_path(p->sandbox, "stat", p->path, t->user);
    char code[REQUEST_CODE_MAX];
    *ret_entry = NULL;
    int r = cli_call_code(t->cli, "GET", url, NULL, ret_entry, code, err);
    return r < 0 && strcmp(code, "file_not_found") == 0 ? 0 : r;
}

static bool is_dir(const json_t *entry)
{
    return strcmp(member_text(entry, "type"), "directory") == 0;
}

/* As cp: into a directory that is there, else under the name given. */
static char *target_in(const char *path, bool dir, const char *from)
{
    size_t n = strlen(path);
    _cleanup_free_ char *name = place_name(from);
    bool into = (dir || (n > 0 && path[n - 1] == '/')) && *name && strcmp(name, ".") != 0;
    return into ? place_join(path, name) : xstrdup(path);
}

/* ---- up ---- */

static int upload(const struct transfer *t, const struct place *from, const struct place *to,
                  struct err *err)
{
    _cleanup_json_ json_t *there = NULL;
    if (place_is_stdio(from))
        return transfer_put(t, to->sandbox, to->path, STDIN_FILENO, -1, NULL, false, err);
    if (access(from->path, R_OK) < 0)
        return err_set(err, errno, "cannot open '%s': %s", from->path, strerror(errno));
    int r = look(t, to, &there, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *target = target_in(to->path, is_dir(there), from->path);
    return transfer_put_path(t, from->path, to->sandbox, target, err);
}

/* ---- down ---- */

static int download_dir(const struct transfer *t, const struct place *from, const char *dir,
                        struct err *err)
{
    int fd = -1;
    pid_t pid = 0;
    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s': %s", dir, strerror(errno));
    int r = tar_start(true, dir, &fd, &pid, err);
    if (r < 0)
        return r;
    r = transfer_get_tar(t, from->sandbox, from->path, fd, err);
    (void)close(fd);
    int ended = tar_wait(pid, r < 0 ? NULL : err);
    return r < 0 ? r : ended;
}

/* Under another name until it is whole, so that a cut connection leaves the old file. */
static int download_file(const struct transfer *t, const struct place *from, const json_t *entry,
                         const char *file, struct err *err)
{
    _cleanup_free_ char *part = xasprintf("%s.%d.part", file, (int)getpid());
    mode_t mode = (mode_t)strtoul(member_text(entry, "mode"), NULL, 8) & 0777;
    _cleanup_fd_ int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot write '%s': %s", part, strerror(errno));
    int r = transfer_get(t, from->sandbox, from->path, fd, member_int(entry, "size"), err);
    if (r == 0 && (fchmod(fd, mode) < 0 || rename(part, file) < 0))
        r = err_set(err, errno, "cannot write '%s': %s", file, strerror(errno));
    if (r < 0)
        (void)unlink(part);
    return r;
}

static int download(const struct transfer *t, const struct place *from, const struct place *to,
                    struct err *err)
{
    _cleanup_json_ json_t *entry = NULL;
    struct stat st;
    int r = look(t, from, &entry, err);
    if (r < 0 || !entry)
        return r < 0 ? r : -ENOENT;
    if (place_is_stdio(to))
        return is_dir(entry) ? transfer_get_tar(t, from->sandbox, from->path, STDOUT_FILENO, err)
                             : transfer_get(t, from->sandbox, from->path, STDOUT_FILENO,
                                            member_int(entry, "size"), err);
    bool dir = stat(to->path, &st) == 0 && S_ISDIR(st.st_mode);
    _cleanup_free_ char *target = target_in(to->path, dir, from->path);
    return is_dir(entry) ? download_dir(t, from, target, err)
                         : download_file(t, from, entry, target, err);
}

/* ---- between sandboxes: by way of a file without a name here ---- */

static int between(const struct transfer *t, const struct place *from, const struct place *to,
                   struct err *err)
{
    _cleanup_json_ json_t *entry = NULL;
    _cleanup_json_ json_t *there = NULL;
    int r = look(t, from, &entry, err);
    if (r < 0 || !entry)
        return r < 0 ? r : -ENOENT;
    r = look(t, to, &there, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *target = target_in(to->path, is_dir(there), from->path);
    _cleanup_file_ FILE *spool = tmpfile();
    if (!spool)
        return err_set(err, errno, "cannot make a temporary file");
    int fd = fileno(spool);
    bool dir = is_dir(entry);
    r = dir ? transfer_get_tar(t, from->sandbox, from->path, fd, err)
            : transfer_get(t, from->sandbox, from->path, fd, member_int(entry, "size"), err);
    if (r < 0)
        return r;
    off_t size = lseek(fd, 0, SEEK_CUR);
    (void)lseek(fd, 0, SEEK_SET);
    return dir ? transfer_put_tar(t, to->sandbox, target, fd, err)
               : transfer_put(t, to->sandbox, target, fd, size, member_text(entry, "mode"), false,
                              err);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct cp_opts *o = opts;
    struct transfer t = { .cli = cli, .user = o->user, .quiet = o->quiet };
    _cleanup_(place_done) struct place from = { 0 };
    _cleanup_(place_done) struct place to = { 0 };
    struct err err = ERR_INIT;
    int r;

    place_parse(argv[0], &from);
    place_parse(argv[1], &to);
    if (!from.sandbox && !to.sandbox)
        return cli_usage(cli, "one of the two is in a sandbox: SANDBOX:PATH");
    if (from.sandbox && to.sandbox)
        r = between(&t, &from, &to, &err);
    else
        r = from.sandbox ? download(&t, &from, &to, &err) : upload(&t, &from, &to, &err);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_cp = {
    .name = "cp",
    .summary = "Copy files and directories into, out of and between sandboxes",
    .synopsis = "[OPTIONS] SRC DST",
    .description =
        "SRC and DST are a file here or SANDBOX:PATH; a path that does not begin with a slash is "
        "in the user's home. Directories are copied with all they hold, into DST if it is a "
        "directory already. `-` is standard input or output; a directory comes out of a sandbox "
        "to it as a tar archive.",
    .examples =
        (const struct example[]){ { "A file in", "warren cp app.py box:/srv/app.py" },
                                  { "A directory out", "warren cp box:/var/log ./logs" },
                                  { "From one to another", "warren cp box:data.csv other:/tmp/" },
                                  { "What a program prints", "make-data | warren cp - box:data" },
                                  { NULL, NULL } },
    COMMAND_OPTS(cp_table, struct cp_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = 2,
    .operands = "@file",
    .run = run,
};

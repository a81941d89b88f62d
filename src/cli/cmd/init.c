#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/commands.h"
#include "cli/project.h"
#include "cli/xmem.h"

/* What each key does stands beside it; all but the name is the daemon's default. */
static const char text[] =
    "# The sandbox of this directory: `warren up` makes or updates it, `warren down` deletes it.\n"
    "# Keys that are commented out show what they take.\n"
    "\n"
    "name = \"%s\"\n"
    "%simage = \"base\"             # `warren image ls` lists them\n"
    "%sbuild = \".\"                # or: a directory with a Dockerfile\n"
    "# dockerfile = \"Dockerfile\"  # another file in it\n"
    "\n"
    "# memory = \"512m\"\n"
    "# cpus = 1\n"
    "# disk = \"10g\"\n"
    "# user = \"root\"\n"
    "# workdir = \"/root/app\"\n"
    "\n"
    "# net = \"agents\"             # what it may reach: none, agents or open\n"
    "# rules = [\"allow *.example.com 443\"]  # or by rules\n"
    "# bind = [\"openai@api.openai.com\"]     # secrets that its requests carry\n"
    "\n"
    "# volumes = [\"data:/data\"]   # made if they are missing; :ro behind it to read only\n"
    "# copy = [\".:/root/app\"]     # FROM here, TO there, each time\n"
    "\n"
    "# start = \"python3 -m http.server 8000\"  # for a shell, or a list of words\n"
    "# ports = [8000]             # wait until something listens, and say where it answers\n"
    "# preview = \"private\"        # who may reach them: public or private\n"
    "\n"
    "# idle_timeout = \"30m\"\n"
    "# on_idle = \"pause\"          # stop, pause, checkpoint or delete\n"
    "# restart = \"on-boot\"        # no, on-boot or always\n"
    "\n"
    "# [env]\n"
    "# DEBUG = \"1\"\n";

static int write_file(const char *name, bool builds, struct err *err)
{
    _cleanup_free_ char *all = xasprintf(text, name, builds ? "# " : "", builds ? "" : "# ");
    _cleanup_fd_ int fd = open(PROJECT_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_set(err, errno,
                       errno == EEXIST ? "there is a " PROJECT_FILE " already"
                                       : "cannot write " PROJECT_FILE ": %s",
                       strerror(errno));
    int r = fd_write_full(fd, all, strlen(all));
    if (r < 0)
        (void)unlink(PROJECT_FILE);
    return r < 0 ? err_set(err, -r, "cannot write " PROJECT_FILE ": %s", strerror(-r)) : 0;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    struct err err = ERR_INIT;
    _cleanup_free_ char *here = realpath(".", NULL);
    _cleanup_free_ char *name = here ? project_name_of(here) : NULL;
    if (write_file(name ? name : "project", access("Dockerfile", R_OK) == 0, &err) < 0)
        return cli_fail(cli, &err);
    (void)printf(PROJECT_FILE "\n");
    return 0;
}

const struct command cmd_init = {
    .name = "init",
    .summary = "Write a warren.toml for this directory",
    .synopsis = "",
    .description =
        "Writes a project file in which every key is explained, named after the directory; "
        "where there is a Dockerfile, it is built. A file that is there is left alone.",
    .examples =
        (const struct example[]){ { "A new project", "warren init && warren up" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run,
};

#include "cli/save.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/xmem.h"

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

int save_answer(struct cli *cli, const char *path, const char *output)
{
    _cleanup_free_ char *part = NULL;
    struct err err = ERR_INIT;
    if (!output || strcmp(output, "-") == 0) {
        if (isatty(STDOUT_FILENO))
            return cli_usage(cli, "standard output is a terminal; --output says where to write it");
        return fetch(cli, path, STDOUT_FILENO, &err) < 0 ? cli_fail(cli, &err) : 0;
    }
    /* A file that is there is whole. */
    part = xasprintf("%s.part", output);
    _cleanup_fd_ int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int r = fd < 0 ? err_set(&err, errno, "cannot write '%s': %s", part, strerror(errno))
                   : fetch(cli, path, fd, &err);
    if (r >= 0 && rename(part, output) < 0)
        r = err_set(&err, errno, "cannot write '%s': %s", output, strerror(errno));
    if (r < 0) {
        (void)unlink(part);
        return cli_fail(cli, &err);
    }
    return 0;
}

#include "base/criu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define SETUP "`./dev criu` or `warren-criu`, as root, finds or fetches one"

static char *value(char *line, const char *name)
{
    size_t n = strlen(name);
    return strncmp(line, name, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

int criu_parse(struct criu *c, struct err *err)
{
    const char *why = NULL;
    char *save = NULL, *v;
    size_t n = 0;
    c->version = c->from = "";
    for (char *line = strtok_r(c->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if ((v = value(line, "run"))) {
            if (n == CRIU_ARGS_MAX)
                return err_set(err, E2BIG, "the record of CRIU names too many arguments");
            c->argv[n++] = v;
        } else if ((v = value(line, "version"))) {
            c->version = v;
        } else if ((v = value(line, "from"))) {
            c->from = v;
        } else if ((v = value(line, "why"))) {
            why = v;
        }
    }
    c->argv[n] = NULL;
    if (why)
        return err_set(err, ENOENT, "no CRIU that works here: %.300s", why);
    if (n == 0 || c->argv[0][0] != '/')
        return err_set(err, ENOENT, "the record of CRIU names no program; " SETUP);
    if (access(c->argv[0], X_OK) < 0 || (n > 1 && access(c->argv[n - 1], X_OK) < 0))
        return err_set(err, ENOENT, "'%.200s' is not there any more; " SETUP, c->argv[n - 1]);
    return 0;
}

int criu_find(struct criu *ret, struct err *err)
{
    const char *path = getenv("WARREN_CRIU");
    struct stat st;
    if (!path || !*path)
        path = CRIU_RECORD;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, ENOENT, "no CRIU was set up; " SETUP);
    if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) || !S_ISREG(st.st_mode))
        return err_set(err, EPERM, "'%.200s' must be root's, and written by nobody else", path);
    if ((size_t)st.st_size >= sizeof(ret->text))
        return err_set(err, EMSGSIZE, "'%.200s' is no record of CRIU", path);
    int r = fd_read_full(fd, ret->text, (size_t)st.st_size);
    if (r < 0)
        return err_set(err, -r, "cannot read '%.200s'", path);
    ret->text[st.st_size] = '\0';
    return criu_parse(ret, err);
}

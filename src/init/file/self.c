#include "init/file/self.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool below; /* the working directory is /proc/self/fd */

int self_root(const char *root)
{
    _cleanup_fd_ int self = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (self < 0 || chroot(root) < 0 || fchdir(self) < 0)
        return -errno;
    below = true;
    return 0;
}

int self_path(int fd, const char *name, char out[SELF_PATH_MAX])
{
    int n = snprintf(out, SELF_PATH_MAX, "%s%d%s%s", below ? "" : "/proc/self/fd/", fd,
                     name ? "/" : "", name ? name : "");
    return n > 0 && n < SELF_PATH_MAX ? 0 : -ENAMETOOLONG;
}

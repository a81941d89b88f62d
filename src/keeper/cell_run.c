/* A cell's run directory: its socket, its record, and what the next keeper should know of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/ns_boot.h"
#include "keeper/cell.h"
#include "keeper/park.h"

#define INIT_BACKLOG 128

int cell_open_run_dir(struct keeper *k, const char *id, struct err *err)
{
    if ((mkdirat(k->cells_dir, id, 0700) < 0 && errno != EEXIST) ||
        fchmodat(k->cells_dir, id, 0711, 0) < 0)
        return err_set(err, errno, "cannot make the run directory of '%s'", id);
    int fd = openat(k->cells_dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_set(err, errno, "cannot open the run directory of '%s'", id) : fd;
}

/* A file says that it is meant to stand still: the next keeper leaves it so. */
int cell_mark_asleep(struct keeper *k, const char *id, bool asleep)
{
    char path[ID_SIZE + 16];
    (void)snprintf(path, sizeof(path), "%s/asleep", id);
    if (!asleep)
        return unlinkat(k->cells_dir, path, 0) < 0 && errno != ENOENT ? -errno : 0;
    _cleanup_fd_ int fd =
        openat(k->cells_dir, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? -errno : 0;
}

bool cell_is_marked_asleep(struct keeper *k, const char *id)
{
    char path[ID_SIZE + 16];
    int n = snprintf(path, sizeof(path), "%s/asleep", id);
    return n > 0 && (size_t)n < sizeof(path) &&
           faccessat(k->cells_dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void cell_remove_run_dir(struct keeper *k, const char *id)
{
    char path[ID_SIZE + 16];
    (void)snprintf(path, sizeof(path), "%s/init.sock", id);
    (void)unlinkat(k->cells_dir, path, 0);
    (void)snprintf(path, sizeof(path), "%s/record", id);
    (void)unlinkat(k->cells_dir, path, 0);
    (void)snprintf(path, sizeof(path), "%s/" PARK_NOTE, id);
    (void)unlinkat(k->cells_dir, path, 0);
    (void)cell_mark_asleep(k, id, false);
    (void)unlinkat(k->cells_dir, id, AT_REMOVEDIR);
    ns_boot_drop(k->ns, id);
}

/* Bound and listening from here, so that a client can connect before init has come up. By way of
 * the open directory: a socket's path has room for 107 bytes, and the run directory may be long. */
int cell_make_socket(struct keeper *k, const char *id, int run_dir, int *ret_fd, struct err *err)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/init.sock", run_dir);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)unlinkat(run_dir, "init.sock", 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
        fchownat(run_dir, "init.sock", k->client_uid, (gid_t)-1, 0) < 0 ||
        fchmodat(run_dir, "init.sock", 0600, 0) < 0 || listen(fd, INIT_BACKLOG) < 0)
        return err_set(err, errno, "cannot make the socket of '%s'", id);
    *ret_fd = take_fd(fd);
    return 0;
}

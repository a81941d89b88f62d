#include "keeper/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/fd.h"

#define RECORD_SIZE 256

int record_start_time(pid_t pid, uint64_t *ret_time)
{
    char path[32], text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
        return -ESRCH;
    char *p = strrchr(text, ')'); /* the name may hold anything, brackets too */
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    if (!p)
        return -ESRCH;
    *ret_time = strtoull(p + 1, NULL, 10);
    return 0;
}

int record_write(int cell_dir, const struct record *r, struct err *err)
{
    char text[RECORD_SIZE];
    int n = snprintf(text, sizeof(text), "%d %" PRIu64 " %" PRIu32 " %s %s\n", (int)r->pid,
                     r->start_time, r->uid_base, r->image, r->cgroup);
    _cleanup_fd_ int fd =
        openat(cell_dir, "record", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, (size_t)n) != n)
        return err_set(err, errno ? errno : EIO, "cannot write a cell's record");
    return 0;
}

int record_read(int cell_dir, struct record *ret_r)
{
    char text[RECORD_SIZE];
    ssize_t n = fd_read_file_at(cell_dir, "record", text, sizeof(text));
    if (n < 0)
        return (int)n;
    struct record r = { 0 };
    int pid = 0;
    if (sscanf(text, "%d %" SCNu64 " %" SCNu32 " %64[0-9a-f] %63[^/ \n]", &pid, &r.start_time,
               &r.uid_base, r.image, r.cgroup) < 4 ||
        pid <= 1)
        return -EBADMSG;
    r.pid = pid;
    *ret_r = r;
    return 0;
}

int record_open_pid(const struct record *r)
{
    int fd = pidfd_open(r->pid, 0);
    if (fd < 0)
        return -errno;
    uint64_t now = 0;
    if (record_start_time(r->pid, &now) < 0 || now != r->start_time) {
        (void)close(fd);
        return -ESRCH;
    }
    return fd;
}

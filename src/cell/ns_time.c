#include "cell/ns_time.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static int write_offsets(void)
{
    struct timespec mono, boot;
    char text[128];
    if (clock_gettime(CLOCK_MONOTONIC, &mono) < 0 || clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
        return -errno;
    (void)snprintf(text, sizeof(text), "monotonic %lld 0\nboottime %lld 0\n",
                   NS_TIME_START_S - (long long)mono.tv_sec,
                   NS_TIME_START_S - (long long)boot.tv_sec);
    return fd_write_file_at(AT_FDCWD, "/proc/self/timens_offsets", text);
}

int ns_time_enter(struct err *err)
{
    if (unshare(CLONE_NEWTIME) < 0)
        return errno == EINVAL ? 0 : err_set(err, errno, "cannot make a time namespace");
    /* Our own files in /proc belong to the host's root since we changed our ids; only those of a
     * process that may be dumped are its own. Nobody else is here yet. */
    (void)prctl(PR_SET_DUMPABLE, 1);
    int r = write_offsets();
    (void)prctl(PR_SET_DUMPABLE, 0);
    if (r < 0)
        return err_set(err, -r, "cannot set the clocks of the time namespace");
    /* Only children would be in it. */
    _cleanup_fd_ int fd = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWTIME) < 0)
        return err_set(err, errno, "cannot enter the time namespace");
    return 0;
}

int ns_time_uptime(pid_t pid, int64_t *ret_s)
{
    char path[48], text[256];
    struct timespec boot;
    long long offset_s = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/timens_offsets", (int)pid);
    ssize_t n = fd_read_file_at(AT_FDCWD, path, text, sizeof(text));
    const char *line = n < 0 ? NULL : strstr(text, "boottime");
    if (n < 0 && n != -ENOENT) /* a kernel without time namespaces has no such file */
        return (int)n;
    if (line && sscanf(line, "boottime %lld", &offset_s) != 1)
        return -EPROTO;
    if (clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
        return -errno;
    *ret_s = (int64_t)boot.tv_sec + offset_s;
    return 0;
}

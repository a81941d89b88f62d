#include "kernel/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

pid_t userns_clone(struct clone_args *args, uint32_t owner)
{
    /* The real id stays root's: the kernel would otherwise hold the namespace to RLIMIT_NPROC, and
     * the control group counts processes already. */
    if (seteuid(owner) < 0)
        return -errno;
    pid_t pid = (pid_t)syscall(SYS_clone3, args, sizeof(*args));
    if (pid == 0)
        return 0;
    pid = pid < 0 ? -errno : pid;
    if (seteuid(0) < 0)
        abort(); /* no later code expects another id */
    return pid;
}

int userns_owner(pid_t pid, uint32_t *ret_owner)
{
    char path[48];
    uid_t owner;
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, NS_GET_OWNER_UID, &owner) < 0)
        return -errno;
    *ret_owner = owner;
    return 0;
}

void userns_bound_limits(void)
{
    static const struct {
        int what;
        rlim_t most;
    } limits[] = {
        { RLIMIT_SIGPENDING, 65536 }, /* queued signals and POSIX timers */
        { RLIMIT_MSGQUEUE, 819200 },  /* bytes of POSIX message queues: the kernel's default */
        { RLIMIT_MEMLOCK, 8 << 20 },  /* likewise */
    };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit now;
        if (getrlimit(limits[i].what, &now) < 0 || now.rlim_cur <= limits[i].most)
            continue;
        /* The kernel reads the soft limit. The hard one stays: processes of a checkpoint may
         * have had as much, and nobody inside may raise it. */
        now.rlim_cur = limits[i].most;
        (void)setrlimit(limits[i].what, &now);
    }
}

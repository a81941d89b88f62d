/* New namespaces, and the way into another one. */
#include "attack/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif

static void run_clone(const struct attempt *self, struct outcome *o)
{
    long r = syscall(SYS_clone, self->args[0] | SIGCHLD, 0, 0, 0, 0);
    if (r == 0)
        _exit(0);
    refused(o, r, "clone");
}

static void run_clone3(const struct attempt *self, struct outcome *o)
{
    uint64_t args[11] = { (uint64_t)self->args[0], 0, 0, 0, SIGCHLD };
    long r = syscall(SYS_clone3, args, sizeof(args), 0, 0, 0, 0);
    if (r == 0)
        _exit(0);
    refused(o, r, "clone3");
}

/* Join a namespace of pid 1, which is our own, or of another process. */
static void run_setns(const struct attempt *self, struct outcome *o)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%s/ns/mnt", self->path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        held(o, "%s: %s", path, strerror(errno));
        return;
    }
    refused(o, syscall(SYS_setns, fd, 0), "setns");
    (void)close(fd);
}

/* Every pid that a process sees must be of its own namespace. */
static void run_pid_view(const struct attempt *self, struct outcome *o)
{
    char text[4096];
    (void)slurp("/proc/self/status", text, sizeof(text));
    const char *at = strstr(text, "\nNSpid:");
    unsigned inner = 0, outer = 0;
    if (at && sscanf(at, "\nNSpid: %u %u", &outer, &inner) == 2)
        broke(o, "the pid in the namespace above shows: %u", outer);
    if (getppid() == 0 && getpid() != 1)
        held(o, "the parent is outside and has no number");
    held(o, "one pid, and no parent's above");
}

#define UNSHARE(name_, title_, flag_)                                                            \
    {                                                                                            \
        .name = "unshare-" name_, .title = title_, .run = run_call, .nr = SYS_unshare, .args = { \
            flag_                                                                                \
        }                                                                                        \
    }

/* clang-format off */
static const struct attempt namespaces[] = {
    UNSHARE("user", "a user namespace of its own", CLONE_NEWUSER),
    UNSHARE("mount", "a mount namespace of its own", CLONE_NEWNS),
    UNSHARE("net", "a network namespace of its own", CLONE_NEWNET),
    UNSHARE("pid", "a pid namespace of its own", CLONE_NEWPID),
    UNSHARE("ipc", "an ipc namespace of its own", CLONE_NEWIPC),
    UNSHARE("uts", "a host name namespace of its own", CLONE_NEWUTS),
    UNSHARE("cgroup", "a control group namespace of its own", CLONE_NEWCGROUP),
    UNSHARE("time", "a time namespace of its own", CLONE_NEWTIME),
    { .name = "clone-user", .title = "a child in a user namespace", .run = run_clone, .args = { CLONE_NEWUSER } },
    { .name = "clone-mount", .title = "a child in a mount namespace", .run = run_clone, .args = { CLONE_NEWNS } },
    { .name = "clone3-user", .title = "a child in a user namespace, by clone3", .run = run_clone3, .args = { CLONE_NEWUSER } },
    { .name = "clone3-into-cgroup", .title = "clone3, which a filter cannot look into", .run = run_clone3 },
    { .name = "setns-self", .title = "enter a mount namespace by its file", .run = run_setns, .path = "self" },
    { .name = "setns-init", .title = "enter init's mount namespace", .run = run_setns, .path = "1" },
    { .name = "pids-above", .title = "pids of the namespace above", .run = run_pid_view },
};
/* clang-format on */

const struct group group_namespaces = { "namespaces", namespaces,
                                        sizeof(namespaces) / sizeof(namespaces[0]) };

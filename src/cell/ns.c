#include "cell/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/oom.h"
#include "cell/ns_boot.h"
#include "cell/ns_cpus.h"
#include "cell/ns_private.h"
#include "cell/ns_show.h"
#include "cell/ns_size.h"
#include "cell/ns_time.h"
#include "kernel/mount.h"
#include "kernel/userns.h"

#define NAMESPACES \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)

void ns_cell_close(struct ns_cell *c)
{
    fd_close_all(&c->pidfd, 1);
    fd_close_all(&c->go_fd, 1);
    fd_close_all(&c->status_fd, 1);
    *c = (struct ns_cell)NS_CELL_INIT;
}

static int write_map(pid_t pid, const char *file, uint32_t base, struct err *err)
{
    char path[64], map[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    (void)snprintf(map, sizeof(map), "0 %u 65536", base);
    int r = fd_write_file_at(AT_FDCWD, path, map);
    return r < 0 ? err_set(err, -r, "cannot write %s", file) : 0;
}

/* The cell's first process: its pid, or -errno. */
static pid_t clone_cell(const struct ns_host *host, const struct ns_spec *spec, uint64_t flags,
                        const int go[2], const int status[2], int *ret_pidfd)
{
    struct clone_args args = {
        .flags = NAMESPACES | CLONE_PIDFD | flags,
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD, /* 0: as the helper's own */
    };
    if (spec->cgroup->init_group >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)spec->cgroup->init_group;
    }
    pid_t pid = userns_clone(&args, spec->uid_base);
    if (pid == 0) {
        (void)close(go[0]);
        (void)close(status[0]);
        ns_child(host, spec, go[1], status[1]);
    }
    return pid;
}

/* The same where the cell's cgroup namespace is there already: it is entered with rights that the
 * first process never has, and its members are started by one of them, which we are not. So a
 * helper goes there, starts that process as a child of ours, and is gone. */
static pid_t clone_within(const struct ns_host *host, const struct ns_spec *spec, const int go[2],
                          const int status[2], int *ret_pidfd)
{
    struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t)spec->cgroup->init_group };
    pid_t pid = -ECHILD, helper = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (helper < 0)
        return -errno;
    if (helper == 0) {
        int pidfd = -1;
        pid = setns(spec->cgroup->ns, CLONE_NEWCGROUP) < 0
                  ? -errno
                  : clone_cell(host, spec, CLONE_PARENT, go, status, &pidfd);
        _exit(fd_send_msg(go[1], &pid, sizeof(pid), &pidfd, pid > 0 ? 1 : 0) < 0);
    }
    while (waitpid(helper, NULL, 0) < 0 && errno == EINTR)
        ;
    size_t nfds = 0;
    if (fd_wait(go[0], POLLIN, 0) <= 0 ||
        fd_recv_msg(go[0], &pid, sizeof(pid), ret_pidfd, 1, &nfds) != (ssize_t)sizeof(pid))
        return -ECHILD;
    return pid > 0 && nfds != 1 ? -ECHILD : pid;
}

static int tell(const struct ns_cell *cell, const struct ns_word *word, const int *fds, size_t n,
                struct err *err)
{
    int r = fd_send_msg(cell->go_fd, word, sizeof(*word), fds, n);
    return r < 0 ? err_set(err, -r, "the cell's first process is gone") : 0;
}

int ns_prepare(const struct ns_host *host, const struct ns_spec *spec, struct ns_cell *ret_cell,
               struct err *err)
{
    int go[2] = { -1, -1 }, status[2] = { -1, -1 };
    int r = ns_boot_put(host, spec->id, "", NS_TIME_START_S,
                        ns_cpus_shown(spec->limits->cpu_millis), err);
    if (r == 0)
        r = ns_size_put(host, spec->id, spec->limits, err);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, go) < 0)
        return err_set(err, errno, "cannot make a socket pair");
    if (pipe2(status, O_CLOEXEC) < 0) {
        r = err_set(err, errno, "cannot make a pipe");
        fd_close_all(go, 2);
        return r;
    }

    int pidfd = -1;
    pid_t pid = spec->cgroup->ns >= 0 ? clone_within(host, spec, go, status, &pidfd)
                                      : clone_cell(host, spec, 0, go, status, &pidfd);
    (void)close(go[1]);
    (void)close(status[1]);
    if (pid < 0) {
        (void)close(go[0]);
        (void)close(status[0]);
        return err_set(err, -pid, "cannot make namespaces");
    }
    struct ns_cell cell = { pid, pidfd, go[0], status[0] };
    r = write_map(pid, "uid_map", spec->uid_base, err);
    if (r == 0)
        r = write_map(pid, "gid_map", spec->uid_base, err);
    if (r == 0) {
        const struct ns_word word = { .word = NS_WORD_MAPPED };
        r = tell(&cell, &word, NULL, 0, err);
    }
    /* The rest needs to be done only before the cell gets its root: the child is at work meanwhile. */
    if (r == 0)
        r = ns_show_net(pid, err);
    (void)oom_set(pid, OOM_SANDBOX); /* by us: inside nobody may go below it then */
    if (r < 0) {
        ns_cell_close(&cell); /* the child sees its end of file */
        return r;
    }
    *ret_cell = cell;
    return 0;
}

/* The sandbox's root: its own layer over the image, both shown with its ids. */
struct layers {
    int userns, lower, upper, root;
};

static void layers_close(struct layers *l)
{
    const int fds[] = { l->root, l->upper, l->lower, l->userns };
    fd_close_all(fds, ARRAY_LEN(fds));
}

static int make_root(const struct ns_cell *cell, const struct ns_spec *spec, struct layers *l,
                     struct err *err)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)cell->pid);
    l->userns = open(path, O_RDONLY | O_CLOEXEC);
    if (l->userns < 0)
        return err_set(err, errno, "cannot open the user namespace");
    int r = mount_clone(spec->image_fd, "", &l->lower, err);
    if (r == 0)
        r = mount_idmap(l->lower, l->userns, err);
    if (r == 0)
        r = mount_clone(spec->box_fd, "", &l->upper, err);
    if (r == 0)
        r = mount_idmap(l->upper, l->userns, err);
    if (r == 0)
        r = mount_overlay(l->lower, l->upper, "root", spec->uid_base, &l->root, err);
    return r;
}

int ns_give_root(const struct ns_cell *cell, const struct ns_spec *spec, struct err *err)
{
    /* Closed after the word is given: letting go of a mount can take the kernel a while. */
    _cleanup_(layers_close) struct layers l = { -1, -1, -1, -1 };
    const struct ns_word word = { .word = NS_WORD_ROOT };
    int r = make_root(cell, spec, &l, err);
    return r < 0 ? r : tell(cell, &word, &l.root, 1, err);
}

int ns_release(struct ns_cell *cell, const struct ns_spec *spec, struct err *err)
{
    struct ns_word word = { .word = NS_WORD_GROUPS };
    int late[NS_LATE_MAX] = { spec->cgroup->oom }, fds[NS_LATE_MAX];
    memcpy(late + NS_LATE_PROCS, spec->cgroup->procs, sizeof(spec->cgroup->procs));
    memcpy(late + NS_LATE_INIT, spec->cgroup->init_procs, sizeof(spec->cgroup->init_procs));
    size_t n = 0;
    for (size_t i = 0; i < NS_LATE_MAX; i++) {
        word.has[i] = late[i] >= 0;
        if (word.has[i])
            fds[n++] = late[i];
    }
    int r = tell(cell, &word, fds, n, err);
    if (r == 0)
        (void)close(take_fd(cell->go_fd));
    return r;
}

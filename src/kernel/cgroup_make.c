/* The groups of a new cell: what its pid 1 is born in, and what holds its limits. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/cgroup_private.h"

void cgroup_fds_close(struct cgroup_fds *fds)
{
    fd_close_all(&fds->init_group, 1);
    fd_close_all(&fds->work_group, 1);
    fd_close_all(&fds->oom, 1);
    fd_close_all(fds->procs, CGROUP_CONTROLLERS);
    fd_close_all(fds->init_procs, CGROUP_CONTROLLERS);
    fd_close_all(&fds->ns, 1);
    *fds = (struct cgroup_fds)CGROUP_FDS_INIT;
}

/* Let root inside move its own processes within its own groups: the kernel asks for write access
 * to the cgroup.procs of both ends and of their common ancestor, and to the parent for a mkdir. */
static int delegate(int group, int work, uint32_t owner)
{
    if (fchownat(group, "cgroup.procs", owner, owner, 0) < 0 ||
        fchownat(work, "cgroup.procs", owner, owner, 0) < 0 || fchown(work, owner, owner) < 0)
        return -errno;
    return 0;
}

static _Noreturn void send_namespace(int sock)
{
    int fd = unshare(CLONE_NEWCGROUP) < 0 ? -1 : open("/proc/self/ns/cgroup", O_RDONLY | O_CLOEXEC);
    _exit(fd < 0 || fd_send_msg(sock, "n", 1, &fd, 1) < 0);
}

/* A cgroup namespace with `group` as its root. Where namespaces bound what is delegated
 * (nsdelegate, which systemd asks for), init can start a process in `work` only if the root of its
 * namespace lies above both of them. The kernel makes a namespace of where its maker is, and nobody
 * can be in a group that hands controllers down: so before it does, by a process that lives for just
 * this. */
static int make_namespace(int group, int *ret_fd)
{
    int sock[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
        return -errno;
    struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t)group };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        send_namespace(sock[1]);
    int r = pid < 0 ? -errno : 0;
    (void)close(sock[1]);
    char word;
    size_t nfds = 0;
    if (r == 0 && (fd_recv_msg(sock[0], &word, 1, ret_fd, 1, &nfds) != 1 || nfds != 1))
        r = -ECHILD;
    (void)close(sock[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

/* The group of a cell below the root of a namespace made for it; -errno. */
static int make_bounded(const struct cgroup_host *h, int root, int *ret_ns)
{
    int r = make_namespace(root, ret_ns);
    if (r == -EBUSY) { /* taken over from a cell whose last process is still leaving */
        _cleanup_fd_ int former = cgroup_open_group(root, CGROUP_BOUNDED, false);
        if (former >= 0)
            cgroup_hand_down(h, former, '-');
        cgroup_hand_down(h, root, '-');
        r = make_namespace(root, ret_ns);
    }
    if (r < 0)
        return r;
    cgroup_hand_down(h, root, '+');
    return cgroup_open_group(root, CGROUP_BOUNDED, true);
}

static int make_unified(struct cgroup_host *h, const char *id, uint32_t owner,
                        struct cgroup_fds *fds, struct err *err)
{
    _cleanup_fd_ int group = cgroup_open_group(h->unified, id, true);
    if (group >= 0 && h->ns_bounds) {
        int root = take_fd(group);
        group = make_bounded(h, root, &fds->ns);
        (void)close(root);
    }
    if (group < 0)
        return err_set(err, -group, "cannot make control group '%s'", id);
    cgroup_hand_down(h, group, '+');
    fds->init_group = cgroup_open_group(group, "init", true);
    if (fds->init_group < 0)
        return err_set(err, -fds->init_group, "cannot make control group '%s/init'", id);
    fds->work_group = cgroup_open_group(group, "work", true);
    if (fds->work_group < 0)
        return err_set(err, -fds->work_group, "cannot make control group '%s/work'", id);
    int r = delegate(group, fds->work_group, owner);
    if (r < 0)
        return err_set(err, -r, "cannot delegate control group '%s'", id);
    if (h->in_v2[CGROUP_MEMORY])
        fds->oom = openat(fds->work_group, "memory.events", O_RDONLY | O_CLOEXEC);
    return 0;
}

/* Pid 1 joins its group by itself, as commands join the workload's. */
static int make_init_v1(struct cgroup_host *h, const char *id, int c, struct cgroup_fds *fds,
                        struct err *err)
{
    char name[CGROUP_INIT_NAME_SIZE];
    int r = cgroup_init_name(id, name);
    _cleanup_fd_ int group = r < 0 ? -1 : cgroup_open_group(h->v1[c], name, true);
    if (group < 0)
        return err_set(err, r < 0 ? -r : -group, "cannot make %s group '%s'", cgroup_names[c],
                       name);
    fds->init_procs[c] = openat(group, "tasks", O_WRONLY | O_CLOEXEC);
    return fds->init_procs[c] < 0
               ? err_set(err, errno, "cannot open %s group '%s'", cgroup_names[c], name)
               : 0;
}

static int make_v1(struct cgroup_host *h, const char *id, struct cgroup_fds *fds, struct err *err)
{
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (h->v1[c] < 0)
            continue;
        _cleanup_fd_ int group = cgroup_open_group(h->v1[c], id, true);
        if (group < 0)
            return err_set(err, -group, "cannot make %s group '%s'", cgroup_names[c], id);
        /* Not cgroup.procs: a lone thread that moves itself through `tasks` is spared the lock that
         * makes every cpu pass a barrier, some 10 ms. */
        fds->procs[c] = openat(group, "tasks", O_WRONLY | O_CLOEXEC);
        if (fds->procs[c] < 0)
            return err_set(err, errno, "cannot open %s group '%s'", cgroup_names[c], id);
        if (c == CGROUP_MEMORY)
            fds->oom = openat(group, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    }
    return 0;
}

int cgroup_make(struct cgroup_host *h, const char *id, uint32_t owner, struct cgroup_fds *ret_fds,
                struct err *err)
{
    struct cgroup_fds fds = CGROUP_FDS_INIT;
    int r = h->unified >= 0 ? make_unified(h, id, owner, &fds, err) : 0;
    if (r < 0) {
        cgroup_fds_close(&fds);
        (void)cgroup_remove(h, id);
        return r;
    }
    *ret_fds = fds;
    return 0;
}

int cgroup_make_limits(struct cgroup_host *h, const char *id, const struct cgroup_limits *limits,
                       struct cgroup_fds *fds, struct err *err)
{
    int r = make_v1(h, id, fds, err);
    for (int c = 0; r == 0 && c < CGROUP_CONTROLLERS; c++)
        if (h->v1[c] >= 0 && cgroup_bounds_init((enum cgroup_controller)c))
            r = make_init_v1(h, id, c, fds, err);
    if (r < 0)
        return r;
    r = cgroup_limit_init_memory(h, id);
    return r < 0 ? err_set(err, -r, "cannot limit the memory of '%s/init'", id)
                 : cgroup_limit(h, id, limits, err);
}

int cgroup_reopen(struct cgroup_host *h, const char *id, struct cgroup_fds *ret_fds,
                  struct err *err)
{
    h = cgroup_home(h, id);
    struct cgroup_fds fds = CGROUP_FDS_INIT;
    _cleanup_fd_ int group = cgroup_open(h, id);
    int r = group < 0 ? err_set(err, -group, "cannot open control group '%s'", id) : 0;
    if (r == 0) {
        fds.init_group = cgroup_open_group(group, "init", false);
        fds.work_group = cgroup_open_group(group, "work", false);
        if (h->in_v2[CGROUP_MEMORY])
            fds.oom = openat(fds.work_group, "memory.events", O_RDONLY | O_CLOEXEC);
        r = fds.work_group < 0 ? err_set(err, ENOENT, "control group '%s' is not whole", id)
                               : make_v1(h, id, &fds, err);
    }
    if (r < 0)
        cgroup_fds_close(&fds);
    else
        *ret_fds = fds;
    return r;
}

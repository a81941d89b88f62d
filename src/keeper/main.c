/* warren-keeper - the privileged half: makes cells, and nothing else.
 *
 * Two processes: a supervisor of a few lines that holds the socket and the mount namespace, and
 * the keeper proper, started again whenever it dies. Both end when warrend ends; cells do not. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "keeper/keeper.h"
#include "keeper/storage.h"
#include "kernel/cgroup.h"
#include "kernel/mount.h"
#include "kernel/uidrange.h"

#define LOG_MODULE "keeper"
#define UID_REGISTRY "/run/warren-ids"
#define LOCK_WAIT_MS 15000 /* a former keeper ends as soon as it sees that its warrend has */
#define RESTART_PAUSE_MS 100
#define NOFILE_WANTED 262144

struct config {
    const char *data, *run, *cgroup;
    char run_path[PATH_MAX], data_path[PATH_MAX], init_path[PATH_MAX];
    uint32_t client_uid;
    int parent_fd, ready_fd;
    bool teardown;
};

static const char usage[] =
    "usage: warren-keeper --data DIR --run DIR --cgroup NAME [--client-uid UID]\n"
    "                     [--parent-fd N] [--ready-fd N] [--teardown]\n"
    "\n"
    "The privileged half of warrend, which starts it. --teardown ends every sandbox of the\n"
    "daemon that used these directories, gives back what the host lent, and exits.\n";

static int parse_number(const char *text, uint32_t *ret)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    if (errno || *end || end == text || v > UINT32_MAX)
        return -EINVAL;
    *ret = (uint32_t)v;
    return 0;
}

static int parse_args(int argc, char **argv, struct config *c)
{
    static const struct option options[] = {
        { "data", required_argument, NULL, 'd' },     { "run", required_argument, NULL, 'r' },
        { "cgroup", required_argument, NULL, 'c' },   { "client-uid", required_argument, NULL, 'u' },
        { "parent-fd", required_argument, NULL, 'p' }, { "ready-fd", required_argument, NULL, 'R' },
        { "teardown", no_argument, NULL, 't' },       { "log-level", required_argument, NULL, 'l' },
        { 0 },
    };
    *c = (struct config){ .parent_fd = -1, .ready_fd = -1 };
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
        uint32_t n = 0;
        enum log_level level;
        if ((o == 'u' || o == 'p' || o == 'R') && parse_number(optarg, &n) < 0)
            return -EINVAL;
        switch (o) {
        case 'd': c->data = optarg; break;
        case 'r': c->run = optarg; break;
        case 'c': c->cgroup = optarg; break;
        case 'u': c->client_uid = n; break;
        case 'p': c->parent_fd = (int)n; break;
        case 'R': c->ready_fd = (int)n; break;
        case 't': c->teardown = true; break;
        case 'l':
            if (log_parse_level(optarg, &level) < 0)
                return -EINVAL;
            log_set_level(level);
            break;
        default: return -EINVAL;
        }
    }
    return c->data && c->run && c->cgroup ? 0 : -EINVAL;
}

static int find_paths(struct config *c, struct err *err)
{
    if ((mkdir(c->run, 0700) < 0 && errno != EEXIST) || !realpath(c->run, c->run_path) ||
        chmod(c->run_path, 0711) < 0)
        return err_set(err, errno, "cannot use run directory '%s'", c->run);
    if ((mkdir(c->data, 0700) < 0 && errno != EEXIST) || !realpath(c->data, c->data_path))
        return err_set(err, errno, "cannot use data directory '%s'", c->data);
    ssize_t n = readlink("/proc/self/exe", c->init_path, sizeof(c->init_path) - 1);
    if (n < 0)
        return err_set(err, errno, "cannot find my own program");
    c->init_path[n] = '\0';
    char *slash = strrchr(c->init_path, '/');
    size_t room = sizeof(c->init_path) - (size_t)(slash + 1 - c->init_path);
    if (snprintf(slash + 1, room, "warren-init") >= (int)room)
        return err_set(err, ENAMETOOLONG, "my program's path is too long");
    return 0;
}

static int take_lock(const struct config *c, struct err *err)
{
    char path[PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/keeper.lock", c->run_path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s'", path);
    for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited += 20) {
        if (errno != EWOULDBLOCK || waited >= LOCK_WAIT_MS)
            return err_set(err, errno, "another keeper uses '%s'", c->run_path);
        (void)poll(NULL, 0, 20);
    }
    return fd; /* held for as long as we live */
}

static int make_socket(const struct config *c, struct err *err)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    if (snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/keeper.sock", c->run_path) >=
        (int)sizeof(sa.sun_path))
        return err_set(err, ENAMETOOLONG, "the run directory's name is too long");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(sa.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
        chown(sa.sun_path, c->client_uid, (gid_t)-1) < 0 || chmod(sa.sun_path, 0600) < 0 ||
        listen(fd, SOMAXCONN) < 0)
        return err_set(err, errno, "cannot make '%s'", sa.sun_path);
    return fd;
}

/* What outlives a keeper that dies: made once, by the supervisor. */
struct world {
    struct storage *storage;
    struct ns_host *ns; /* NULL for a teardown */
    int listen_fd;
};

static int make_ns_host(const struct config *c, struct ns_host **ret_ns, struct err *err)
{
    char furniture[PATH_MAX + 16];
    (void)snprintf(furniture, sizeof(furniture), "%s/furniture", c->run_path);
    if (mkdir(furniture, 0711) < 0 && errno != EEXIST) /* a cell's child walks through it */
        return err_set(err, errno, "cannot make '%s'", furniture);
    return ns_host_new(c->init_path, furniture, ret_ns, err);
}

static int open_keeper(const struct config *c, const struct world *w, struct keeper *k,
                       struct err *err)
{
    *k = (struct keeper){ .storage = w->storage,
                          .ns = w->ns,
                          .sweeper = SWEEPER_INIT,
                          .client_uid = c->client_uid };
    int r = loop_new(&k->loop);
    if (r < 0)
        return err_set(err, -r, "cannot make an event loop");
    if (snprintf(k->cells_path, sizeof(k->cells_path), "%s/cells", c->run_path) >=
        (int)sizeof(k->cells_path))
        return err_set(err, ENAMETOOLONG, "the run directory's name is too long");
    if ((mkdir(k->cells_path, 0700) < 0 && errno != EEXIST) || chmod(k->cells_path, 0711) < 0)
        return err_set(err, errno, "cannot make '%s'", k->cells_path);
    k->cells_dir = open(k->cells_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (k->cells_dir < 0)
        return err_set(err, errno, "cannot open '%s'", k->cells_path);
    r = cgroup_host_open(c->cgroup, &k->cgroups, err);
    if (r == 0)
        r = uidrange_open(UID_REGISTRY, c->run_path, &k->uids, err);
    if (r == 0)
        r = cells_adopt(k, err);
    storage_drop_unfinished(w->storage);
    if (r == 0 && !c->teardown)
        r = sweeper_start(&k->sweeper, w->storage, err);
    return r;
}

static void on_orphaned(struct watch *w, uint32_t events)
{
    _exit(0);
}

/* `lifeline` is readable once the supervisor is gone. A parent-death signal would not do: mounting
 * an overlay changes our filesystem ids, and with them the kernel forgets it. */
static _Noreturn void work(const struct config *c, const struct world *w, int lifeline, bool first)
{
    struct keeper k;
    struct err err = ERR_INIT;
    struct watch orphaned = { .fd = -1, .fn = on_orphaned };
    (void)signal(SIGPIPE, SIG_IGN);
    int r = open_keeper(c, w, &k, &err);
    if (r == 0) {
        r = loop_add(k.loop, &orphaned, lifeline, EPOLLIN);
        if (r < 0)
            (void)err_set(&err, -r, "cannot watch the supervisor");
    }
    if (r == 0 && first && c->ready_fd >= 0)
        (void)fd_write_full(c->ready_fd, "R", 1);
    if (r == 0)
        r = server_run(&k, w->listen_fd, &err);
    log_error("%s err=%s", err.msg, strerror(-r));
    _exit(1);
}

/* Start the keeper again whenever it dies; end when warrend does. */
static int supervise(const struct config *c, const struct world *w, int signals)
{
    int lifeline[2];
    if (pipe2(lifeline, O_CLOEXEC) < 0)
        return 1;
    for (bool first = true;; first = false) {
        pid_t pid = fork();
        if (pid == 0) {
            sigset_t none;
            (void)close(lifeline[1]);
            (void)sigemptyset(&none);
            (void)sigprocmask(SIG_SETMASK, &none, NULL);
            work(c, w, lifeline[0], first);
        }
        bool gone = pid < 0;
        while (!gone) {
            struct pollfd p[2] = { { signals, POLLIN, 0 }, { c->parent_fd, POLLIN, 0 } };
            (void)poll(p, 2, -1);
            struct signalfd_siginfo si;
            if (p[0].revents && read(signals, &si, sizeof(si)) == sizeof(si) &&
                si.ssi_signo != SIGCHLD)
                return 0;
            if (p[1].revents)
                return 0;
            int status;
            for (pid_t dead; (dead = waitpid(-1, &status, WNOHANG)) > 0;)
                gone |= dead == pid; /* others: cells of a keeper that died before them */
            if (gone && first && WIFEXITED(status))
                return 1; /* it said why; trying again would not help */
        }
        log_warn("the keeper died and is started again");
        (void)poll(NULL, 0, RESTART_PAUSE_MS);
    }
}

static int teardown(const struct config *c, const struct world *w, struct err *err)
{
    struct keeper k;
    int r = open_keeper(c, w, &k, err);
    if (r < 0)
        return r;
    r = cells_kill_all(&k);
    if (r < 0)
        return err_set(err, -r, "some sandboxes did not end");
    storage_empty_trash(w->storage);
    (void)cgroup_host_remove(k.cgroups);
    uidrange_release_all(k.uids);
    return 0;
}

static int run(struct config *c, struct err *err)
{
    int r = find_paths(c, err);
    if (r < 0)
        return r;
    int lock = take_lock(c, err);
    if (lock < 0)
        return lock;
    struct rlimit files = { NOFILE_WANTED, NOFILE_WANTED };
    (void)setrlimit(RLIMIT_NOFILE, &files);
    /* Mounts made here are seen here only, and vanish with us and the cells that use them. */
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_set(err, errno, "cannot make a mount namespace (are you root?)");
    struct world w = { NULL, NULL, -1 };
    r = storage_open(c->data_path, &w.storage, err);
    if (r < 0)
        return r;
    const char *const keep[] = { "/proc",      "/sys",      "/dev",     "/run",
                                 "/usr",       c->data_path, c->run_path, storage_path(w.storage) };
    mount_trim(keep, ARRAY_LEN(keep));
    if (c->teardown)
        return teardown(c, &w, err);
    r = make_ns_host(c, &w.ns, err);
    if (r < 0)
        return r;
    w.listen_fd = make_socket(c, err);
    if (w.listen_fd < 0)
        return w.listen_fd;
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0)
        return err_set(err, errno, "cannot watch for signals");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    return supervise(c, &w, signals);
}

int main(int argc, char **argv)
{
    struct config c;
    struct err err = ERR_INIT;
    if (parse_args(argc, argv, &c) < 0) {
        (void)fputs(usage, stderr);
        return 2;
    }
    (void)umask(022);
    int r = run(&c, &err);
    if (r < 0)
        log_error("%s err=%s", err.msg, strerror(-r));
    return r < 0 ? 1 : r;
}

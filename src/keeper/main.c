/* warren-keeper - the privileged half: makes cells, and nothing else.
 *
 * warrend starts it, and starts it again whenever it dies; it ends when warrend does. Cells go on
 * through all of that: what is needed to find them again is in the run directory. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/number.h"
#include "confine/calls.h"
#include "keeper/hoard.h"
#include "keeper/keeper.h"
#include "keeper/storage.h"
#include "kernel/backlog.h"
#include "kernel/cgroup.h"
#include "kernel/execs.h"
#include "kernel/fence.h"
#include "kernel/mount.h"
#include "kernel/netlinks.h"
#include "kernel/sysctl.h"
#include "kernel/uidrange.h"
#include "kernel/userns.h"

#define LOG_MODULE "keeper"
#define UID_REGISTRY "/run/warren-ids"
#define LOCK_WAIT_MS 15000 /* a former keeper ends as soon as it sees that its warrend has */
#define NOFILE_WANTED 262144

struct config {
    const char *data, *run, *cgroup;
    char run_path[PATH_MAX], data_path[PATH_MAX], init_path[PATH_MAX];
    char usual_cgroup[CGROUP_NAME_SIZE];
    int unpack_exe, bucket_exe;
    uint32_t client_uid, memory_mb;
    int parent_fd, ready_fd;
    bool teardown;
    char **with_pool; /* a command line; NULL: none */
};

static const char usage[] =
    "usage: warren-keeper --data DIR --run DIR --cgroup NAME [--client-uid UID]\n"
    "                     [--memory-mb N] [--parent-fd N] [--ready-fd N]\n"
    "       warren-keeper --data DIR --run DIR --teardown\n"
    "       warren-keeper --data DIR --run DIR --with-pool PROGRAM [ARG...]\n"
    "\n"
    "The privileged half of warrend, which starts it. --teardown ends every sandbox of the\n"
    "daemon that used these directories, gives back what the host lent, and exits. --with-pool\n"
    "runs a program in the storage pool (made if need be) while no daemon uses it, for\n"
    "warren-backup and to enlarge it: --with-pool btrfs filesystem resize max .\n";

static int parse_args(int argc, char **argv, struct config *c)
{
    static const struct option options[] = {
        { "data", required_argument, NULL, 'd' },
        { "run", required_argument, NULL, 'r' },
        { "cgroup", required_argument, NULL, 'c' },
        { "client-uid", required_argument, NULL, 'u' },
        { "memory-mb", required_argument, NULL, 'm' },
        { "parent-fd", required_argument, NULL, 'p' },
        { "ready-fd", required_argument, NULL, 'R' },
        { "teardown", no_argument, NULL, 't' },
        { "with-pool", no_argument, NULL, 'w' },
        { "log-level", required_argument, NULL, 'l' },
        { "log-format", required_argument, NULL, 'f' },
        { 0 },
    };
    *c = (struct config){ .parent_fd = -1, .ready_fd = -1 };
    bool pool = false;
    for (int o; (o = getopt_long(argc, argv, "+", options, NULL)) >= 0;) {
        uint32_t n = 0;
        enum log_level level;
        enum log_format format;
        if ((o == 'u' || o == 'm' || o == 'p' || o == 'R') &&
            number_u32(optarg, UINT32_MAX, &n) < 0)
            return -EINVAL;
        switch (o) {
        case 'd': c->data = optarg; break;
        case 'r': c->run = optarg; break;
        case 'c': c->cgroup = optarg; break;
        case 'u': c->client_uid = n; break;
        case 'm': c->memory_mb = n; break;
        case 'p': c->parent_fd = (int)n; break;
        case 'R': c->ready_fd = (int)n; break;
        case 't': c->teardown = true; break;
        case 'w': pool = true; break;
        case 'l':
            if (log_parse_level(optarg, &level) < 0)
                return -EINVAL;
            log_set_level(level);
            break;
        case 'f':
            if (log_parse_format(optarg, &format) < 0)
                return -EINVAL;
            log_set_format(format);
            break;
        default: return -EINVAL;
        }
    }
    if (pool)
        c->with_pool = optind < argc ? argv + optind : NULL;
    return c->data && c->run && (pool ? c->with_pool != NULL : c->teardown || c->cgroup) ? 0
                                                                                         : -EINVAL;
}

static int find_paths(struct config *c, struct err *err)
{
    if ((mkdir(c->run, 0700) < 0 && errno != EEXIST) || !realpath(c->run, c->run_path) ||
        chmod(c->run_path, 0711) < 0)
        return err_set(err, errno, "cannot use run directory '%s'", c->run);
    if ((mkdir(c->data, 0700) < 0 && errno != EEXIST) || !realpath(c->data, c->data_path))
        return err_set(err, errno, "cannot use data directory '%s'", c->data);
    if (!c->cgroup) { /* cells of a daemon that chose another name are found by their records */
        (void)keeper_cgroup_name(c->run_path, c->usual_cgroup, sizeof(c->usual_cgroup));
        c->cgroup = c->usual_cgroup;
    }
    ssize_t n = readlink("/proc/self/exe", c->init_path, sizeof(c->init_path) - 1);
    if (n < 0)
        return err_set(err, errno, "cannot find my own program");
    c->init_path[n] = '\0';
    char *slash = strrchr(c->init_path, '/');
    size_t room = sizeof(c->init_path) - (size_t)(slash + 1 - c->init_path);
    if (snprintf(slash + 1, room, "warren-unpack") >= (int)room)
        return err_set(err, ENAMETOOLONG, "my program's path is too long");
    c->unpack_exe = open(c->init_path, O_PATH | O_CLOEXEC);
    if (c->unpack_exe < 0)
        return err_set(err, errno, "cannot find '%s'", c->init_path);
    (void)snprintf(slash + 1, room, "warren-bucket"); /* as long as warren-unpack */
    c->bucket_exe = open(c->init_path, O_PATH | O_CLOEXEC);
    if (snprintf(slash + 1, room, "warren-init") >= (int)room)
        return err_set(err, ENAMETOOLONG, "my program's path is too long");
    return 0;
}

static bool is_orphan(const struct config *c)
{
    return c->parent_fd >= 0 && fd_wait(c->parent_fd, POLLIN, 0) > 0;
}

/* One whose parent has gone while it waited must not begin: it would make anew what was torn down meanwhile. */
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
        if (is_orphan(c))
            break;
        (void)poll(NULL, 0, 20);
    }
    if (is_orphan(c)) {
        (void)close(fd);
        return err_set(err, ECANCELED, "who started me has ended");
    }
    return fd; /* held for as long as we live */
}

/* Bind under another name until the socket belongs to the client and listens: a daemon waits for
 * a keeper that is absent, but gives up on one that refuses it. */
static int make_socket(const struct config *c, struct err *err)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    char path[sizeof(sa.sun_path)];
    if (snprintf(path, sizeof(path), "%s/keeper.sock", c->run_path) >= (int)sizeof(path) ||
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/keeper.new", c->run_path) < 0)
        return err_set(err, ENAMETOOLONG, "the run directory's name is too long");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(sa.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
        chown(sa.sun_path, c->client_uid, (gid_t)-1) < 0 || chmod(sa.sun_path, 0600) < 0 ||
        listen(fd, SOMAXCONN) < 0 || rename(sa.sun_path, path) < 0)
        return err_set(err, errno, "cannot make '%s'", path);
    return fd;
}

static int make_ns_host(const struct config *c, struct ns_host **ret_ns, struct err *err)
{
    char shared[PATH_MAX + 16];
    /* The name is of earlier versions, whose cells may still run. */
    (void)snprintf(shared, sizeof(shared), "%s/furniture", c->run_path);
    if (mkdir(shared, 0711) < 0 && errno != EEXIST) /* a cell's child walks through it */
        return err_set(err, errno, "cannot make '%s'", shared);
    return ns_host_new(c->init_path, shared, ret_ns, err);
}

static void raise_fence(struct keeper *k)
{
    struct err err = ERR_INIT;
    k->fenced = true;
    for (struct cgroup_host *h = k->cgroups; h && k->fenced; h = cgroup_host_next(h))
        k->fenced = fence_raise(cgroup_host_group(h), &err) == 0;
    if (!k->fenced)
        log_warn("sockets in a volume can lead from one sandbox to another: %s err=%s", err.msg,
                 strerror(err.code));
}

static void bound_backlogs(struct keeper *k)
{
    struct err err = ERR_INIT;
    for (struct cgroup_host *h = k->cgroups; h; h = cgroup_host_next(h))
        if (backlog_bound(cgroup_host_group(h), &err) < 0) {
            log_warn("a sandbox can take memory with connections that nobody accepts: %s err=%s",
                     err.msg, strerror(err.code));
            return;
        }
}

static void bound_netlinks(struct keeper *k)
{
    struct err err = ERR_INIT, no_watch = ERR_INIT;
    int r = 0;
    for (struct cgroup_host *h = k->cgroups; h && r == 0; h = cgroup_host_next(h))
        r = netlinks_bound(cgroup_host_group(h), &err);
    if (r == 0)
        return;
    if (hoard_watch(k, &no_watch) == 0)
        log_info("netlink sockets of sandboxes are watched, not counted: %s err=%s", err.msg,
                 strerror(err.code));
    else
        log_warn("a sandbox can take memory with netlink sockets: %s; %s", err.msg, no_watch.msg);
}

static int open_keeper(const struct config *c, struct storage *storage, struct keeper *k,
                       struct err *err)
{
    *k = (struct keeper){ .storage = storage,
                          .sweeper = SWEEPER_INIT,
                          .starter = STARTER_INIT,
                          .client_uid = c->client_uid,
                          .unpack_exe = c->unpack_exe,
                          .bucket_exe = c->bucket_exe };
    int r = loop_new(&k->loop);
    if (r < 0)
        return err_set(err, -r, "cannot make an event loop");
    char cells[PATH_MAX + 8];
    (void)snprintf(cells, sizeof(cells), "%s/cells", c->run_path);
    if ((mkdir(cells, 0700) < 0 && errno != EEXIST) || chmod(cells, 0711) < 0)
        return err_set(err, errno, "cannot make '%s'", cells);
    k->cells_dir = open(cells, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (k->cells_dir < 0)
        return err_set(err, errno, "cannot open '%s'", cells);
    struct err no_execs = ERR_INIT;
    if (!c->teardown && execs_new(&k->execs, &no_execs) < 0)
        log_info("programs that sandboxes run are not counted: %s", no_execs.msg);
    if (!c->teardown)
        r = starter_start(&k->starter, NULL, err);
    if (r ==
        0) /* after the starter, which has none, and what is done with refused calls at the start */
        r = calls_refuse_few(err);
    if (r == 0)
        r = cgroup_host_open(c->cgroup, &k->cgroups, err);
    if (r == 0)
        r = uidrange_open(UID_REGISTRY, c->run_path, &k->uids, err);
    if (r == 0)
        r = buckets_open(k, c->run_path, err);
    if (r == 0)
        r = cells_adopt(k, err);
    if (r == 0 && !c->teardown) {
        raise_fence(k);
        bound_backlogs(k);
        bound_netlinks(k);
    }
    storage_drop_unfinished(storage);
    storage_volumes_count_nested(storage);
    return r;
}

/* Tell the next daemon that a teardown ended the cells, or it would take them for crashed.
 * Written before the first one ends, in case we are killed in between. */
static int note_end(const struct config *c, struct err *err)
{
    char path[PATH_MAX + sizeof(KEEPER_ENDED_FILE) + 1], text[32];
    (void)snprintf(path, sizeof(path), "%s/" KEEPER_ENDED_FILE, c->run_path);
    (void)snprintf(text, sizeof(text), "%lld\n", (long long)clock_now_ms());
    (void)unlink(path);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
    if (r >= 0 && fchmod(fd, 0644) < 0)
        r = -errno;
    return r < 0 ? err_set(err, -r, "cannot write '%s'", path) : 0;
}

static int teardown(const struct config *c, struct keeper *k, struct err *err)
{
    int r = note_end(c, err);
    if (r < 0)
        return r;
    r = cells_kill_all(k);
    if (r < 0)
        return err_set(err, -r, "some sandboxes did not end");
    storage_empty_trash(k->storage);
    uidrange_release_all(k->uids);
    r = cgroup_host_remove(k->cgroups);
    return r < 0 ? err_set(err, -r, "cannot remove the control groups") : 0;
}

/* Bound all sandboxes together, so that the host keeps what it needs. */
static void bound_all(const struct config *c, struct keeper *k)
{
    struct err err = ERR_INIT;
    uint64_t threads = sysctl_u64("kernel/threads-max"), pids = sysctl_u64("kernel/pid_max");
    uint64_t most = (threads < pids ? threads : pids) / 10 * 9;
    if (cgroup_host_limit(k->cgroups, (uint64_t)c->memory_mb << 20, most, &err) < 0)
        log_warn("%s err=%s", err.msg, strerror(err.code));
}

static int serve(const struct config *c, struct keeper *k, struct err *err)
{
    sysctl_raise_shared();
    bound_all(c, k);
    int r = make_ns_host(c, &k->ns, err);
    if (r < 0)
        return r;
    r = sweeper_start(&k->sweeper, k->storage, err);
    if (r < 0)
        return r;
    int listen_fd = make_socket(c, err);
    if (listen_fd < 0)
        return listen_fd;
    if (c->ready_fd >= 0) {
        (void)fd_write_full(c->ready_fd, "R", 1);
        (void)close(c->ready_fd);
    }
    return server_run(k, listen_fd, c->parent_fd, err);
}

/* The pool goes, mounted in our namespace alone, with the last process of this program. */
static int enter_pool(const struct config *c, const struct storage *storage, struct err *err)
{
    if (chdir(storage_path(storage)) < 0)
        return err_set(err, errno, "cannot enter the pool");
    (void)execvp(c->with_pool[0], c->with_pool);
    return err_set(err, errno, "cannot run '%s'", c->with_pool[0]);
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
    userns_bound_limits();
    (void)signal(SIGPIPE, SIG_IGN);
    /* Mounts made here are seen here only, and vanish with us and the cells that use them. */
    r = mount_own_namespace(err);
    if (r < 0)
        return r;
    struct storage *storage = NULL;
    static struct keeper k; /* static: what it still holds at the end is no leak */
    r = storage_open(c->data_path, &storage, err);
    if (r < 0)
        return r;
    if (c->with_pool)
        return enter_pool(c, storage, err);
    const char *const keep[] = { "/proc", "/sys",       "/dev",      "/run",
                                 "/usr",  c->data_path, c->run_path, storage_path(storage) };
    mount_trim(keep, ARRAY_LEN(keep));
    r = open_keeper(c, storage, &k, err);
    if (r < 0)
        return r;
    return c->teardown ? teardown(c, &k, err) : serve(c, &k, err);
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

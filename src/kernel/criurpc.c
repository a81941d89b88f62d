#include "kernel/criurpc.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/pb.h"

#define REQUEST_MAX (256 * 1024) /* a few hundred mounts by path */
#define REPLY_MAX 65536
#define LOG_LEVEL 2 /* errors and warnings: more slows it down */
#define CACHE_BEGUN "/run/criu.kdat.tmp"
#define CACHE_WRITE_S 10
#define QUIET_MS 7200000 /* between two messages: all memory goes to disk, or comes back */

/* Of CRIU's messages, by number. */
enum { REQ_TYPE = 1, REQ_OPTS = 2, REQ_NOTIFY_SUCCESS = 3 };
enum { RESP_TYPE = 1, RESP_SUCCESS = 2, RESP_RESTORE = 4, RESP_NOTIFY = 5, RESP_ERRNO = 7 };
enum { TYPE_DUMP = 1, TYPE_RESTORE = 2, TYPE_NOTIFY = 6 };
enum { NOTIFY_SCRIPT = 1, NOTIFY_PID = 2, RESTORE_PID = 1 };
enum { INHERIT_KEY = 1, INHERIT_FD = 2 };
enum {
    OPT_IMAGES_FD = 1,
    OPT_PID = 2,
    OPT_LEAVE_RUNNING = 3,
    OPT_TCP_ESTABLISHED = 5,
    OPT_FILE_LOCKS = 8,
    OPT_LOG_LEVEL = 9,
    OPT_LOG_FILE = 10,
    OPT_NOTIFY_SCRIPTS = 12,
    OPT_ROOT = 13,
    OPT_WORK_FD = 17,
    OPT_LINK_REMAP = 18,
    OPT_INHERIT_FD = 27,
    OPT_MANAGE_CGROUPS_MODE = 34, /* 0: leave groups alone */
    OPT_GHOST_LIMIT = 35,
    OPT_IRMAP_PATHS = 36,
    OPT_EXTERNAL = 37,
    OPT_EMPTY_NS = 38,
    OPT_FREEZE_CGROUP = 44,
    OPT_NETWORK_LOCK = 64, /* 3: none; nothing comes from outside while all inside stands still */
    OPT_LEAVE_STOPPED = 69,
};
#define NETWORK_LOCK_SKIP 3
#define GHOST_MAX_BYTES \
    (1024u * 1024 * 1024) /* a file that is open and deleted goes with the images */

struct answer {
    unsigned type;
    bool success;
    int code;
    pid_t pid;
    char script[64];
};

/* ---- messages ---- */

/* Where files are looked for that a program watches: of a watch the kernel tells an inode number, not a name. Only
 * where people work: the image's own files may have the same numbers as theirs. */
static const char *const scanned[] = { "/root", "/home", "/workspace", "/app",
                                       "/srv",  "/opt",  "/mnt",       "/tmp" };

static int put_opts(const struct criurpc *c, unsigned type, struct buf *b)
{
    const struct {
        unsigned number;
        uint64_t value;
        bool on;
    } numbers[] = {
        { OPT_IMAGES_FD, (uint64_t)c->images_fd, true },
        { OPT_WORK_FD, (uint64_t)c->work_fd, true },
        { OPT_PID, (uint64_t)c->pid, type == TYPE_DUMP },
        { OPT_LEAVE_RUNNING, 1, type == TYPE_DUMP && c->leave_running },
        { OPT_LEAVE_STOPPED, 1, type == TYPE_DUMP && !c->leave_running },
        { OPT_TCP_ESTABLISHED, 1, true },
        { OPT_FILE_LOCKS, 1, true },
        { OPT_LOG_LEVEL, LOG_LEVEL, true },
        { OPT_NOTIFY_SCRIPTS, 1, true },
        { OPT_LINK_REMAP, 1, true },
        { OPT_GHOST_LIMIT, GHOST_MAX_BYTES, true },
        { OPT_MANAGE_CGROUPS_MODE, 0, true },
        { OPT_EMPTY_NS, CLONE_NEWNET, true },
        { OPT_NETWORK_LOCK, NETWORK_LOCK_SKIP, true },
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(numbers); i++)
        if (numbers[i].on)
            r = pb_put_int(b, numbers[i].number, numbers[i].value);
    if (r == 0)
        r = pb_put_str(b, OPT_LOG_FILE, CRIURPC_LOG);
    if (r == 0)
        r = pb_put_str(b, OPT_ROOT, c->root);
    if (r == 0)
        r = pb_put_str(b, OPT_FREEZE_CGROUP, c->freeze_cgroup);
    for (size_t i = 0; r == 0 && type == TYPE_DUMP && i < ARRAY_LEN(scanned); i++)
        r = pb_put_str(b, OPT_IRMAP_PATHS, scanned[i]);
    for (size_t i = 0; r == 0 && i < c->nexternal; i++)
        r = pb_put_str(b, OPT_EXTERNAL, c->external[i]);
    return r;
}

static int put_inherited(const struct criurpc *c, struct buf *b)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < CRIURPC_KEYS && c->inherit_keys[i]; i++) {
        _cleanup_(buf_done) struct buf one = BUF_INIT(256);
        r = pb_put_str(&one, INHERIT_KEY, c->inherit_keys[i]);
        if (r == 0)
            r = pb_put_int(&one, INHERIT_FD, STARTER_GIVEN_FD + i);
        if (r == 0)
            r = pb_put_bytes(b, OPT_INHERIT_FD, one.data, one.len);
    }
    return r;
}

static int send_request(int sock, const struct criurpc *c, unsigned type)
{
    _cleanup_(buf_done) struct buf opts = BUF_INIT(REQUEST_MAX), b = BUF_INIT(REQUEST_MAX);
    int r = put_opts(c, type, &opts);
    if (r == 0)
        r = put_inherited(c, &opts);
    if (r == 0)
        r = pb_put_int(&b, REQ_TYPE, type);
    if (r == 0)
        r = pb_put_bytes(&b, REQ_OPTS, opts.data, opts.len);
    return r < 0 ? r : fd_send_msg(sock, b.data, b.len, NULL, 0);
}

static int send_go(int sock, bool on)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64);
    int r = pb_put_int(&b, REQ_TYPE, TYPE_NOTIFY);
    if (r == 0)
        r = pb_put_int(&b, REQ_NOTIFY_SUCCESS, on);
    return r < 0 ? r : fd_send_msg(sock, b.data, b.len, NULL, 0);
}

static int read_notify(const struct pb_field *in, struct answer *a)
{
    struct pb_reader r = { in->p, in->n };
    struct pb_field f;
    int k;
    while ((k = pb_next(&r, &f)) > 0) {
        if (f.number == NOTIFY_SCRIPT && f.p)
            (void)snprintf(a->script, sizeof(a->script), "%.*s", (int)(f.n < 63 ? f.n : 63), f.p);
        else if (f.number == NOTIFY_PID && !f.p)
            a->pid = (pid_t)f.value;
    }
    return k;
}

static int read_restored(const struct pb_field *in, struct answer *a)
{
    struct pb_reader r = { in->p, in->n };
    struct pb_field f;
    int k;
    while ((k = pb_next(&r, &f)) > 0)
        if (f.number == RESTORE_PID && !f.p)
            a->pid = (pid_t)f.value;
    return k;
}

static int read_answer(const char *p, size_t n, struct answer *ret)
{
    struct pb_reader r = { p, n };
    struct pb_field f;
    int k, inner = 0;
    *ret = (struct answer){ 0 };
    while (inner >= 0 && (k = pb_next(&r, &f)) > 0) {
        if (f.number == RESP_TYPE && !f.p)
            ret->type = (unsigned)f.value;
        else if (f.number == RESP_SUCCESS && !f.p)
            ret->success = f.value != 0;
        else if (f.number == RESP_ERRNO && !f.p)
            ret->code = (int)f.value;
        else if (f.number == RESP_NOTIFY && f.p)
            inner = read_notify(&f, ret);
        else if (f.number == RESP_RESTORE && f.p)
            inner = read_restored(&f, ret);
    }
    return inner < 0 ? inner : k;
}

/* Children of it that look what the kernel can do have its socket too, and outlive it if it is killed: its own end is
 * what counts. What it said before is still read. */
static int await(int sock, int pidfd)
{
    struct pollfd ends[] = { { sock, POLLIN, 0 }, { pidfd, POLLIN, 0 } };
    int n;
    while ((n = poll(ends, 2, QUIET_MS)) < 0)
        if (errno != EINTR)
            return -errno;
    if (n == 0)
        return -ETIMEDOUT;
    if (!ends[0].revents)
        (void)poll(ends, 1, 0);
    return ends[0].revents ? 0 : -EPIPE;
}

static int next_answer(int sock, int pidfd, char *space, struct answer *ret)
{
    size_t none = 0;
    int r = await(sock, pidfd);
    if (r < 0)
        return r;
    ssize_t n = fd_recv_msg(sock, space, REPLY_MAX, NULL, 0, &none);
    if (n <= 0)
        return n < 0 ? (int)n : -EPIPE;
    return read_answer(space, (size_t)n, ret);
}

/* ---- the process ---- */

/* It keeps what it knows of the kernel in a file, beside which one that was killed leaves another: as long as that is
 * there, none writes the first, and each has to find out anew. */
static void forget_stale_cache(void)
{
    struct stat st;
    if (stat(CACHE_BEGUN, &st) == 0 && time(NULL) - st.st_mtime > CACHE_WRITE_S)
        (void)unlink(CACHE_BEGUN);
}

/* CRIU opens the directories through /proc, by their numbers in whoever made the socket pair. */
static int start(const struct criurpc *c, int *ret_sock, struct starter_child *ret_child,
                 struct err *err)
{
    unsigned ngiven = 0;
    int ends[2];
    forget_stale_cache();
    while (ngiven < CRIURPC_KEYS && c->inherit_keys[ngiven])
        ngiven++;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set(err, errno, "cannot make a socket pair");
    int r = starter_run(c->starter, &c->place, ends[1], c->inherit_fd, ngiven, ret_child, err);
    (void)close(ends[1]);
    if (r < 0)
        (void)close(ends[0]);
    else
        *ret_sock = ends[0];
    return r;
}

/* ---- the conversation ---- */

static int converse(const struct criurpc *c, int sock, int pidfd, unsigned type, pid_t *ret_pid,
                    struct err *err)
{
    _cleanup_free_ char *space = malloc(REPLY_MAX);
    bool refused = false;
    if (!space)
        return err_set(err, ENOMEM, "out of memory");
    int r = send_request(sock, c, type);
    if (r < 0 && r != -EPIPE &&
        r != -ECONNRESET) /* with these it has ended: it is not there to answer */
        return err_set(err, -r, "cannot ask CRIU");
    for (;;) {
        struct answer a;
        r = next_answer(sock, pidfd, space, &a);
        if (r < 0)
            return refused ? -err->code : criurpc_explain(c, ECHILD, err);
        if (a.type == TYPE_NOTIFY) {
            r = c->hook(c->arg, a.script, a.pid, err);
            refused |= r < 0;
            (void)send_go(sock, r >= 0);
            continue;
        }
        if (refused)
            return -err->code;
        if (a.type != type || !a.success)
            return criurpc_explain(c, a.code > 0 && a.code < 4096 ? a.code : EIO, err);
        *ret_pid = a.pid;
        return 0;
    }
}

static int run(const struct criurpc *c, unsigned type, void (*started)(void *arg, pid_t pid),
               pid_t *ret_pid, struct err *err)
{
    int sock = -1;
    struct starter_child child;
    int r = start(c, &sock, &child, err);
    if (r < 0)
        return r;
    if (started)
        started(c->arg, child.pid);
    r = converse(c, sock, child.pidfd, type, ret_pid, err);
    (void)close(sock);
    starter_wait(&child);
    return r;
}

int criurpc_dump(const struct criurpc *c, void (*started)(void *arg, pid_t pid), struct err *err)
{
    pid_t none;
    return run(c, TYPE_DUMP, started, &none, err);
}

int criurpc_restore(const struct criurpc *c, void (*started)(void *arg, pid_t pid), pid_t *ret_pid,
                    struct err *err)
{
    return run(c, TYPE_RESTORE, started, ret_pid, err);
}

#include "core/keeper.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/private.h"

#define RETRY_US 20000
#define REPLY_WAIT_S 120   /* the slowest: deleting a full disk on a loaded machine */
#define MEMORY_WAIT_S 7200 /* memory on its way to the disk or back takes what the disk takes */
#define ROWS_MAX 1000000   /* no host has as many cells */

int keeper_ask_result(const struct keeper_reply *reply, struct err *err)
{
    if (reply->result >= 0)
        return 0;
    int code = reply->result < -4095 ? EIO : -reply->result;
    enum failure failure =
        failure_find(reply->what, strnlen(reply->what, sizeof(reply->what)), FAILURE_BY_KEEPER);
    if (!failure && (code == ENOSPC || code == EDQUOT))
        failure = FAIL_NO_SPACE;
    return err_fail_as(err, code, failure, "%s", reply->msg[0] ? reply->msg : strerror(code));
}

static int dial(const struct core *core, int flags)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/keeper.sock", core->run_dir);
    if (n < 0 || (size_t)n >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    if (fd < 0)
        return -errno;
    while (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
        if (errno != EINTR)
            return -errno;
    return take_fd(fd);
}

bool keeper_listens(const struct core *core)
{
    _cleanup_fd_ int fd = dial(core, SOCK_NONBLOCK);
    return fd >= 0 || fd == -EAGAIN; /* its queue is full */
}

/* The keeper is away, or went away: worth another try. */
static bool is_away(int r)
{
    return r == -ECONNREFUSED || r == -ENOENT || r == -ECONNRESET || r == -EPIPE || r == -EAGAIN ||
           r == -ENOTCONN;
}

static int unavailable(struct err *err, int r)
{
    return err_fail(err, FAIL_KEEPER_UNAVAILABLE,
                    "warren-keeper does not answer (%s); its log says why", strerror(-r));
}

static int send_request(struct core *core, const struct keeper_request *req, const int *fds,
                        size_t nfds)
{
    _cleanup_fd_ int fd = dial(core, 0);
    if (fd < 0)
        return fd;
    int r = fd_send_msg(fd, req, sizeof(*req), fds, nfds);
    return r < 0 ? r : take_fd(fd);
}

/* 0: slept a little, try again; else the time is up and r is the failure. */
static int pause_or_fail(struct core *core, int r, int64_t until_ms, struct err *err)
{
    if (r == -ETIMEDOUT)
        return unavailable(err, r);
    if (!is_away(r))
        return err_set(err, -r, "cannot talk to warren-keeper: %s", strerror(-r));
    if (atomic_load(&core->stopping) || clock_mono_ms() >= until_ms)
        return unavailable(err, r);
    (void)usleep(RETRY_US);
    return 0;
}

int keeper_ask_begin(struct core *core, const struct keeper_request *req, const int *fds,
                     size_t nfds, int *ret_fd, struct err *err)
{
    int64_t until = clock_mono_ms() + KEEPER_WAIT_MS;
    for (;;) {
        int fd = send_request(core, req, fds, nfds);
        if (fd >= 0) {
            *ret_fd = fd;
            return 0;
        }
        int r = pause_or_fail(core, fd, until, err);
        if (r < 0)
            return r;
    }
}

/* *ret_nfds of ret_fds are the caller's, whatever the result. */
static int next_with(int fd, struct keeper_reply *ret_reply, int *ret_fds, size_t max,
                     size_t *ret_nfds)
{
    *ret_nfds = 0;
    ssize_t n = fd_recv_msg(fd, ret_reply, sizeof(*ret_reply), ret_fds, max, ret_nfds);
    if (n == 0 || n == -EPIPE)
        return -ECONNRESET;
    if (n == -EAGAIN)
        return -ETIMEDOUT; /* SO_RCVTIMEO */
    if (n < 0)
        return (int)n;
    if ((size_t)n != sizeof(*ret_reply) || ret_reply->version != KEEPER_VERSION)
        return -EPROTO;
    ret_reply->what[sizeof(ret_reply->what) - 1] = '\0';
    ret_reply->msg[sizeof(ret_reply->msg) - 1] = '\0';
    ret_reply->id[sizeof(ret_reply->id) - 1] = '\0';
    ret_reply->volume[sizeof(ret_reply->volume) - 1] = '\0';
    ret_reply->image[sizeof(ret_reply->image) - 1] = '\0';
    return 0;
}

int keeper_ask_next(int fd, struct keeper_reply *ret_reply)
{
    int none[1];
    size_t nfds;
    return next_with(fd, ret_reply, none, 0, &nfds);
}

static int ask_once(struct core *core, const struct keeper_request *req,
                    struct keeper_reply *ret_reply, struct keeper_passed *ret_passed,
                    bool *ret_sent)
{
    bool long_one = req->op == KEEPER_POINT_PUT || (req->op == KEEPER_MAKE && req->point[0]);
    const struct timeval wait = { .tv_sec = long_one ? MEMORY_WAIT_S : REPLY_WAIT_S };
    _cleanup_fd_ int fd = send_request(core, req, NULL, 0);
    if (fd < 0)
        return fd;
    *ret_sent = true;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    return next_with(fd, ret_reply, ret_passed->fds, KEEPER_STEER_FDS, &ret_passed->n);
}

/* The keeper died while it brought processes back: some may have run, and written, before they were killed with it.
 * A cell that is there after all keeps its files. */
static int put_files_back(struct core *core, const struct keeper_request *make, struct err *err)
{
    struct keeper_request files = *make;
    files.op = KEEPER_BOX_PUT;
    int r = keeper_ask(core, &files, NULL, err);
    return r == -EBUSY ? 0 : r;
}

/* The next keeper first brings back what the one before had put to rest. */
static bool is_rescued(const struct keeper_request *req, const struct keeper_reply *reply)
{
    return req->op == KEEPER_POINT_PUT && reply->result == -EBUSY &&
           strcmp(reply->what, "sandbox_busy") == 0;
}

int keeper_ask_passed(struct core *core, const struct keeper_request *req,
                      struct keeper_reply *ret_reply, struct keeper_passed *ret_passed,
                      struct err *err)
{
    struct keeper_reply reply;
    int64_t until = clock_mono_ms() + KEEPER_WAIT_MS;
    bool sent_before = false;
    for (;;) {
        bool sent = false;
        int r = ask_once(core, req, &reply, ret_passed, &sent);
        if (r >= 0 && is_rescued(req, &reply) && sent_before && clock_mono_ms() < until) {
            (void)usleep(RETRY_US);
            continue;
        }
        if (r >= 0)
            break;
        fd_close_all(ret_passed->fds, ret_passed->n);
        sent_before |= sent;
        r = pause_or_fail(core, r, until, err);
        if (r >= 0 && sent_before && req->op == KEEPER_MAKE && req->point[0])
            r = put_files_back(core, req, err);
        if (r < 0)
            return r;
    }
    /* The keeper died after it had made the cell and before it could say so. */
    bool made = sent_before && req->op == KEEPER_MAKE && reply.result == -EEXIST &&
                strcmp(reply.what, "cell_exists") == 0;
    if (made)
        reply.result = 0;
    int r = keeper_ask_result(&reply, err);
    if (made && req->point[0]) /* processes that are brought back have no limits until the end */
        r = keeper_ask_limits(core, req->id, &req->limits, err);
    if (r >= 0 && ret_reply)
        *ret_reply = reply;
    if (r < 0)
        fd_close_all(ret_passed->fds, ret_passed->n);
    return r;
}

int keeper_ask(struct core *core, const struct keeper_request *req, struct keeper_reply *ret_reply,
               struct err *err)
{
    struct keeper_passed none = { .n = 0 };
    int r = keeper_ask_passed(core, req, ret_reply, &none, err);
    if (r >= 0)
        fd_close_all(none.fds, none.n);
    return r;
}

/* ---- lists ---- */

struct rows {
    struct keeper_row *items;
    size_t n, cap;
};

static int rows_add(struct rows *rows, const struct keeper_reply *reply)
{
    if (rows->n == ROWS_MAX)
        return -EMSGSIZE;
    if (rows->n == rows->cap) {
        size_t cap = rows->cap ? rows->cap * 2 : 64;
        struct keeper_row *p = reallocarray(rows->items, cap, sizeof(*p));
        if (!p)
            return -ENOMEM;
        rows->items = p;
        rows->cap = cap;
    }
    struct keeper_row *row = &rows->items[rows->n++];
    memcpy(row->id, reply->id, sizeof(row->id));
    memcpy(row->image, reply->image, sizeof(row->image));
    row->running = reply->running != 0;
    row->frozen = reply->frozen != 0;
    row->memory_bytes = reply->memory_bytes;
    return 0;
}

static int list_once(struct core *core, const struct keeper_request *req, struct rows *rows,
                     struct keeper_reply *ret_end)
{
    static const struct timeval wait = { .tv_sec = REPLY_WAIT_S };
    _cleanup_fd_ int fd = send_request(core, req, NULL, 0);
    if (fd < 0)
        return fd;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    rows->n = 0;
    for (;;) {
        int r = keeper_ask_next(fd, ret_end);
        if (r < 0)
            return r;
        if (!ret_end->more)
            return 0;
        r = rows_add(rows, ret_end);
        if (r < 0)
            return r;
    }
}

int keeper_ask_list(struct core *core, enum keeper_op op, struct keeper_row **ret_rows,
                    size_t *ret_n, struct err *err)
{
    struct keeper_request req;
    struct rows rows = { NULL, 0, 0 };
    struct keeper_reply end;
    int64_t until = clock_mono_ms() + KEEPER_WAIT_MS;
    int r;
    memset(&req, 0, sizeof(req)); /* padding too: it crosses a socket */
    req.version = KEEPER_VERSION;
    req.op = op;
    while ((r = list_once(core, &req, &rows, &end)) < 0) {
        r = pause_or_fail(core, r, until, err);
        if (r < 0)
            break;
    }
    if (r >= 0)
        r = keeper_ask_result(&end, err);
    if (r < 0) {
        free(rows.items);
        return r;
    }
    *ret_rows = rows.items;
    *ret_n = rows.n;
    return 0;
}

static int compare_rows(const void *a, const void *b)
{
    return strcmp(((const struct keeper_row *)a)->id, ((const struct keeper_row *)b)->id);
}

void keeper_rows_sort(struct keeper_row *rows, size_t n)
{
    if (n)
        qsort(rows, n, sizeof(*rows), compare_rows);
}

const struct keeper_row *keeper_rows_find(const struct keeper_row *rows, size_t n, const char *id)
{
    struct keeper_row key;
    (void)snprintf(key.id, sizeof(key.id), "%s", id);
    return n ? bsearch(&key, rows, n, sizeof(key), compare_rows) : NULL;
}

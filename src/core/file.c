#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/file_codec.h"
#include "core/init_conn.h"
#include "core/pace.h"

#define STALL_MS 60000 /* a sandbox that takes no byte for this long: frozen, or starved */
#define BEGIN_MS 10000
#define DO_MS (3600 * 1000)      /* an operation with one answer, whatever comes before that */
#define GATHER_MAX (128 * 1024)  /* small frames go out together: many files are many frames */
#define GATHER_FRAME (16 * 1024) /* what is larger goes out by itself, uncopied */

struct file_call {
    struct init_conn conn;
    enum wire_file_op op;
    char sandbox[ID_SIZE];
    struct buf gathered; /* frames that are not sent yet */
    struct pace pace;
    int pipe[2]; /* file_put_from's; -1 before */
    bool ready, done;
    uint64_t size; /* that an ERROR told */
};

/* ---- begin, feed, end ---- */

int file_begin(struct core *core, const struct sandbox *s, const struct file_ask *ask,
               struct file_call **ret_call, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(WIRE_PAYLOAD_MAX);
    _cleanup_(file_call_freep) struct file_call *call = calloc(1, sizeof(*call));
    if (!call)
        return err_set(err, ENOMEM, "cannot allocate a file operation");
    call->conn.fd = call->pipe[0] = call->pipe[1] = -1;
    call->gathered.max = GATHER_MAX + GATHER_FRAME;
    call->op = ask->op;
    call->pace.grace_ms = FILE_QUIET_MS;
    memcpy(call->sandbox, s->id, sizeof(call->sandbox));

    int r = file_encode_ask(&b, s, ask);
    if (r == -EMSGSIZE)
        return err_fail(err, FAIL_ARGUMENT_TOO_LARGE, "the names of one request are over %u bytes",
                        WIRE_PAYLOAD_MAX);
    if (r < 0)
        return err_set(err, -r, "cannot describe the file operation");
    r = init_conn_open(core_run_dir(core), s->id, &call->conn, err);
    if (r < 0)
        return r;
    r = init_conn_begin(&call->conn, WIRE_FILE, b.data, b.len, BEGIN_MS);
    if (r < 0)
        return init_conn_lost(err, r, s->id);
    *ret_call = take_ptr(call);
    return 0;
}

static int flush(struct file_call *call)
{
    if (call->gathered.len == 0)
        return 0;
    int r = init_conn_send_frames(&call->conn, &call->gathered, STALL_MS);
    buf_clear(&call->gathered);
    return r == -ECONNRESET ? -EPIPE : r;
}

static int gather(struct file_call *call, enum wire_type type, const void *p, size_t n)
{
    unsigned char head[WIRE_HEADER_SIZE];
    wire_header_put(head, &(struct wire_header){ .len = (uint32_t)n, .type = (uint8_t)type });
    int r = buf_append(&call->gathered, head, sizeof(head));
    if (r >= 0)
        r = buf_append(&call->gathered, p, n);
    return r >= 0 && call->gathered.len >= GATHER_MAX ? flush(call) : r;
}

static int put(struct file_call *call, enum wire_type type, const void *p, size_t n)
{
    if (n + WIRE_HEADER_SIZE <= GATHER_FRAME)
        return gather(call, type, p, n);
    int r = flush(call);
    if (r >= 0)
        r = init_conn_send(&call->conn, type, p, n, STALL_MS);
    return r == -ECONNRESET ? -EPIPE : r;
}

int file_put_entry(struct file_call *call, const struct file_entry *e)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(WIRE_PAYLOAD_MAX);
    int r = file_encode_entry(&b, e);
    return r < 0 ? r : put(call, WIRE_ENTRY, b.data, b.len);
}

int file_put_data(struct file_call *call, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0) {
        size_t piece = n < WIRE_BULK_MAX ? n : WIRE_BULK_MAX;
        int r = put(call, WIRE_DATA, at, piece);
        if (r < 0)
            return r;
        at += piece;
        n -= piece;
    }
    return 0;
}

static bool open_pipe(struct file_call *call)
{
    if (call->pipe[0] >= 0)
        return true;
    if (pipe2(call->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
        call->pipe[0] = call->pipe[1] = -1;
        return false;
    }
    (void)fcntl(call->pipe[1], F_SETPIPE_SZ, (int)WIRE_BULK_MAX); /* smaller does, too */
    return true;
}

int file_put_from(struct file_call *call, int from, uint64_t n, int from_ms, size_t *ret_taken)
{
    *ret_taken = 0;
    if (!open_pipe(call))
        return -EOPNOTSUPP;
    int r = flush(call);
    if (r >= 0)
        r = init_conn_pass(&call->conn, WIRE_DATA, from,
                           n < WIRE_BULK_MAX ? (size_t)n : WIRE_BULK_MAX, call->pipe, from_ms,
                           STALL_MS, ret_taken);
    return r == -ECONNRESET ? -EPIPE : r;
}

int file_put_hole(struct file_call *call, uint64_t n)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64);
    int r = wire_put_u64(&b, WIRE_T_LENGTH, n);
    return r < 0 ? r : put(call, WIRE_HOLE, b.data, b.len);
}

int file_put_end(struct file_call *call)
{
    int r = put(call, WIRE_END, NULL, 0);
    return r < 0 ? r : flush(call);
}

int file_call_fd(const struct file_call *call)
{
    return call->conn.fd;
}

void file_call_free(struct file_call *call)
{
    if (!call)
        return;
    init_conn_done(&call->conn);
    fd_close_all(call->pipe, 2);
    buf_done(&call->gathered);
    free(call);
}

/* ---- answers ---- */

static int lost(const struct file_call *call, int r, struct err *err)
{
    if (r == -ECONNRESET)
        return err_fail_as(
            err, ECONNRESET, FAIL_SANDBOX_NOT_RUNNING,
            "the operation ended inside sandbox '%s' before it answered: the sandbox "
            "stopped, or had no memory left",
            call->sandbox);
    return init_conn_lost(err, r, call->sandbox);
}

uint64_t file_call_size(const struct file_call *call)
{
    return call->size;
}

static int refused(struct file_call *call, const struct init_frame *f, struct err *err)
{
    struct file_event ev;
    if (file_decode(f->p, f->h.len, &ev) >= 0) {
        call->size = ev.size;
        file_event_done(&ev);
    }
    return init_conn_error(f, err);
}

/* The sentence init gave is the reason of one entry, not of the operation. */
static int take_skipped(const struct init_frame *f, struct file_event *ret_ev)
{
    int r = file_decode(f->p, f->h.len, ret_ev);
    if (r < 0)
        return r;
    if (init_conn_error(f, &ret_ev->err) == -EPROTO && !ret_ev->err.failure) {
        file_event_done(ret_ev);
        return -EPROTO;
    }
    ret_ev->type = FILE_SKIPPED;
    return 0;
}

static int take_frame(struct file_call *call, const struct init_frame *f, struct file_event *ret_ev)
{
    static const struct {
        uint8_t frame;
        enum file_event_type event;
    } kinds[] = { { WIRE_ENTRY, FILE_ENTRY },
                  { WIRE_MATCH, FILE_MATCH },
                  { WIRE_CHANGE, FILE_CHANGE },
                  { WIRE_OK, FILE_DONE } };
    if (f->h.type == WIRE_DATA) {
        *ret_ev = (struct file_event){ .type = FILE_DATA, .data = f->p, .len = f->h.len };
        return 0;
    }
    if (f->h.type == WIRE_SKIPPED)
        return take_skipped(f, ret_ev);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (f->h.type != kinds[i].frame)
            continue;
        int r = file_decode(f->p, f->h.len, ret_ev);
        if (r < 0)
            return r;
        ret_ev->type = kinds[i].event;
        bool named = ret_ev->entry.path || ret_ev->change == WIRE_OVERFLOW;
        if (ret_ev->type != FILE_DONE && !named) {
            file_event_done(ret_ev);
            return -EPROTO;
        }
        if (ret_ev->type == FILE_DONE && call->op == WIRE_FILE_WATCH && !call->ready) {
            call->ready = true;
            ret_ev->type = FILE_READY;
        }
        call->done = ret_ev->type == FILE_DONE;
        return 0;
    }
    return -EPROTO;
}

/* How long an operation may send nothing. Its worker runs among the sandbox's processes, where
 * root can stop it, so the wait must end; a watch may rightly have nothing to report. */
static int patience_ms(const struct file_call *call)
{
    switch (call->op) {
    case WIRE_FILE_WATCH: return call->ready ? -1 : FILE_QUIET_MS;
    case WIRE_FILE_READ:
    case WIRE_FILE_STAT:
    case WIRE_FILE_MKDIR:
    case WIRE_FILE_CHMOD:
    case WIRE_FILE_CHOWN:
    case WIRE_FILE_SYMLINK:
    case WIRE_FILE_XATTRS:
    case WIRE_FILE_XATTR_SET:
    case WIRE_FILE_XATTR_RM: return STALL_MS;
    case WIRE_FILE_WRITE:
    case WIRE_FILE_LIST:
    case WIRE_FILE_MOVE:
    case WIRE_FILE_COPY:
    case WIRE_FILE_REMOVE:
    case WIRE_FILE_TRUNCATE:
    case WIRE_FILE_USAGE:
    case WIRE_FILE_FIND:
    case WIRE_FILE_SEARCH:
    case WIRE_FILE_REPLACE:
    case WIRE_FILE_TREE_OUT:
    case WIRE_FILE_TREE_IN: break;
    }
    return FILE_QUIET_MS;
}

/* Waits of at most that long, which count against the call's pace. */
static int recv_in_time(struct file_call *call, int most_ms, int hangup_fd,
                        struct init_frame *ret_f)
{
    if (most_ms < 0)
        return init_conn_recv(&call->conn, most_ms, hangup_fd, ret_f);
    int64_t began = clock_mono_ms();
    int r = init_conn_recv(&call->conn, pace_left(&call->pace, most_ms), hangup_fd, ret_f);
    pace_note(&call->pace, began, r < 0 ? 0 : WIRE_HEADER_SIZE + ret_f->h.len);
    return r;
}

int file_next(struct file_call *call, int timeout_ms, int hangup_fd, struct file_event *ret_ev,
              struct err *err)
{
    struct init_frame f;
    if (call->done)
        return err_set(err, EPIPE, "the operation has ended");
    int r = timeout_ms < 0 ? recv_in_time(call, patience_ms(call), hangup_fd, &f)
                           : init_conn_recv(&call->conn, timeout_ms, hangup_fd, &f);
    if (r == -ECANCELED || (r == -ETIMEDOUT && timeout_ms >= 0))
        return r;
    if (r < 0)
        return lost(call, r, err);
    if (f.h.type == WIRE_ERROR)
        return refused(call, &f, err);
    r = take_frame(call, &f, ret_ev);
    return r < 0 ? lost(call, r, err) : 1;
}

ssize_t file_read(struct file_call *call, void *out, size_t max, int hangup_fd, struct err *err)
{
    struct init_frame f;

    if (call->done)
        return 0;
    int64_t began = clock_mono_ms();
    ssize_t n = init_conn_data(&call->conn, out, max, pace_left(&call->pace, STALL_MS), hangup_fd);
    pace_note(&call->pace, began, n < 0 ? 0 : (uint64_t)n);
    int r = n < 0 ? (int)n : 0;
    if (n > 0)
        return n;
    if (r == 0)
        r = recv_in_time(call, STALL_MS, hangup_fd, &f);
    if (r < 0)
        return r == -ECANCELED ? r : lost(call, r, err);
    if (f.h.type == WIRE_ERROR)
        return refused(call, &f, err);
    call->done = f.h.type == WIRE_OK;
    return call->done ? 0 : lost(call, -EPROTO, err);
}

int file_call_check(struct file_call *call, int hangup_fd, struct err *err)
{
    struct wire_header h;
    int r = init_conn_peek(&call->conn, patience_ms(call), hangup_fd, &h);
    if (r < 0)
        return r == -ECANCELED ? r : lost(call, r, err);
    if (h.type != WIRE_ERROR)
        return 0;
    struct file_event ev;
    r = file_next(call, -1, hangup_fd, &ev, err);
    return r < 0 ? r : lost(call, -EPROTO, err);
}

void file_call_hurry(struct file_call *call, int grace_ms)
{
    call->pace.grace_ms = grace_ms;
}

void file_call_redirect(struct file_call *call, int fd)
{
    (void)close(call->conn.fd);
    call->conn.fd = fd;
}

int file_do(struct core *core, const struct sandbox *s, const struct file_ask *ask,
            struct file_entry *ret_e, struct file_event *ret_done, struct err *err)
{
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    _cleanup_(file_entry_done) struct file_entry entry = { 0 };
    int hangup = ask->client_fd > 0 ? ask->client_fd : -1;
    int64_t until = clock_mono_ms() + DO_MS;

    int r = file_begin(core, s, ask, &call, err);
    if (r < 0)
        return r;
    for (;;) {
        struct file_event ev = { 0 };
        r = file_next(call, -1, hangup, &ev, err);
        if (r < 0)
            return r;
        if (ev.type == FILE_DONE) {
            file_event_done(&ev); /* numbers only are of interest */
            if (ret_e && !entry.path)
                return lost(call, -EPROTO, err);
            if (ret_e)
                *ret_e = entry;
            else
                file_entry_done(&entry);
            entry = (struct file_entry){ 0 };
            if (ret_done)
                *ret_done = ev;
            return 0;
        }
        if (ev.type == FILE_ENTRY && !entry.path)
            entry = ev.entry;
        else
            file_event_done(&ev);
        if (clock_mono_ms() >= until) /* nobody takes these, so nothing else ends them */
            return lost(call, -ETIMEDOUT, err);
    }
}

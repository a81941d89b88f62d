#include "init/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "init/call.h"
#include "init/file/worker.h"
#include "init/frame.h"
#include "init/park.h"
#include "init/peer.h"
#include "init/listeners.h"
#include "init/probe.h"
#include "init/proc.h"
#include "init/ps.h"
#include "init/who.h"

#define GATHER_BYTES (16u * 1024) /* answers gathered for one send */
#define COPY_MAX 4096u            /* output up to this joins them; more goes out from the ring */

static int64_t born_ms;

void ops_setup(void)
{
    born_ms = clock_mono_ms();
}

/* ---- requests ---- */

static struct proc *find(const struct call *call, struct err *err)
{
    struct proc *p = proc_find(call->proc);
    if (!p)
        (void)err_fail_as(err, ENOENT, FAIL_PROCESS_NOT_FOUND, "there is no process %llu here",
                          (unsigned long long)call->proc);
    return p;
}

static void on_viewed(struct viewer *v)
{
    peer_dirty(container_of(v, struct peer, viewer));
}

static void attach(struct peer *c, struct proc *p, uint64_t since, bool output)
{
    c->viewer.output = output;
    c->viewer.wake = on_viewed;
    viewer_add(&c->viewer, p, since);
    if (p->phase == PROC_ENDED)
        c->end_offset = p->drain.ring.tail;
    c->state = PEER_ATTACHED;
}

static int op_start(struct peer *c, const struct call *call, struct err *err)
{
    struct proc *p;
    if (sweep_is_on())
        return err_fail(err, FAIL_SANDBOX_BUSY, "the sandbox is being emptied");
    int r = proc_start(call, &p, err);
    if (r < 0)
        return r;
    attach(c, p, 0, !(call->flags & WIRE_F_NO_OUTPUT));
    return 0;
}

static int op_attach(struct peer *c, const struct call *call, struct err *err)
{
    struct proc *p = find(call, err);
    if (!p)
        return -ENOENT;
    attach(c, p, call->since, !(call->flags & WIRE_F_NO_OUTPUT));
    return 0;
}

static void answer_fed(struct peer *c, int r)
{
    struct err err = ERR_INIT;
    if (r == 0) {
        (void)frame_empty(&c->out, WIRE_OK);
        return;
    }
    if (r == -ESRCH)
        (void)err_fail(&err, FAIL_PROCESS_ENDED, "the process has ended");
    else
        (void)err_fail(&err, FAIL_STDIN_CLOSED, "the process's stdin is not open");
    (void)frame_error(&c->out, &err);
}

static void on_fed(struct feeder *f, int r)
{
    struct peer *c = container_of(f, struct peer, feeder);
    c->in_at += c->frame_size;
    c->frame_size = 0;
    /* On an attached connection nobody waits for an answer: bytes for a closed stdin are lost, as
     * they are in a pipe. */
    if (c->state == PEER_FEEDING) {
        answer_fed(c, r);
        peer_finish(c);
    }
    peer_dirty(c);
}

static void feed(struct peer *c, struct proc *p, const char *data, size_t n, bool eof)
{
    c->feeder.p = data;
    c->feeder.n = n;
    c->feeder.eof = eof;
    c->feeder.done = on_fed;
    feed_add(p, &c->feeder);
}

static int op_write(struct peer *c, const struct call *call, struct err *err)
{
    struct proc *p = find(call, err);
    if (!p)
        return -ENOENT;
    c->state = PEER_FEEDING;
    feed(c, p, call->data, call->data_n, call->type == WIRE_CLOSE);
    return 0;
}

static int op_signal(struct peer *c, const struct call *call, struct err *err)
{
    struct proc *p = find(call, err);
    return p ? proc_signal(p, (int)call->signo, (enum wire_scope)call->scope, err) : -ENOENT;
}

static int op_resize(struct peer *c, const struct call *call, struct err *err)
{
    struct proc *p = find(call, err);
    return p ? proc_resize(p, (unsigned)call->rows, (unsigned)call->cols, err) : -ENOENT;
}

static int op_list(struct peer *c, const struct call *call, struct err *err)
{
    c->state = PEER_LISTING;
    c->listing.all = (call->flags & WIRE_F_ALL) != 0;
    return 0;
}

static int op_ping(struct peer *c, const struct call *call, struct err *err)
{
    int r = frame_pong(&c->out, (uint64_t)(clock_mono_ms() - born_ms), procs_live());
    peer_finish(c);
    return r;
}

static void on_swept(struct sweep_waiter *w)
{
    struct peer *c = container_of(w, struct peer, waiter);
    (void)frame_empty(&c->out, WIRE_OK);
    peer_finish(c);
}

static int op_shutdown(struct peer *c, const struct call *call, struct err *err)
{
    c->state = PEER_SWEEPING;
    c->waiter.done = on_swept;
    sweep_begin(&c->waiter, call->grace_ms);
    return 0;
}

static void on_quiet(struct peer *c)
{
    (void)frame_empty(&c->out, WIRE_OK);
    peer_dirty(c);
}

static int park_frame(struct peer *c, const struct wire_header *h, char *payload)
{
    payload[h->len] = '\0'; /* peer_step keeps what stood there */
    if (c->state == PEER_PARKING)
        return h->type == WIRE_PARK_NOW ? park_now(c, payload) : -EPROTO;
    int r = park_begin(c, on_quiet);
    if (r == 0)
        c->state = PEER_PARKING;
    return r;
}

/* A handler that leaves the peer's state as it is has done all there is: the answer is OK. */
static const struct op {
    enum wire_type type;
    bool on_process; /* needs PROC */
    int (*fn)(struct peer *c, const struct call *call, struct err *err);
} ops[] = {
    { WIRE_START, false, op_start },       { WIRE_ATTACH, true, op_attach },
    { WIRE_WRITE, true, op_write },        { WIRE_CLOSE, true, op_write },
    { WIRE_SIGNAL, true, op_signal },      { WIRE_RESIZE, true, op_resize },
    { WIRE_LIST, false, op_list },         { WIRE_PING, false, op_ping },
    { WIRE_SHUTDOWN, false, op_shutdown },
};

static int run_op(struct peer *c, const struct call *call, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (ops[i].type != call->type)
            continue;
        if (ops[i].on_process && !call_has(call, WIRE_T_PROC))
            return err_fail(err, FAIL_MISSING_FIELD, "proc is missing");
        return ops[i].fn(c, call, err);
    }
    return -EPROTO;
}

static int request_frame(struct peer *c, const struct wire_header *h, char *payload)
{
    _cleanup_(call_done) struct call call = { 0 };
    struct err err = ERR_INIT;
    int r = call_decode(h, payload, &call, &err);
    if (r == 0)
        r = run_op(c, &call, &err);
    if (r < 0 && err.code == 0)
        return r; /* not even wrong: nothing to answer */
    if (r < 0)
        r = frame_error(&c->out, &err);
    else if (c->state == PEER_REQUEST)
        r = frame_empty(&c->out, WIRE_OK);
    else
        return 0;
    peer_finish(c);
    return r;
}

/* The connection is a worker's from here on. What came behind the request goes with it. */
static int worker_frame(struct peer *c, const struct wire_header *h, char *payload)
{
    struct err err = ERR_INIT;
    size_t used = c->in_at + WIRE_HEADER_SIZE + h->len;
    int r = 0;
    if (sweep_is_on())
        r = err_fail(&err, FAIL_SANDBOX_BUSY, "the sandbox is being emptied");
    else if (h->type == WIRE_PROBE)
        r = worker_start_job(c->watch.fd, probe_run, payload, h->len, &err);
    else if (h->type == WIRE_PORTS)
        r = worker_start_job(c->watch.fd, listeners_run, payload, h->len, &err);
    else if (h->type == WIRE_WHO)
        r = worker_start_job(c->watch.fd, who_run, payload, h->len, &err);
    else
        r = worker_start(c->watch.fd, payload, h->len, c->in.data + used, c->in.len - used, &err);
    if (r == 0)
        return -EPIPE; /* ours is to be closed */
    r = frame_error(&c->out, &err);
    peer_finish(c);
    return r;
}

/* ---- frames on an attached connection: carried out, never answered ---- */

static int attached_frame(struct peer *c, const struct wire_header *h, char *payload)
{
    struct proc *p = c->viewer.proc;
    if (h->type == WIRE_INPUT || h->type == WIRE_STDIN_EOF) {
        bool eof = h->type == WIRE_STDIN_EOF;
        feed(c, p, payload, eof ? 0 : h->len, eof);
        return 0;
    }
    if (h->type != WIRE_SIGNAL && h->type != WIRE_RESIZE)
        return -EPROTO;
    struct call call = { 0 };
    int r = call_decode(h, payload, &call, NULL);
    if (r < 0 || (call_has(&call, WIRE_T_PROC) && call.proc != p->number))
        return -EPROTO;
    if (call.type == WIRE_SIGNAL)
        (void)proc_signal(p, (int)call.signo, (enum wire_scope)call.scope, NULL);
    else
        (void)proc_resize(p, (unsigned)call.rows, (unsigned)call.cols, NULL);
    return 0;
}

int ops_frame(struct peer *c, const struct wire_header *h, char *payload)
{
    if (c->state == PEER_ATTACHED)
        return attached_frame(c, h, payload);
    if (c->state == PEER_PARKING || h->type == WIRE_PARK)
        return park_frame(c, h, payload);
    bool slow = h->type == WIRE_FILE || h->type == WIRE_PROBE || h->type == WIRE_WHO ||
                h->type == WIRE_PORTS;
    return slow ? worker_frame(c, h, payload) : request_frame(c, h, payload);
}

/* ---- what there is to say ---- */

/* The next piece of output. 0: nothing now; 1: something was put. */
static int gather_output(struct peer *c, const struct proc *p)
{
    const struct ring *ring = &p->drain.ring;
    uint64_t at = c->viewer.cursor;
    if (at < ring->head) {
        int r = frame_dropped(&c->out, at, ring->head - at);
        c->viewer.cursor = ring->head;
        return r < 0 ? r : 1;
    }
    if (at >= ring->tail || at >= c->end_offset)
        return 0;
    struct iovec iov[2];
    unsigned stream;
    size_t n;
    int pieces = ring_peek(ring, at, WIRE_DATA_MAX, iov, &stream, &n);
    int r = frame_output(&c->out, stream, at, n);
    if (r < 0)
        return r;
    if (n > COPY_MAX) {
        c->output_left = n;
        return 1;
    }
    for (int i = 0; i < pieces; i++) {
        r = buf_append(&c->out, iov[i].iov_base, iov[i].iov_len);
        if (r < 0)
            return r;
    }
    c->viewer.cursor += n;
    viewer_moved(&c->viewer);
    return 1;
}

static int gather_failure(struct peer *c, const struct proc *p)
{
    struct err err = ERR_INIT;
    (void)launch_explain(p->report, p->args, p->cwd, &err);
    viewer_remove(&c->viewer);
    peer_finish(c);
    return frame_error(&c->out, &err);
}

static int gather_view(struct peer *c)
{
    const struct proc *p = c->viewer.proc;
    int r;
    if (p->phase == PROC_FAILED)
        return gather_failure(c, p);
    if (p->phase == PROC_STARTING)
        return 0;
    if (!c->said_started) {
        r = frame_proc(&c->out, WIRE_STARTED, p, false);
        if (r < 0)
            return r;
        c->said_started = true;
    }
    if (p->phase == PROC_ENDED && c->end_offset == UINT64_MAX)
        c->end_offset = p->final_offset;
    while (c->viewer.output && c->output_left == 0 && c->out.len < GATHER_BYTES) {
        r = gather_output(c, p);
        if (r < 0)
            return r;
        if (r == 0)
            break;
    }
    if (c->end_offset == UINT64_MAX || c->output_left > 0 ||
        (c->viewer.output && c->viewer.cursor < c->end_offset))
        return 0;
    r = frame_proc(&c->out, WIRE_EXITED, p, false);
    viewer_remove(&c->viewer);
    peer_finish(c);
    return r;
}

static int gather_list(struct peer *c)
{
    int r = 0;
    struct proc *p;
    while (c->out.len < GATHER_BYTES && (p = proc_after(c->listing.after))) {
        c->listing.after = p->number;
        r = frame_proc(&c->out, WIRE_PROCESS, p, true);
        if (r < 0)
            return r;
    }
    if (c->out.len >= GATHER_BYTES)
        return 0;
    if (c->listing.all && !c->listing.pids) {
        r = ps_all(&c->listing.pids, &c->listing.n);
        if (r < 0)
            return r;
    }
    while (c->out.len < GATHER_BYTES && c->listing.at < c->listing.n) {
        int pid = c->listing.pids[c->listing.at++];
        r = proc_has_pid(pid) || worker_is(pid) ? 0 : frame_stranger(&c->out, pid);
        if (r < 0)
            return r;
    }
    if (c->listing.at < c->listing.n)
        return 0;
    peer_finish(c);
    return frame_empty(&c->out, WIRE_OK);
}

int ops_gather(struct peer *c)
{
    if (c->output_left > 0 || c->out.len >= GATHER_BYTES)
        return 0;
    switch (c->state) {
    case PEER_ATTACHED: return gather_view(c);
    case PEER_LISTING: return gather_list(c);
    case PEER_REQUEST:
    case PEER_FEEDING:
    case PEER_SWEEPING:
    case PEER_PARKING:
    case PEER_CLOSING:
    case PEER_CLOSED: break;
    }
    return 0;
}

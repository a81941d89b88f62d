#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "front/native/native.h"

#define LATE_MS 30000 /* added to a command's time limit, for an init on a busy machine */

/* A command that was waited for: what it printed, and how it ended. */
struct outcome {
    struct buf out, err;
    bool truncated;
    struct process ended;
};

static void outcome_done(struct outcome *o)
{
    buf_done(&o->out);
    buf_done(&o->err);
    process_done(&o->ended);
}

static int keep(struct outcome *o, struct buf *b, const char *p, size_t n)
{
    size_t room = b->max - b->len;
    if (n > room)
        o->truncated = true;
    return buf_append(b, p, n < room ? n : room);
}

/* The sandbox's init ends a command after its time limit; limit_ms (-1: none) is for an init
 * that does not. */
static int collect(struct request *req, struct process_stream *stream, int64_t limit_ms,
                   struct outcome *o, struct err *err)
{
    int64_t deadline = limit_ms < 0 ? -1 : clock_mono_ms() + limit_ms;
    struct process_event ev;
    for (;;) {
        int64_t left = deadline < 0 ? -1 : deadline - clock_mono_ms();
        int wait_ms = deadline < 0 ? -1 : left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
        int r = process_next(stream, wait_ms, req->fd, &ev, err);
        if (r == -ETIMEDOUT)
            return err_fail_as(err, ETIMEDOUT, FAIL_SANDBOX_BUSY,
                               "the sandbox did not report the end of the command in time");
        if (r < 0)
            return r;
        switch (ev.type) {
        case PROCESS_OUTPUT:
            r = keep(o, ev.stream == WIRE_STDERR ? &o->err : &o->out, ev.data, ev.len);
            if (r < 0)
                return err_set(err, -r, "cannot keep the command's output");
            break;
        case PROCESS_DROPPED: o->truncated = true; break;
        case PROCESS_ENDED: o->ended = ev.ended; return 0;
        }
    }
}

static void put_output(struct jout *j, const char *key, const char *key_b64, const struct buf *b)
{
    if (text_valid(b->data, b->len))
        jout_strn(j, key, b->data ? b->data : "", b->len);
    else
        jout_b64(j, key_b64, b->data, b->len);
}

static int reply_outcome(struct request *req, const struct outcome *o,
                         const struct process *started)
{
    /* Six bytes for one is the worst that escaping does. */
    _cleanup_(buf_done) struct buf b = BUF_INIT((o->out.len + o->err.len) * 6 + 4096);
    struct jout j = JOUT_INIT(&b);
    const struct process *p = &o->ended;

    jout_open(&j, NULL, '{');
    jout_int(&j, "exit_code", p->exit_code);
    jout_str(&j, "signal", p->exit_signal ? process_signal_name(p->exit_signal) : NULL);
    jout_str(&j, "reason", process_reason_name(p->reason));
    put_output(&j, "stdout", "stdout_b64", &o->out);
    put_output(&j, "stderr", "stderr_b64", &o->err);
    jout_bool(&j, "truncated", o->truncated);
    jout_int(&j, "duration_ms", p->ended_ms > p->started_ms ? p->ended_ms - p->started_ms : 0);
    jout_uint(&j, "process", started->proc);
    jout_int(&j, "pid", started->pid);
    jout_uint(&j, "cpu_us", p->cpu_us);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int native_exec(struct request *req, struct err *err)
{
    _cleanup_(native_command_done) struct native_command cmd = { 0 };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    _cleanup_(process_done) struct process started = { 0 };

    int r = native_command_read(req, true, &cmd, err);
    if (r < 0)
        return r;
    cmd.spec.together = !cmd.stdin_text; /* which is fed once it has started */
    r = native_enter(req, &visit, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    r = process_start(req->core, &visit.s, &cmd.spec, &stream, &started, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    if (request_accepts(req, "application/x-ndjson"))
        return native_stream(req, &visit, take_ptr(stream), &started, take_ptr(cmd.stdin_text),
                             UINT64_MAX, err);

    _cleanup_(outcome_done) struct outcome o = { .out = BUF_INIT(cmd.output_limit),
                                                 .err = BUF_INIT(cmd.output_limit) };
    if (cmd.stdin_text)
        process_feed_all(stream, cmd.stdin_text, strlen(cmd.stdin_text));
    r = collect(req, stream, cmd.spec.timeout_ms ? cmd.spec.timeout_ms + LATE_MS : -1, &o, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    return reply_outcome(req, &o, &started);
}

/* A process's events as a stream of ProcessEvent, for Start and Connect. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "front/e2b/process.h"

struct watcher {
    struct envd envd;
    struct process_stream *stream;
    uint32_t pid;
    int fd, keepalive_ms;
    int64_t deadline_ms; /* monotonic; 0: none */
    bool json, announced, ended;
};

static void watcher_free(void *arg)
{
    struct watcher *w = arg;
    process_stream_free(w->stream);
    envd_leave(&w->envd);
    free(w);
}

/* StartResponse and ConnectResponse are the same on the wire. */
static int put(struct watcher *w, struct buf *out, Process__ProcessEvent *event)
{
    Process__StartResponse m = PROCESS__START_RESPONSE__INIT;
    m.event = event;
    return connect_put(out, w->json, &m.base);
}

static int put_start(struct watcher *w, struct buf *out)
{
    Process__ProcessEvent event = PROCESS__PROCESS_EVENT__INIT;
    Process__ProcessEvent__StartEvent start = PROCESS__PROCESS_EVENT__START_EVENT__INIT;
    start.pid = w->pid;
    event.event_case = PROCESS__PROCESS_EVENT__EVENT_START;
    event.start = &start;
    return put(w, out, &event);
}

static int put_keepalive(struct watcher *w, struct buf *out)
{
    Process__ProcessEvent event = PROCESS__PROCESS_EVENT__INIT;
    Process__ProcessEvent__KeepAlive alive = PROCESS__PROCESS_EVENT__KEEP_ALIVE__INIT;
    event.event_case = PROCESS__PROCESS_EVENT__EVENT_KEEPALIVE;
    event.keepalive = &alive;
    return put(w, out, &event);
}

static int put_output(struct watcher *w, struct buf *out, const struct process_event *ev)
{
    Process__ProcessEvent event = PROCESS__PROCESS_EVENT__INIT;
    Process__ProcessEvent__DataEvent data;
    ProtobufCBinaryData bytes = { ev->len, (uint8_t *)(uintptr_t)ev->data };
    process__process_event__data_event__init(&data);
    switch (ev->stream) {
    case WIRE_STDOUT:
        data.output_case = PROCESS__PROCESS_EVENT__DATA_EVENT__OUTPUT_STDOUT;
        data.stdout = bytes;
        break;
    case WIRE_STDERR:
        data.output_case = PROCESS__PROCESS_EVENT__DATA_EVENT__OUTPUT_STDERR;
        data.stderr = bytes;
        break;
    case WIRE_PTY:
        data.output_case = PROCESS__PROCESS_EVENT__DATA_EVENT__OUTPUT_PTY;
        data.pty = bytes;
        break;
    }
    event.event_case = PROCESS__PROCESS_EVENT__EVENT_DATA;
    event.data = &data;
    return put(w, out, &event);
}

static int put_end(struct watcher *w, struct buf *out, const struct process *p)
{
    if (p->reason == WIRE_TIMEOUT)
        return connect_put_end(out, RPC_DEADLINE_EXCEEDED,
                               "the command was ended: its timeout has passed");
    Process__ProcessEvent event = PROCESS__PROCESS_EVENT__INIT;
    Process__ProcessEvent__EndEvent end = PROCESS__PROCESS_EVENT__END_EVENT__INIT;
    char status[PROCESS_STATUS_MAX];
    end.exited = p->exit_signal == 0;
    end.exit_code = p->exit_signal ? -1 : p->exit_code;
    end.status = (char *)(uintptr_t)process_status_text(p, status); /* SDKs show it to people */
    if (end.exit_code != 0) {
        end.has_error_case = PROCESS__PROCESS_EVENT__END_EVENT__HAS_ERROR_ERROR;
        end.error = status;
    }
    event.event_case = PROCESS__PROCESS_EVENT__EVENT_END;
    event.end = &end;
    int r = put(w, out, &event);
    return r < 0 ? r : connect_put_end(out, RPC_OK, NULL);
}

static int next(void *arg, struct buf *out)
{
    struct watcher *w = arg;
    struct process_event ev;
    struct err err = ERR_INIT;
    int r;

    if (w->ended)
        return 0;
    if (!w->announced) {
        w->announced = true;
        r = put_start(w, out);
        return r < 0 ? r : 1;
    }
    int wait_ms = w->keepalive_ms;
    int64_t left_ms = w->deadline_ms ? w->deadline_ms - clock_mono_ms() : wait_ms;
    if (left_ms <= 0) {
        w->ended = true;
        r = connect_put_end(out, RPC_DEADLINE_EXCEEDED, "the time of this stream has passed");
        return r < 0 ? r : 1;
    }
    bool last = left_ms < wait_ms;
    r = process_next(w->stream, last ? (int)left_ms : wait_ms, w->fd, &ev, &err);
    if (r == -ETIMEDOUT && last)
        return 1; /* the next look finds the deadline passed */
    if (r == -ETIMEDOUT) {
        r = put_keepalive(w, out);
        return r < 0 ? r : 1;
    }
    if (r < 0)
        return r; /* the sandbox died: the connection is cut, which its clients look into */
    switch (ev.type) {
    case PROCESS_OUTPUT: r = put_output(w, out, &ev); break;
    case PROCESS_DROPPED: r = 0; break;
    case PROCESS_ENDED:
        r = put_end(w, out, &ev.ended);
        process_done(&ev.ended);
        w->ended = true;
        break;
    }
    return r < 0 ? r : 1;
}

int envd_stream_process(struct connect_call *call, struct envd *envd, struct process_stream *stream,
                        const struct process *p, int64_t timeout_ms)
{
    static const struct reply_source source = { next, watcher_free };
    struct watcher *w = calloc(1, sizeof(*w));
    if (!w) {
        process_stream_free(stream);
        return -ENOMEM;
    }
    *w = (struct watcher){ .envd = *envd,
                           .stream = stream,
                           .pid = (uint32_t)p->pid,
                           .fd = call->req->fd,
                           .keepalive_ms = envd_keepalive_ms(call->req),
                           .deadline_ms = timeout_ms ? clock_mono_ms() + timeout_ms : 0,
                           .json = call->json };
    *envd = (struct envd){ 0 };
    return reply_stream(call->req, connect_stream_type(call->json), &source, w);
}

#include <errno.h>
#include <string.h>

#include "front/native/native.h"

#define PING_MS 15000 /* of silence */

/* A process's events, as lines, for as long as the client stays. */
struct lines {
    struct native_visit visit;
    struct process_stream *stream;
    char *stdin_text; /* kept for the stream */
    uint64_t proc;
    int64_t pid;
    uint64_t until;
    int fd;
    bool announced, ended;
};

static void lines_free(void *arg)
{
    struct lines *l = arg;
    process_stream_free(l->stream);
    native_leave(&l->visit);
    free(l->stdin_text);
    free(l);
}

static void put_start(struct jout *j, const struct lines *l)
{
    jout_str(j, "type", "start");
    jout_uint(j, "process", l->proc);
    jout_int(j, "pid", l->pid);
}

static void put_output(struct jout *j, const struct process_event *ev)
{
    jout_str(j, "type", ev->stream == WIRE_STDERR ? "stderr" : "stdout");
    jout_uint(j, "offset", ev->offset);
    if (text_valid(ev->data, ev->len))
        jout_strn(j, "data", ev->data, ev->len);
    else
        jout_b64(j, "data_b64", ev->data, ev->len);
}

static void put_exit(struct jout *j, const struct process *p)
{
    jout_str(j, "type", "exit");
    jout_int(j, "exit_code", p->exit_code);
    jout_str(j, "signal", p->exit_signal ? process_signal_name(p->exit_signal) : NULL);
    jout_str(j, "reason", process_reason_name(p->reason));
    jout_int(j, "duration_ms", p->ended_ms > p->started_ms ? p->ended_ms - p->started_ms : 0);
    jout_uint(j, "cpu_us", p->cpu_us);
}

static void put_event(struct lines *l, struct jout *j, struct process_event *ev)
{
    switch (ev->type) {
    case PROCESS_OUTPUT:
        put_output(j, ev);
        l->ended = ev->offset + ev->len >= l->until;
        break;
    case PROCESS_DROPPED:
        jout_str(j, "type", "dropped");
        jout_uint(j, "offset", ev->offset);
        jout_uint(j, "bytes", ev->len);
        l->ended = ev->offset + ev->len >= l->until;
        break;
    case PROCESS_ENDED:
        put_exit(j, &ev->ended);
        process_done(&ev->ended);
        l->ended = true;
        break;
    }
}

static void put_failure(const struct lines *l, struct jout *j, struct err *err)
{
    const struct sandbox *visited = &l->visit.s;
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    bool gone = native_sandbox_fate(l->visit.core, visited->owner, visited->id, &s, err);
    jout_str(j, "type", "error");
    jout_str(j, "code", failure_name(err->failure));
    jout_str(j, "message", err->msg);
    if (gone)
        native_put_gone(j, &s);
}

static int lines_next(void *arg, struct buf *out)
{
    struct lines *l = arg;
    struct jout j = JOUT_INIT(out);
    struct process_event ev;
    struct err err = ERR_INIT;
    int r = 0;

    if (l->ended)
        return 0;
    if (l->announced)
        r = process_next(l->stream, PING_MS, l->fd, &ev, &err);
    if (r == -ECANCELED)
        return r;
    jout_open(&j, NULL, '{');
    if (!l->announced) {
        put_start(&j, l);
        l->announced = true;
        l->ended = l->until == 0;
    } else if (r > 0) {
        put_event(l, &j, &ev);
    } else if (r == -ETIMEDOUT) {
        jout_str(&j, "type", "ping");
    } else {
        put_failure(l, &j, &err);
        l->ended = true;
    }
    jout_close(&j, '}');
    r = jout_done(&j);
    if (r >= 0)
        r = buf_append(out, "\n", 1);
    return r < 0 ? r : 1;
}

int native_stream(struct request *req, struct native_visit *visit, struct process_stream *stream,
                  const struct process *p, char *stdin_text, uint64_t until, struct err *err)
{
    static const struct reply_source source = { lines_next, lines_free };
    struct lines *l = calloc(1, sizeof(*l));
    if (!l) {
        process_stream_free(stream);
        native_leave(visit);
        free(stdin_text);
        return err_set(err, ENOMEM, "cannot allocate a stream");
    }
    *l = (struct lines){ .visit = *visit,
                         .stream = stream,
                         .stdin_text = stdin_text,
                         .proc = p->proc,
                         .pid = p->pid,
                         .until = until,
                         .fd = req->fd };
    *visit = (struct native_visit){ 0 };
    if (stdin_text)
        process_feed_all(stream, stdin_text, strlen(stdin_text));
    return reply_stream(req, "application/x-ndjson", &source, l);
}

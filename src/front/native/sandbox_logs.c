/* What everything that was started through the API in one sandbox printed, and what happened to the
 * sandbox: first what there is, each process where it began, then what comes, as it comes. Output
 * carries no times of its own, so of what is replayed only the order of the beginnings is known. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/event.h"
#include "front/native/native.h"

#define STREAMS_MAX 256 /* followed at once */
#define LOOK_MS 250     /* how often to look for new processes and events */
#define PING_MS 15000   /* of silence */
#define EVENT_BATCH 100

struct source {
    uint64_t proc;
    struct process_stream *stream;
    uint64_t until; /* replayed so far as this offset; UINT64_MAX: to its end */
};

struct tail {
    struct core *core;
    struct native_visit visit; /* visit.core NULL: not inside, it does not run */
    char owner[OWNER_MAX], id[ID_SIZE];
    int fd;
    bool follow, ended, gone;
    int64_t since_ms, last_look_ms, quiet_since_ms;
    struct process *ps; /* not attached yet, in the order they were started */
    size_t nps, at_ps;
    uint64_t newest; /* of those that were listed */
    struct event_list events;
    size_t at_event;
    bool no_more_events; /* for now */
    struct source now;   /* being replayed; proc 0: none */
    struct source live[STREAMS_MAX];
    size_t nlive;
};

static void drop_streams(struct tail *t)
{
    process_stream_free(t->now.stream);
    t->now = (struct source){ 0 };
    for (size_t i = 0; i < t->nlive; i++)
        process_stream_free(t->live[i].stream);
    t->nlive = 0;
    process_list_free(t->ps, t->nps);
    t->ps = NULL;
    t->nps = t->at_ps = 0;
    native_leave(&t->visit);
}

static void tail_free(void *arg)
{
    struct tail *t = arg;
    drop_streams(t);
    event_list_done(&t->events);
    free(t);
}

/* ---- lines ---- */

static void put_head(struct jout *j, const char *type, int64_t time_ms, uint64_t proc)
{
    jout_open(j, NULL, '{');
    jout_str(j, "type", type);
    jout_time(j, "time", time_ms);
    if (proc)
        jout_uint(j, "process", proc);
    else
        jout_null(j, "process");
}

static int end_line(struct jout *j, struct buf *out)
{
    jout_close(j, '}');
    int r = jout_done(j);
    return r < 0 ? r : buf_append(out, "\n", 1);
}

static int put_output(struct buf *out, uint64_t proc, const struct process_event *ev, int64_t now)
{
    struct jout j = JOUT_INIT(out);
    put_head(&j, ev->stream == WIRE_STDERR ? "stderr" : "stdout", now, proc);
    jout_uint(&j, "offset", ev->offset);
    if (text_valid(ev->data, ev->len))
        jout_strn(&j, "text", ev->data, ev->len);
    else
        jout_b64(&j, "text_b64", ev->data, ev->len);
    return end_line(&j, out);
}

static int put_happened(struct buf *out, const char *event, int64_t time_ms, uint64_t proc,
                        const char *text, const char *data)
{
    struct jout j = JOUT_INIT(out);
    put_head(&j, "event", time_ms, proc);
    jout_str(&j, "event", event);
    jout_str(&j, "text", text);
    jout_raw(&j, "data", data && data[0] ? data : "{}");
    return end_line(&j, out);
}

static int put_started(struct buf *out, const struct process *p)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(4096);
    for (char **a = p->argv; a && *a; a++)
        if (buf_printf(&text, "%s%s", a == p->argv ? "" : " ", *a) < 0)
            break;
    return put_happened(out, "process.started", p->started_ms, p->proc, text.data ? text.data : "",
                        NULL);
}

static int put_ended(struct buf *out, uint64_t proc, const struct process *p)
{
    char text[128], data[128];
    const char *signal = p->exit_signal ? process_signal_name(p->exit_signal) : NULL;
    (void)snprintf(text, sizeof(text), "ended with %d%s%s", p->exit_code, signal ? ", " : "",
                   signal ? signal : "");
    (void)snprintf(data, sizeof(data), "{\"exit_code\":%d,\"reason\":\"%s\"}", p->exit_code,
                   process_reason_name(p->reason));
    return put_happened(out, "process.ended", p->ended_ms, proc, text, data);
}

static int put_dropped(struct buf *out, uint64_t proc, const struct process_event *ev)
{
    char text[64], data[64];
    (void)snprintf(text, sizeof(text), "%zu bytes were not kept", ev->len);
    (void)snprintf(data, sizeof(data), "{\"bytes\":%zu}", ev->len);
    return put_happened(out, "output.dropped", 0, proc, text, data);
}

/* ---- what there is ---- */

static int compare(const void *a, const void *b)
{
    const struct process *x = a, *y = b;
    return x->proc < y->proc ? -1 : x->proc > y->proc;
}

/* Those that were not seen yet. Not being able to look is no failure: it may be stopped. */
static void list_new(struct tail *t)
{
    struct process *ps = NULL;
    size_t n = 0, kept = 0;
    if (!t->visit.core) {
        if (sandbox_enter_awake(t->core, t->owner, t->id, &t->visit.s, NULL) < 0)
            return;
        t->visit.core = t->core;
        t->newest = 0; /* numbers begin anew with each start */
    }
    if (process_list(t->core, &t->visit.s, false, &ps, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        bool old = ps[i].proc <= t->newest || (ps[i].ended && ps[i].ended_ms < t->since_ms);
        if (old)
            process_done(&ps[i]);
        else
            ps[kept++] = ps[i];
    }
    if (kept > 1)
        qsort(ps, kept, sizeof(*ps), compare);
    process_list_free(t->ps, t->nps);
    t->ps = ps;
    t->nps = kept;
    t->at_ps = 0;
    if (kept)
        t->newest = ps[kept - 1].proc;
}

static void read_events(struct tail *t)
{
    struct event_list more = { 0 };
    if (t->at_event < t->events.n)
        return;
    int64_t since = t->events.next;
    if (event_read(t->core, t->owner, t->id, since, EVENT_BATCH, 0, &more, NULL) < 0)
        return;
    event_list_done(&t->events);
    t->events = more;
    t->at_event = 0;
    t->no_more_events = more.n == 0;
}

static bool skipped(const struct tail *t, const struct event *e)
{
    /* Of processes we tell ourselves, also of those that an exec started. */
    return e->time_ms < t->since_ms || strncmp(e->type, "process.", 8) == 0;
}

static const struct event *next_event(struct tail *t)
{
    for (;;) {
        while (t->at_event < t->events.n && skipped(t, &t->events.items[t->at_event]))
            t->at_event++;
        if (t->at_event < t->events.n)
            return &t->events.items[t->at_event];
        if (t->no_more_events)
            return NULL;
        read_events(t);
    }
}

static int put_feed_event(struct tail *t, const struct event *e, struct buf *out)
{
    t->at_event++;
    t->gone |= strcmp(e->type, "sandbox.deleted") == 0;
    return put_happened(out, e->type, e->time_ms, 0, e->type, e->data);
}

static int begin_process(struct tail *t, struct buf *out)
{
    const struct process *p = &t->ps[t->at_ps++];
    struct process state = { 0 };
    struct source s = { .proc = p->proc };
    int r = put_started(out, p);
    if (r < 0)
        return r;
    if (process_attach(t->core, &t->visit.s, p->proc, 0, false, &s.stream, &state, NULL) < 0)
        return 1; /* it was forgotten, or the sandbox ended: the events tell */
    s.until = state.ended ? UINT64_MAX : state.output_bytes;
    process_done(&state);
    t->now = s;
    return 1;
}

/* The one being replayed has told what it had. */
static void end_replay(struct tail *t, bool ended)
{
    if (!ended && t->follow && t->nlive < STREAMS_MAX)
        t->live[t->nlive++] = t->now;
    else
        process_stream_free(t->now.stream);
    t->now = (struct source){ 0 };
}

/* One event of a stream; *ret_ended: it was the last one. */
static int put_stream_event(uint64_t proc, struct process_event *ev, int64_t now, struct buf *out,
                            bool *ret_ended)
{
    int r = 0;
    switch (ev->type) {
    case PROCESS_OUTPUT: r = put_output(out, proc, ev, now); break;
    case PROCESS_DROPPED: r = put_dropped(out, proc, ev); break;
    case PROCESS_ENDED:
        r = put_ended(out, proc, &ev->ended);
        process_done(&ev->ended);
        *ret_ended = true;
        break;
    }
    return r;
}

static int replay(struct tail *t, struct buf *out)
{
    struct process_event ev;
    bool ended = false;
    if (t->now.until == 0) {
        end_replay(t, false);
        return 1;
    }
    int r = process_next(t->now.stream, LOOK_MS, t->fd, &ev, NULL);
    if (r == -ECANCELED)
        return r;
    if (r < 0) { /* what was promised does not come: go on with the others */
        end_replay(t, r != -ETIMEDOUT);
        return 1;
    }
    uint64_t reached = ev.type == PROCESS_ENDED ? 0 : ev.offset + ev.len;
    r = put_stream_event(t->now.proc, &ev, 0, out, &ended);
    if (ended || reached >= t->now.until)
        end_replay(t, ended);
    return r < 0 ? r : 1;
}

/* 1: something was told or done; 0: there is nothing more for now. */
static int past(struct tail *t, struct buf *out)
{
    if (t->now.stream)
        return replay(t, out);
    const struct event *e = next_event(t);
    const struct process *p = t->at_ps < t->nps ? &t->ps[t->at_ps] : NULL;
    if (e && (!p || e->time_ms <= p->started_ms)) {
        int r = put_feed_event(t, e, out);
        return r < 0 ? r : 1;
    }
    return p ? begin_process(t, out) : 0;
}

/* ---- what comes ---- */

static int wait_live(struct tail *t, struct pollfd *fds)
{
    for (size_t i = 0; i < t->nlive; i++)
        fds[i] = (struct pollfd){ process_stream_fd(t->live[i].stream), POLLIN, 0 };
    fds[t->nlive] = (struct pollfd){ t->fd, POLLRDHUP, 0 };
    (void)poll(fds, t->nlive + 1, LOOK_MS);
    return fds[t->nlive].revents ? -ECANCELED : 0;
}

static int read_live(struct tail *t, const struct pollfd *fds, struct buf *out)
{
    int64_t now = clock_now_ms();
    int told = 0;
    for (size_t i = t->nlive; i-- > 0;) { /* from the end: one that ends takes the last's place */
        struct process_event ev;
        bool ended = false;
        if (!fds[i].revents)
            continue;
        int r = process_next(t->live[i].stream, 0, -1, &ev, NULL);
        if (r > 0)
            r = put_stream_event(t->live[i].proc, &ev, now, out, &ended);
        else
            ended = r != -ETIMEDOUT;
        if (ended) {
            process_stream_free(t->live[i].stream);
            t->live[i] = t->live[--t->nlive];
        }
        if (r < 0 && r != -ETIMEDOUT && !ended)
            return r;
        told = 1;
        if (out->len > 0)
            break; /* a frame may be large: one line at a time */
    }
    return told;
}

static int present(struct tail *t, struct buf *out)
{
    struct pollfd fds[STREAMS_MAX + 1];
    int r = wait_live(t, fds);
    if (r >= 0)
        r = read_live(t, fds, out);
    if (r < 0)
        return r;
    int64_t now = clock_mono_ms();
    if (now - t->last_look_ms >= LOOK_MS && t->at_ps == t->nps) {
        struct sandbox s = { 0 };
        t->last_look_ms = now;
        t->no_more_events = false;
        /* A stopped one's streams are dead; entering again after a start finds new ones. */
        bool runs = sandbox_get(t->core, t->owner, t->id, &s, NULL) >= 0 &&
                    s.state == SANDBOX_RUNNING && s.started_ms == t->visit.s.started_ms;
        sandbox_done(&s);
        if (t->visit.core && !runs)
            drop_streams(t);
        list_new(t);
    }
    if (out->len == 0 && now - t->quiet_since_ms >= PING_MS)
        return buf_puts(out, "{\"type\":\"ping\"}\n");
    return 0;
}

static int tail_next(void *arg, struct buf *out)
{
    struct tail *t = arg;
    while (!t->ended) {
        int r = past(t, out);
        if (r == 0 && (!t->follow || t->gone))
            t->ended = true;
        else if (r == 0)
            r = present(t, out);
        if (r < 0)
            return r;
        if (out->len > 0) {
            t->quiet_since_ms = clock_mono_ms();
            return 1;
        }
    }
    return 0;
}

int native_sandbox_logs(struct request *req, struct err *err)
{
    static const char *const known[] = { "since", "follow", NULL };
    static const struct reply_source source = { tail_next, tail_free };
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct tail *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(err, ENOMEM, "cannot allocate a feed");
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = native_param_time(req, "since", &t->since_ms, err);
    if (r >= 0)
        r = request_param_bool(req, "follow", &t->follow, err);
    if (r >= 0)
        r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r < 0) {
        free(t);
        return native_sandbox_error(req, r, err);
    }
    t->core = req->core;
    t->fd = req->fd;
    t->quiet_since_ms = clock_mono_ms();
    memcpy(t->owner, req->owner, sizeof(t->owner));
    memcpy(t->id, s.id, sizeof(t->id));
    list_new(t);
    return reply_stream(req, "application/x-ndjson", &source, t);
}

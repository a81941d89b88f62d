/* The log of a sandbox: what happened to it, the commands in it, and the end of what each printed.
 *
 * It is put together when it is asked for, out of the change feed and of what init keeps. Output
 * carries no times of its own: a line has the time at which its command began. */
#include <errno.h>
#include <string.h>

#include "core/event.h"
#include "core/process.h"
#include "front/e2b/e2b.h"

#define LINES_MAX 10000 /* put together at most */
#define EVENTS_PAGE 500
#define PROCESSES_MAX 100       /* whose output is looked at: the newest */
#define OUTPUT_MAX (32u * 1024) /* of each: the end of it */
#define OUTPUT_WAIT_MS 1000     /* what init has, it tells at once */
#define LIMIT_MAX 1000
#define LINE_MAX 4096

enum level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR };
static const char *const level_names[] = { "debug", "info", "warn", "error" };

struct line {
    int64_t time_ms;
    size_t seq; /* the order in which they were found */
    enum level level;
    int64_t pid;        /* 0: about the sandbox */
    const char *source; /* stdout, stderr, process, sandbox */
    char *text;
};

struct log {
    struct line *lines;
    size_t n, room;
};

static void log_done(struct log *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->lines[i].text);
    free(l->lines);
}

static int add(struct log *l, struct line line, const char *text, size_t n)
{
    if (l->n == LINES_MAX)
        return 0;
    if (l->n == l->room) {
        size_t room = l->room ? l->room * 2 : 64;
        struct line *lines = reallocarray(l->lines, room, sizeof(*lines));
        if (!lines)
            return -ENOMEM;
        l->lines = lines;
        l->room = room;
    }
    line.seq = l->n;
    line.text = strndup(text, n < LINE_MAX ? n : LINE_MAX);
    if (!line.text)
        return -ENOMEM;
    l->lines[l->n++] = line;
    return 0;
}

/* ---- what happened to the sandbox ---- */

static int add_events(struct request *req, const struct sandbox *s, struct log *l, struct err *err)
{
    int64_t since = 0;
    for (;;) {
        struct event_list found = { 0 };
        int r = event_read(req->core, s->owner, s->id, since, EVENTS_PAGE, 0, &found, err);
        for (size_t i = 0; r >= 0 && i < found.n; i++) {
            const struct event *e = &found.items[i];
            char text[512];
            if (strncmp(e->type, "process.", 8) == 0)
                continue; /* init knows more of those */
            int n = snprintf(text, sizeof(text), "%s %s", e->type, e->data ? e->data : "");
            r = add(
                l, (struct line){ .time_ms = e->time_ms, .level = LEVEL_INFO, .source = "sandbox" },
                text, n > 0 && (size_t)n < sizeof(text) ? (size_t)n : strlen(text));
        }
        bool last = found.n < EVENTS_PAGE;
        since = found.next;
        event_list_done(&found);
        if (r < 0 || last)
            return r < 0 ? r : 0;
    }
}

/* ---- commands ---- */

static int add_text(struct log *l, const struct process *p, bool is_err, const char *text, size_t n)
{
    int r = 0;
    struct line line = { .time_ms = p->started_ms,
                         .level = is_err ? LEVEL_WARN : LEVEL_INFO,
                         .pid = p->pid,
                         .source = is_err ? "stderr" : "stdout" };
    while (r >= 0 && n > 0) {
        const char *end = memchr(text, '\n', n);
        size_t len = end ? (size_t)(end - text) : n;
        if (len > 0)
            r = add(l, line, text, len);
        text += len + (end != NULL);
        n -= len + (end != NULL);
    }
    return r;
}

/* The end of what it printed, stream by stream, for a line may come in pieces. */
static int add_output(struct request *req, const struct sandbox *s, const struct process *p,
                      struct log *l)
{
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    _cleanup_(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX * 2);
    _cleanup_(buf_done) struct buf err_out = BUF_INIT(OUTPUT_MAX * 2);
    uint64_t since = p->output_bytes > OUTPUT_MAX ? p->output_bytes - OUTPUT_MAX : 0;
    struct process_event ev;
    if (p->output_bytes == 0 ||
        process_attach(req->core, s, p->proc, since, false, &stream, NULL, NULL) < 0)
        return 0;
    while (since < p->output_bytes &&
           process_next(stream, OUTPUT_WAIT_MS, req->fd, &ev, NULL) > 0) {
        if (ev.type == PROCESS_ENDED) {
            process_done(&ev.ended);
            break;
        }
        if (ev.type == PROCESS_OUTPUT) {
            since = ev.offset + ev.len;
            if (buf_append(ev.stream == WIRE_STDERR ? &err_out : &out, ev.data, ev.len) < 0)
                break;
        }
    }
    int r = add_text(l, p, false, out.data, out.len);
    return r < 0 ? r : add_text(l, p, true, err_out.data, err_out.len);
}

static int add_process(struct request *req, const struct sandbox *s, const struct process *p,
                       struct log *l)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(LINE_MAX);
    struct line line = {
        .time_ms = p->started_ms, .level = LEVEL_INFO, .pid = p->pid, .source = "process"
    };
    if (buf_puts(&text, "started:") < 0)
        return -ENOMEM;
    for (char **a = p->argv; a && *a; a++)
        if (buf_printf(&text, " %s", *a) < 0)
            break;
    int r = add(l, line, text.data, text.len);
    if (r >= 0)
        r = add_output(req, s, p, l);
    if (r < 0 || !p->ended)
        return r;
    char end[64];
    int n =
        snprintf(end, sizeof(end), "ended with %d%s%s", p->exit_code, p->exit_signal ? ", " : "",
                 p->exit_signal ? process_signal_name(p->exit_signal) : "");
    line.time_ms = p->ended_ms;
    line.level = p->exit_code ? LEVEL_WARN : LEVEL_INFO;
    return add(l, line, end, n > 0 && (size_t)n < sizeof(end) ? (size_t)n : strlen(end));
}

static int add_processes(struct request *req, const struct sandbox *known, struct log *l)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct process *ps = NULL;
    size_t n = 0;
    int r = 0;
    if (sandbox_enter_awake(req->core, known->owner, known->id, &s, NULL) < 0)
        return 0; /* it does not run: init has taken its memory with it */
    if (process_list(req->core, &s, false, &ps, &n, NULL) >= 0)
        for (size_t i = n > PROCESSES_MAX ? n - PROCESSES_MAX : 0; r >= 0 && i < n; i++)
            r = add_process(req, &s, &ps[i], l);
    process_list_free(ps, n);
    sandbox_leave(req->core, s.id);
    return r;
}

static int compare(const void *pa, const void *pb)
{
    const struct line *a = pa, *b = pb;
    if (a->time_ms != b->time_ms)
        return a->time_ms < b->time_ms ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static int gather(struct request *req, struct log *l, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r < 0 && !s.id[0]) /* one that has ended is remembered */
        return e2b_failed(err, r, req->args[0]);
    r = add_events(req, &s, l, err);
    if (r >= 0)
        r = add_processes(req, &s, l);
    if (r < 0)
        return err_set(err, -r, "cannot put the log together");
    if (l->n > 0)
        qsort(l->lines, l->n, sizeof(*l->lines), compare);
    return 0;
}

/* ---- answers ---- */

struct wish {
    bool backward;
    bool from_given;
    int64_t from_ms;
    uint64_t limit;
    enum level level;
    const char *search;
};

static bool is_wanted(const struct wish *w, const struct line *line)
{
    if (line->level < w->level || (w->search && !strstr(line->text, w->search)))
        return false;
    if (!w->from_given)
        return true;
    return w->backward ? line->time_ms <= w->from_ms : line->time_ms >= w->from_ms;
}

static void put_entry(struct jout *j, const struct line *line)
{
    char pid[24];
    jout_open(j, NULL, '{');
    jout_time(j, "timestamp", line->time_ms);
    jout_str(j, "level", level_names[line->level]);
    jout_str(j, "message", line->text);
    jout_open(j, "fields", '{');
    jout_str(j, "source", line->source);
    if (line->pid) {
        (void)snprintf(pid, sizeof(pid), "%lld", (long long)line->pid);
        jout_str(j, "pid", pid);
    }
    jout_close(j, '}');
    jout_close(j, '}');
}

/* A line is JSON itself, as text: E2B's command reads it again. */
static void put_plain(struct jout *j, const struct line *line)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(LINE_MAX * 8);
    struct jout inner = JOUT_INIT(&b);
    jout_open(&inner, NULL, '{');
    jout_str(&inner, "level", level_names[line->level]);
    jout_str(&inner, "logger", line->source);
    jout_str(&inner, "message", line->text);
    if (line->pid)
        jout_int(&inner, "pid", line->pid);
    jout_close(&inner, '}');
    int r = jout_done(&inner);
    jout_open(j, NULL, '{');
    jout_time(j, "timestamp", line->time_ms);
    jout_str(j, "line", r < 0 ? "{}" : b.data);
    jout_close(j, '}');
    if (r < 0 && j->r >= 0)
        j->r = r;
}

static void put_list(struct jout *j, const char *key, const struct log *l, const struct wish *w,
                     void (*put)(struct jout *j, const struct line *line))
{
    uint64_t told = 0;
    jout_open(j, key, '[');
    for (size_t i = 0; i < l->n && told < w->limit; i++) {
        const struct line *line = &l->lines[w->backward ? l->n - 1 - i : i];
        if (!is_wanted(w, line))
            continue;
        put(j, line);
        told++;
    }
    jout_close(j, ']');
}

static int read_level(const char *text, enum level *ret_level, struct err *err)
{
    for (size_t i = 0; text && i < ARRAY_LEN(level_names); i++)
        if (strcmp(text, level_names[i]) == 0) {
            *ret_level = (enum level)i;
            return 0;
        }
    return text ? err_fail(err, FAIL_INVALID_QUERY, "level must be debug, info, warn or error") : 0;
}

static int read_wish(struct request *req, const char *from, struct wish *w, struct err *err)
{
    const char *direction = uri_param(&req->uri, "direction");
    uint64_t from_ms = 0;
    *w = (struct wish){ .limit = LIMIT_MAX, .search = uri_param(&req->uri, "search") };
    if (direction && strcmp(direction, "backward") != 0 && strcmp(direction, "forward") != 0)
        return err_fail(err, FAIL_INVALID_QUERY, "direction must be forward or backward");
    w->backward = direction && strcmp(direction, "backward") == 0;
    int r = request_param_u64(req, from, 0, INT64_MAX, &from_ms, err);
    w->from_given = r > 0;
    w->from_ms = (int64_t)from_ms;
    if (r >= 0)
        r = request_param_u64(req, "limit", 0, LIMIT_MAX, &w->limit, err);
    return r < 0 ? r : read_level(uri_param(&req->uri, "level"), &w->level, err);
}

static int answer(struct request *req, bool old, struct err *err)
{
    _cleanup_(log_done) struct log l = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct wish w;
    int r = read_wish(req, old ? "start" : "cursor", &w, err);
    if (r >= 0)
        r = gather(req, &l, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    put_list(&j, "logs", &l, &w, old ? put_plain : put_entry);
    if (old)
        put_list(&j, "logEntries", &l, &w, put_entry);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int e2b_sandbox_logs(struct request *req, struct err *err)
{
    return answer(req, false, err);
}

int e2b_sandbox_logs_v1(struct request *req, struct err *err)
{
    return answer(req, true, err);
}

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "core/event.h"
#include "core/volume.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/page.h"

bool native_is_volume(const struct request *req)
{
    return req->uri.nsegments > 1 && strcmp(req->uri.segments[1], "volumes") == 0;
}

int native_enter(struct request *req, struct native_visit *ret_visit, struct err *err)
{
    int r = native_is_volume(req)
                ? volume_enter(req->core, req->owner, req->args[0], &ret_visit->s, err)
                : sandbox_enter(req->core, req->owner, req->args[0], &ret_visit->s, err);
    if (r >= 0)
        ret_visit->core = req->core;
    return r;
}

void native_leave(struct native_visit *visit)
{
    if (visit->core && visit->s.root)
        volume_leave(visit->core, &visit->s);
    else if (visit->core)
        sandbox_leave(visit->core, visit->s.id);
    visit->core = NULL;
    sandbox_done(&visit->s);
}

uint64_t native_path_number(const struct request *req, size_t i)
{
    const char *text = req->args[i];
    char *end = NULL;
    errno = 0;
    unsigned long long v = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    return !end || *end || errno ? 0 : v;
}

/* Enter, and read the {n} of the path. */
static int enter_process(struct request *req, struct native_visit *visit, uint64_t *ret_proc,
                         struct err *err)
{
    int r = native_enter(req, visit, err);
    if (r < 0)
        return r;
    uint64_t v = native_path_number(req, 1);
    if (v == 0)
        return err_fail(err, FAIL_PROCESS_NOT_FOUND, "sandbox '%s' has no process '%.32s'",
                        visit->s.id, req->args[1]);
    *ret_proc = v;
    return 0;
}

void native_put_process(struct jout *j, const char *key, const struct process *p)
{
    jout_open(j, key, '{');
    if (p->tracked)
        jout_uint(j, "process", p->proc);
    else
        jout_null(j, "process");
    jout_int(j, "pid", p->pid);
    jout_int(j, "ppid", p->ppid);
    jout_open(j, "argv", '[');
    for (char **a = p->argv; a && *a; a++)
        jout_str(j, NULL, *a);
    jout_close(j, ']');
    jout_str(j, "label", p->label);
    jout_str(j, "user", p->user);
    jout_str(j, "state", p->ended ? "ended" : "running");
    jout_time(j, "started_at", p->started_ms);
    jout_time(j, "ended_at", p->ended_ms);
    if (p->ended)
        jout_int(j, "exit_code", p->exit_code);
    else
        jout_null(j, "exit_code");
    jout_str(j, "signal", p->exit_signal ? process_signal_name(p->exit_signal) : NULL);
    jout_str(j, "reason", p->ended ? process_reason_name(p->reason) : NULL);
    jout_uint(j, "cpu_us", p->cpu_us);
    jout_uint(j, "rss_bytes", p->rss_bytes);
    jout_uint(j, "output_bytes", p->output_bytes);
    jout_bool(j, "pty", p->pty);
    jout_close(j, '}');
}

static int reply_process(struct request *req, unsigned status, const struct process *p)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    native_put_process(&j, NULL, p);
    return reply_json(req, status, &j);
}

/* An earlier try of this request started it, and the daemon died before it could say so. */
static int reply_made(struct request *req, struct err *err)
{
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(process_done) struct process p = { 0 };
    uint64_t proc = strtoull(req->made + strlen("process "), NULL, 10);
    int r = native_enter(req, &visit, err);
    if (r >= 0)
        r = process_get(req->core, &visit.s, proc, &p, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_process(req, 201, &p);
}

int native_process_start(struct request *req, struct err *err)
{
    _cleanup_(native_command_done) struct native_command cmd = { 0 };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    _cleanup_(process_done) struct process p = { 0 };

    bool streamed = request_accepts(req, "application/x-ndjson");

    if (req->made[0])
        return reply_made(req, err);
    int r = native_command_read(req, false, &cmd, err);
    if (r < 0)
        return r;
    cmd.spec.no_output = !streamed;
    r = native_enter(req, &visit, err);
    if (r >= 0)
        r = process_start(req->core, &visit.s, &cmd.spec, &stream, &p, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    char number[24];
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)p.proc);
    replay_note(req->core, "process", number);
    process_watch(req->core, &visit.s, &p, streamed ? NULL : take_ptr(stream));
    if (streamed)
        return native_stream(req, &visit, take_ptr(stream), &p, NULL, UINT64_MAX, err);
    return reply_process(req, 201, &p);
}

/* Those started through the API first, in the order they were started. */
static const char *process_place(const struct process *p, char out[32])
{
    (void)snprintf(out, 32, "%d-%020llu", !p->tracked,
                   (unsigned long long)(p->tracked ? p->proc : (uint64_t)p->pid));
    return out;
}

static int compare(const void *a, const void *b)
{
    char x[32], y[32];
    return strcmp(process_place(a, x), process_place(b, y));
}

int native_process_list(struct request *req, struct err *err)
{
    static const char *const known[] = { "all", "limit", "cursor", NULL };
    _cleanup_(page_done) struct page page = { 0 };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    struct process *ps = NULL;
    char place[32];
    size_t n = 0;
    bool all = false;

    int r = page_read(req, known, &page, err);
    if (r >= 0)
        r = request_param_bool(req, "all", &all, err);
    if (r >= 0)
        r = native_enter(req, &visit, err);
    if (r >= 0)
        r = process_list(req->core, &visit.s, all, &ps, &n, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    if (n > 1)
        qsort(ps, n, sizeof(*ps), compare);
    page_open(&page, "processes");
    for (size_t i = 0; i < n; i++)
        if (page_takes(&page, process_place(&ps[i], place)))
            native_put_process(&page.json, NULL, &ps[i]);
    process_list_free(ps, n);
    return page_reply(req, &page);
}

int native_process_get(struct request *req, struct err *err)
{
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(process_done) struct process p = { 0 };
    uint64_t proc = 0;

    int r = enter_process(req, &visit, &proc, err);
    if (r >= 0)
        r = process_get(req->core, &visit.s, proc, &p, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_process(req, 200, &p);
}

int native_process_output(struct request *req, struct err *err)
{
    static const char *const known[] = { "since", "follow", NULL };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(process_done) struct process p = { 0 };
    struct process_stream *stream = NULL;
    uint64_t proc = 0, since = 0;
    bool follow = false;

    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_u64(req, "since", 0, INT64_MAX, &since, err);
    if (r >= 0)
        r = request_param_bool(req, "follow", &follow, err);
    if (r >= 0)
        r = enter_process(req, &visit, &proc, err);
    if (r >= 0)
        r = process_attach(req->core, &visit.s, proc, since, false, &stream, &p, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    /* Of one that has ended everything comes at once, its exit too. */
    uint64_t until = follow || p.ended ? UINT64_MAX : since < p.output_bytes ? p.output_bytes : 0;
    return native_stream(req, &visit, stream, &p, NULL, until, err);
}

int native_process_wait(struct request *req, struct err *err)
{
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    _cleanup_(process_done) struct process started = { 0 };
    uint64_t proc = 0;

    int r = enter_process(req, &visit, &proc, err);
    if (r >= 0)
        r = process_attach(req->core, &visit.s, proc, 0, true, &stream, &started, err);
    while (r >= 0) {
        struct process_event ev;
        r = process_next(stream, -1, req->fd, &ev, err);
        if (r > 0 && ev.type == PROCESS_ENDED) {
            r = reply_process(req, 200, &ev.ended);
            process_done(&ev.ended);
            return r;
        }
    }
    return native_sandbox_error(req, r, err);
}

int native_process_stdin(struct request *req, struct err *err)
{
    static const char *const known[] = { "eof", NULL };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    uint64_t proc = 0;
    bool eof = false;

    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_bool(req, "eof", &eof, err);
    if (r >= 0)
        r = enter_process(req, &visit, &proc, err);
    if (r >= 0 && (req->body.len > 0 || !eof))
        r = process_write(req->core, &visit.s, proc, req->body.data, req->body.len, err);
    if (r >= 0 && eof)
        r = process_close_stdin(req->core, &visit.s, proc, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_empty(req);
}

/* ---- small requests with a small body ---- */

struct control {
    int signo;
    enum wire_scope scope;
    uint32_t rows, cols;
};

static int as_signal(const json_t *v, const struct field *f, void *at, struct err *err)
{
    char number[24] = "";
    const char *text = json_string_value(v);
    if (json_is_integer(v)) {
        int n = snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
        text = n > 0 && (size_t)n < sizeof(number) ? number : NULL;
    }
    if (!text || process_signal_parse(text, at) < 0)
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'%s' must be a signal's name, such as SIGTERM, or its number", f->name);
    return 0;
}

static const char *const scopes[] = {
    [WIRE_SCOPE_PROCESS] = "process", [WIRE_SCOPE_GROUP] = "group", [WIRE_SCOPE_TREE] = "tree", NULL
};

#define ROW(member_, name_, ...) FIELD(struct control, member_, name_, __VA_ARGS__)
static const struct field signal_fields[] = {
    ROW(signo, "signal", as_signal),
    ROW(scope, "scope", as_choice, .choices = scopes),
};
static const struct field resize_fields[] = {
    ROW(rows, "rows", as_u32, .min = 1, .max = 65535),
    ROW(cols, "cols", as_u32, .min = 1, .max = 65535),
};

static int read_control(struct request *req, const struct field *fields, size_t n,
                        uint32_t required, struct control *ret_c, struct err *err)
{
    uint32_t seen = 0;

    int r = request_fields(req, fields, n, ret_c, &seen, err);
    for (size_t i = 0; r >= 0 && i < n; i++)
        if (required & ~seen & UINT32_C(1) << i)
            r = err_fail(err, FAIL_MISSING_FIELD, "'%s' is needed", fields[i].name);
    return r;
}

int native_process_signal(struct request *req, struct err *err)
{
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    struct control c = { .scope = WIRE_SCOPE_PROCESS };
    uint64_t proc = 0;

    int r = read_control(req, signal_fields, ARRAY_LEN(signal_fields), 1, &c, err);
    if (r >= 0)
        r = enter_process(req, &visit, &proc, err);
    if (r >= 0)
        r = process_signal(req->core, &visit.s, proc, c.signo, c.scope, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_empty(req);
}

int native_process_resize(struct request *req, struct err *err)
{
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    struct control c = { 0 };
    uint64_t proc = 0;

    int r = read_control(req, resize_fields, ARRAY_LEN(resize_fields), 3, &c, err);
    if (r >= 0)
        r = enter_process(req, &visit, &proc, err);
    if (r >= 0)
        r = process_resize(req->core, &visit.s, proc, c.rows, c.cols, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_empty(req);
}

int native_process_kill(struct request *req, struct err *err)
{
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    uint64_t proc = 0;

    int r = enter_process(req, &visit, &proc, err);
    if (r >= 0)
        r = process_signal(req->core, &visit.s, proc, SIGKILL, WIRE_SCOPE_TREE, err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_empty(req);
}

#include "core/process.h"

#include <errno.h>
#include <string.h>

#include "core/autosave.h"
#include "core/grant.h"
#include "core/init_conn.h"
#include "core/process_decode.h"
#include "core/spec.h"
#include "core/trust.h"

#define WRITE_STALL_MS 30000 /* a process that leaves its stdin alone for this long */
#define TOGETHER_MS 10       /* a start that is told so much later is noticed by nobody */
#define WRITE_PIECE (WIRE_DATA_MAX - 256) /* the data and its fields stay within one frame */

struct process_stream {
    struct init_conn conn;
    struct core *core;
    char sandbox[ID_SIZE];
    bool ended;
};

void process_spec_done(struct process_spec *spec)
{
    for (char **a = spec->argv; a && *a; a++)
        free(*a);
    free(spec->argv);
    pairs_done(&spec->env);
    free(spec->cwd);
    free(spec->user);
    free(spec->label);
    *spec = (struct process_spec){ 0 };
}

/* ---- starting and attaching ---- */

/* `text` is scratch. */
static int put_env(struct buf *b, struct buf *text, const char *name, const char *value)
{
    buf_clear(text);
    int r = buf_puts(text, name);
    if (r >= 0)
        r = buf_append(text, "=", 1);
    if (r >= 0)
        r = buf_puts(text, value);
    return r < 0 ? r : wire_put(b, WIRE_T_ENV, text->data, text->len);
}

/* Below all that anybody says. */
static int put_default(struct buf *b, struct buf *text, const struct sandbox *s,
                       const struct process_spec *spec, const char *name, const char *value)
{
    return pairs_get(&spec->env, name) || pairs_get(&s->spec.env, name) ||
                   pairs_get(&s->spec.image_env, name)
               ? 0
               : put_env(b, text, name, value);
}

/* Where programs find the sandbox's own authority. */
static int put_trust(struct buf *b, struct buf *text, const struct sandbox *s,
                     const struct process_spec *spec)
{
    size_t n = 0;
    int r = 0;
    const struct trust_variable *v =
        grant_intercepts(s->spec.bindings) ? trust_variables(&n) : NULL;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = put_default(b, text, s, spec, v[i].name, v[i].value);
    return r;
}

/* How many threads to start, for programs that count the processors they may run on (nproc, OpenMP, Go): a limit of
 * processor time does not show there. The files that others count in are the cell's to show (cell/ns_cpus.h). */
static int put_threads(struct buf *b, struct buf *text, const struct sandbox *s,
                       const struct process_spec *spec)
{
    static const char *const names[] = { "OMP_NUM_THREADS", "GOMAXPROCS" };
    char value[16];
    unsigned cpus = spec_cpus_shown(&s->spec);
    int r = 0;
    (void)snprintf(value, sizeof(value), "%u", cpus);
    for (size_t i = 0; cpus && i < ARRAY_LEN(names) && r >= 0; i++)
        r = put_default(b, text, s, spec, names[i], value);
    return r;
}

static int put_spec(struct buf *b, const struct sandbox *s, const struct process_spec *spec)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(WIRE_PAYLOAD_MAX);
    const struct pairs *env = &s->spec.env;
    uint64_t flags = (spec->pty ? WIRE_F_PTY : 0) | (spec->stdin_open ? WIRE_F_STDIN : 0) |
                     (spec->no_output ? WIRE_F_NO_OUTPUT : 0);
    int r = 0;

    for (char **a = spec->argv; *a && r >= 0; a++)
        r = wire_put_str(b, WIRE_T_ARGV, *a);
    if (r >= 0)
        r = put_trust(b, &text, s, spec);
    if (r >= 0)
        r = put_threads(b, &text, s, spec);
    const struct pairs *below = &s->spec.image_env;
    for (size_t i = 0; i < below->n && r >= 0; i++)
        if (!pairs_get(env, below->names[i]) && !pairs_get(&spec->env, below->names[i]))
            r = put_env(b, &text, below->names[i], below->values[i]);
    for (size_t i = 0; i < env->n && r >= 0; i++)
        if (!pairs_get(&spec->env, env->names[i]))
            r = put_env(b, &text, env->names[i], env->values[i]);
    for (size_t i = 0; i < spec->env.n && r >= 0; i++)
        r = put_env(b, &text, spec->env.names[i], spec->env.values[i]);
    if (r >= 0)
        r = wire_put_str(b, WIRE_T_CWD, spec->cwd ? spec->cwd : s->spec.workdir);
    if (r >= 0)
        r = wire_put_str(b, WIRE_T_USER, spec->user ? spec->user : s->spec.user);
    if (r >= 0)
        r = wire_put_str(b, WIRE_T_LABEL, spec->label);
    if (r >= 0 && flags)
        r = wire_put_u64(b, WIRE_T_FLAGS, flags);
    if (r >= 0 && spec->pty)
        r = wire_put_u64(b, WIRE_T_ROWS, spec->rows);
    if (r >= 0 && spec->pty)
        r = wire_put_u64(b, WIRE_T_COLS, spec->cols);
    if (r >= 0 && spec->timeout_ms > 0)
        r = wire_put_u64(b, WIRE_T_TIMEOUT_MS, (uint64_t)spec->timeout_ms);
    if (r >= 0 && s->spec.nofile)
        r = wire_put_u64(b, WIRE_T_NOFILE, s->spec.nofile);
    return r;
}

/* Send a request on a new stream and take STARTED, or the failure. */
static int stream_open(struct core *core, const struct sandbox *s, const struct wire_header *h,
                       const struct buf *payload, struct process_stream **ret_stream,
                       struct process *ret_p, struct err *err)
{
    _cleanup_(process_stream_freep) struct process_stream *st = calloc(1, sizeof(*st));
    if (!st)
        return err_set(err, ENOMEM, "cannot allocate a stream");
    st->conn.fd = -1;
    st->core = core;
    memcpy(st->sandbox, s->id, sizeof(st->sandbox));

    int r = init_conn_open(core_run_dir(core), s->id, &st->conn, err);
    if (r < 0)
        return r;
    r = init_conn_begin_frame(&st->conn, h, payload->data, payload->len, INIT_ANSWER_MS);
    if (r < 0)
        return init_conn_lost(err, r, s->id);
    struct init_frame f;
    r = init_conn_recv(&st->conn, INIT_ANSWER_MS, -1, &f);
    if (r < 0)
        return init_conn_lost(err, r, s->id);
    if (f.h.type == WIRE_ERROR)
        return init_conn_error(&f, err);
    if (f.h.type != WIRE_STARTED)
        return init_conn_lost(err, -EPROTO, s->id);
    struct process p;
    r = process_decode(f.p, f.h.len, &p);
    if (r < 0)
        return init_conn_lost(err, r, s->id);
    if (ret_p)
        *ret_p = p;
    else
        process_done(&p);
    *ret_stream = take_ptr(st);
    return 0;
}

int process_start(struct core *core, const struct sandbox *s, const struct process_spec *spec,
                  struct process_stream **ret_stream, struct process *ret_p, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(WIRE_PAYLOAD_MAX);
    const struct wire_header h = { .type = WIRE_START, .offset = spec->together ? TOGETHER_MS : 0 };

    int r = put_spec(&b, s, spec);
    if (r >= 0 && !spec->own && s->spec.autosave.before_command)
        autosave_command(core, s->id);
    if (r == -EMSGSIZE)
        r = err_fail(err, FAIL_ARGUMENT_TOO_LARGE, "arguments and environment are over %u bytes",
                     WIRE_PAYLOAD_MAX);
    else if (r < 0)
        r = err_set(err, -r, "cannot describe the command");
    else
        r = stream_open(core, s, &h, &b, ret_stream, ret_p, err);
    core_count_exec(core, r);
    return r;
}

int process_attach(struct core *core, const struct sandbox *s, uint64_t proc, uint64_t since,
                   bool only_exit, struct process_stream **ret_stream, struct process *ret_p,
                   struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(256);
    const struct wire_header h = { .type = WIRE_ATTACH };

    int r = wire_put_u64(&b, WIRE_T_PROC, proc);
    if (r >= 0)
        r = wire_put_u64(&b, WIRE_T_SINCE, since);
    if (r >= 0 && only_exit)
        r = wire_put_u64(&b, WIRE_T_FLAGS, WIRE_F_NO_OUTPUT);
    if (r < 0)
        return err_set(err, -r, "cannot describe process %llu", (unsigned long long)proc);
    return stream_open(core, s, &h, &b, ret_stream, ret_p, err);
}

/* ---- following ---- */

static int take_dropped(const struct init_frame *f, struct process_event *ret_ev)
{
    struct wire_reader reader = { f->p, f->h.len };
    struct wire_field field;
    uint64_t bytes = 0;
    int r;

    while ((r = wire_next(&reader, &field)) > 0)
        if (field.tag == WIRE_T_BYTES) {
            r = wire_field_u64(&field, &bytes);
            if (r < 0)
                return r;
        }
    if (r < 0)
        return r;
    *ret_ev =
        (struct process_event){ .type = PROCESS_DROPPED, .offset = f->h.offset, .len = bytes };
    return 0;
}

static int take_ended(struct process_stream *st, const struct init_frame *f,
                      struct process_event *ret_ev)
{
    struct process p;
    int r = process_decode(f->p, f->h.len, &p);
    if (r < 0)
        return r;
    st->ended = true;
    if (p.reason == WIRE_OOM)
        sandbox_note_oom(st->core, st->sandbox);
    *ret_ev = (struct process_event){ .type = PROCESS_ENDED, .ended = p };
    return 0;
}

int process_next(struct process_stream *st, int timeout_ms, int hangup_fd,
                 struct process_event *ret_ev, struct err *err)
{
    struct init_frame f;
    int r;

    if (st->ended)
        return err_set(err, EPIPE, "the process has ended");
    for (;;) {
        r = init_conn_recv(&st->conn, timeout_ms, hangup_fd, &f);
        if (r == -ETIMEDOUT || r == -ECANCELED)
            return r;
        if (r == -ECONNRESET)
            return err_fail_as(err, ECONNRESET, FAIL_SANDBOX_NOT_RUNNING,
                               "sandbox '%s' ended while the command ran", st->sandbox);
        if (r < 0)
            return init_conn_lost(err, r, st->sandbox);
        switch (f.h.type) {
        case WIRE_OUTPUT:
            if (f.h.stream < WIRE_STDOUT || f.h.stream > WIRE_PTY)
                return init_conn_lost(err, -EPROTO, st->sandbox);
            *ret_ev = (struct process_event){ .type = PROCESS_OUTPUT,
                                              .stream = (enum wire_stream)f.h.stream,
                                              .offset = f.h.offset,
                                              .data = f.p,
                                              .len = f.h.len };
            return 1;
        case WIRE_DROPPED:
            r = take_dropped(&f, ret_ev);
            return r < 0 ? init_conn_lost(err, r, st->sandbox) : 1;
        case WIRE_EXITED:
            r = take_ended(st, &f, ret_ev);
            return r < 0 ? init_conn_lost(err, r, st->sandbox) : 1;
        case WIRE_ERROR: /* input that the process no longer takes: its end tells the story */
        case WIRE_OK: break;
        default: return init_conn_lost(err, -EPROTO, st->sandbox);
        }
    }
}

int process_feed(struct process_stream *st, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0) {
        size_t piece = n < WIRE_DATA_MAX ? n : WIRE_DATA_MAX;
        int r = init_conn_send(&st->conn, WIRE_INPUT, at, piece, WRITE_STALL_MS);
        if (r < 0)
            return r;
        at += piece;
        n -= piece;
    }
    return 0;
}

int process_feed_end(struct process_stream *st)
{
    return init_conn_send(&st->conn, WIRE_STDIN_EOF, NULL, 0, WRITE_STALL_MS);
}

void process_feed_all(struct process_stream *st, const void *p, size_t n)
{
    init_conn_feed(&st->conn, p, n);
}

int process_stream_fd(const struct process_stream *st)
{
    return st->conn.fd;
}

void process_stream_free(struct process_stream *st)
{
    if (!st)
        return;
    init_conn_done(&st->conn);
    free(st);
}

/* ---- one request, one answer ---- */

static int control(struct core *core, const struct sandbox *s, enum wire_type type,
                   const struct buf *payload, int timeout_ms, struct err *err)
{
    _cleanup_(init_conn_done) struct init_conn c = { .fd = -1 };
    struct init_frame f;

    int r = init_conn_open(core_run_dir(core), s->id, &c, err);
    if (r < 0)
        return r;
    r = init_conn_begin(&c, type, payload->data, payload->len, timeout_ms);
    if (r >= 0)
        r = init_conn_recv(&c, timeout_ms, -1, &f);
    if (r < 0)
        return init_conn_lost(err, r, s->id);
    if (f.h.type == WIRE_ERROR)
        return init_conn_error(&f, err);
    return f.h.type == WIRE_OK ? 0 : init_conn_lost(err, -EPROTO, s->id);
}

int process_write(struct core *core, const struct sandbox *s, uint64_t proc, const void *p,
                  size_t n, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(WIRE_DATA_MAX);
    const char *at = p;

    for (size_t done = 0; done < n;) {
        size_t piece = n - done < WRITE_PIECE ? n - done : WRITE_PIECE;
        buf_clear(&b);
        int r = wire_put_u64(&b, WIRE_T_PROC, proc);
        if (r >= 0)
            r = wire_put(&b, WIRE_T_DATA, at + done, piece);
        if (r < 0)
            return err_set(err, -r, "cannot describe the input");
        r = control(core, s, WIRE_WRITE, &b, WRITE_STALL_MS, err);
        if (r == -ETIMEDOUT)
            return err_fail(
                err, FAIL_STDIN_FULL,
                "process %llu has not read its stdin for %d s; %zu of %zu bytes were taken",
                (unsigned long long)proc, WRITE_STALL_MS / 1000, done, n);
        if (r < 0)
            return r;
        done += piece;
    }
    return 0;
}

static int control_numbers(struct core *core, const struct sandbox *s, enum wire_type type,
                           const enum wire_tag *tags, const uint64_t *values, size_t n,
                           struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(256);

    for (size_t i = 0; i < n; i++) {
        int r = wire_put_u64(&b, tags[i], values[i]);
        if (r < 0)
            return err_set(err, -r, "cannot describe the request");
    }
    return control(core, s, type, &b, INIT_ANSWER_MS, err);
}

int process_close_stdin(struct core *core, const struct sandbox *s, uint64_t proc, struct err *err)
{
    static const enum wire_tag tags[] = { WIRE_T_PROC };
    return control_numbers(core, s, WIRE_CLOSE, tags, &proc, 1, err);
}

int process_signal(struct core *core, const struct sandbox *s, uint64_t proc, int signo,
                   enum wire_scope scope, struct err *err)
{
    static const enum wire_tag tags[] = { WIRE_T_PROC, WIRE_T_SIGNO, WIRE_T_SCOPE };
    const uint64_t values[] = { proc, (uint64_t)signo, scope };
    return control_numbers(core, s, WIRE_SIGNAL, tags, values, ARRAY_LEN(tags), err);
}

int process_resize(struct core *core, const struct sandbox *s, uint64_t proc, unsigned rows,
                   unsigned cols, struct err *err)
{
    static const enum wire_tag tags[] = { WIRE_T_PROC, WIRE_T_ROWS, WIRE_T_COLS };
    const uint64_t values[] = { proc, rows, cols };
    return control_numbers(core, s, WIRE_RESIZE, tags, values, ARRAY_LEN(tags), err);
}

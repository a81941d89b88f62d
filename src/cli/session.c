#include "cli/session.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/leave.h"
#include "cli/object.h"
#include "cli/sink.h"
#include "cli/term.h"
#include "cli/xmem.h"

#define INPUT_CHUNK (256u * 1024) /* four pipes full; the API takes 1 MiB at most */
#define SCRATCH_MAX (2u << 20)    /* bytes of one event */
#define RETRY_MS 250              /* between attempts to find the daemon again */
#define RETRY_FOR_MS 30000        /* a restart takes a second or two */
#define LINGER_MS 200             /* for the end of the answer after the exit event */
#define SIGNALS_QUEUED 8
#define LEAVE_S 5 /* to pass on what was typed before the keys that leave */

struct session {
    struct cli *cli;
    struct client *client;
    const struct session_config *config;
    int64_t process; /* 0 until the daemon has said */
    uint64_t offset; /* of the next byte of output */
    struct sink sink;
    struct buf scratch;

    struct request output;  /* the stream */
    struct request input;   /* a piece of stdin */
    struct request control; /* a signal, a window size, or the kill */
    char *output_path, *output_body, *input_path, *control_path, *control_body;
    char *in; /* 1 + INPUT_CHUNK bytes; what is being sent */
    struct leave leave;
    bool leaving;  /* once what was typed before is passed on */
    bool in_ended; /* nothing more to send */

    unsigned char signals[SIGNALS_QUEUED]; /* to be passed on */
    unsigned nsignals;
    bool resize, kill;
    unsigned interrupts;

    int64_t lost_ms, retry_ms; /* when the stream broke; when to ask again; 0: not so */
    bool finished;
    int status;
};

/* ---- ends ---- */

static void finish(struct session *s, int status)
{
    if (s->finished)
        return;
    s->finished = true;
    s->status = status;
}

static void fail(struct session *s, const struct err *err)
{
    if (!s->finished)
        finish(s, cli_fail(s->cli, err));
}

static void fail_as(struct session *s, const struct request *call)
{
    fail(s, &call->err);
    if (strcmp(call->code, "program_not_found") == 0)
        s->status = STATUS_NOT_FOUND;
    else if (strcmp(call->code, "program_not_executable") == 0)
        s->status = STATUS_NOT_EXECUTABLE;
}

/* The person is gone, or wants to be. */
static void leave(struct session *s, int status)
{
    if (s->config->ret_left)
        *s->config->ret_left = s->process > 0;
    finish(s, status);
}

/* ---- output ---- */

static int on_output(struct session *s, const json_t *event, int fd)
{
    const char *p;
    size_t n;
    int r = event_bytes(event, &s->scratch, &p, &n);
    if (r < 0)
        return r;
    uint64_t offset = (uint64_t)member_int(event, "offset");
    if (offset < s->offset) { /* replayed: part of it is out already */
        uint64_t had = s->offset - offset;
        if (had >= n)
            return 0;
        p += had;
        n -= had;
        offset = s->offset;
    }
    s->offset = offset + n;
    return sink_put(&s->sink, fd, p, n);
}

static void on_exit_event(struct session *s, const json_t *event)
{
    const char *reason = member_text(event, "reason");
    finish(s, (int)member_int(event, "exit_code") & 0xff);
    if (sink_flush(&s->sink) < 0)
        return;
    if (strcmp(reason, "oom") == 0)
        cli_note(
            "the sandbox ran out of memory and the program was killed; --memory gives it more");
    else if (strcmp(reason, "timeout") == 0)
        cli_note("the program was killed when its time was up");
}

/* The daemon cannot go on with this stream: the sandbox died or was deleted under it. */
static void on_error_event(struct session *s, const json_t *event)
{
    struct err err = ERR_INIT;
    const json_t *e = json_object_get(event, "error");
    const char *message = member_text(json_is_object(e) ? e : event, "message");
    (void)sink_flush(&s->sink);
    (void)err_set(&err, EIO, "%s", *message ? message : "the output ended without a reason");
    fail(s, &err);
}

static int on_event(void *arg, const json_t *event)
{
    struct session *s = arg;
    const char *type = member_text(event, "type");
    if (s->finished)
        return 0;
    s->lost_ms = 0;
    if (strcmp(type, "stdout") == 0)
        return on_output(s, event, STDOUT_FILENO);
    if (strcmp(type, "stderr") == 0)
        return on_output(s, event, STDERR_FILENO);
    if (strcmp(type, "exit") == 0) {
        on_exit_event(s, event);
    } else if (strcmp(type, "dropped") == 0) {
        s->offset = (uint64_t)(member_int(event, "offset") + member_int(event, "bytes"));
        if (!s->config->tty)
            cli_note("%" PRId64 " bytes of output were lost: nobody was reading",
                     member_int(event, "bytes"));
    } else if (strcmp(type, "error") == 0) {
        on_error_event(s, event);
    } else if (json_object_get(event, "process")) {
        /* The start event; or a plain process, from a daemon that does not stream a start. */
        s->process = member_int(event, "process");
    }
    return 0;
}

/* Ask for the output from the first byte we have not seen. */
static void follow(struct session *s)
{
    struct err err = ERR_INIT;
    char n[24], since[24];
    (void)snprintf(n, sizeof(n), "%" PRId64, s->process);
    (void)snprintf(since, sizeof(since), "%" PRIu64, s->offset);
    request_done(&s->output);
    free(s->output_path);
    s->output_path = api_path("sandboxes", s->config->sandbox, "processes", n, "output", NULL);
    s->output_path = api_query(s->output_path, "since", since);
    s->output_path = api_query(s->output_path, "follow", "true");
    s->output =
        (struct request){ .method = "GET", .path = s->output_path, .on_line = on_event, .arg = s };
    s->retry_ms = 0;
    if (client_start(s->client, &s->output, &err) < 0)
        fail(s, &err);
}

static void on_output_done(struct session *s)
{
    int64_t now = clock_mono_ms();
    bool refused = s->output.status >= 400 && s->output.status != 503;
    bool broken = s->output.result < 0 || s->lost_ms;
    if (s->process == 0 || refused || s->output.result == -EMSGSIZE) {
        struct err err = ERR_INIT;
        if (s->output.result < 0)
            fail_as(s, &s->output);
        else {
            (void)err_set(&err, EPROTO, "warrend did not say that the program started");
            fail(s, &err);
        }
        return;
    }
    if (!broken && s->output.on_line && strcmp(s->output.method, "POST") == 0) {
        follow(s); /* started; the output is a request of its own */
        return;
    }
    if (!s->lost_ms)
        s->lost_ms = now;
    if (now - s->lost_ms > RETRY_FOR_MS) {
        struct err err = ERR_INIT;
        (void)err_set(&err, ECONNRESET,
                      "lost warrend at %s; the program may go on: `warren attach %s %" PRId64 "`",
                      client_where(s->client), s->config->sandbox, s->process);
        if (s->config->tty) /* as when the window is closed */
            leave(s, cli_fail(s->cli, &err));
        else
            fail(s, &err);
        return;
    }
    request_done(&s->output);
    s->retry_ms = now + RETRY_MS;
}

/* ---- input ---- */

static void send_input(struct session *s, const char *p, size_t n)
{
    struct err err = ERR_INIT;
    char number[24];
    (void)snprintf(number, sizeof(number), "%" PRId64, s->process);
    free(s->input_path);
    s->input_path = api_path("sandboxes", s->config->sandbox, "processes", number, "stdin", NULL);
    if (n == 0)
        s->input_path = api_query(s->input_path, "eof", "true");
    request_done(&s->input);
    /* No time limit: the program may take as long as it likes to read; but nobody waits for it to leave. */
    s->input = (struct request){ .method = "POST",
                                 .path = s->input_path,
                                 .body = p,
                                 .body_len = n,
                                 .body_type = "application/octet-stream",
                                 .timeout_s = s->leaving ? LEAVE_S : -1 };
    if (client_start(s->client, &s->input, &err) < 0)
        fail(s, &err);
}

static void leave_program(struct session *s)
{
    term_restore();
    cli_note("left; the program goes on, and `warren attach %s %" PRId64 "` comes back to it",
             s->config->sandbox, s->process);
    leave(s, 0);
}

static void read_input(struct session *s)
{
    if (!s->in)
        s->in = xcalloc(1, 1 + INPUT_CHUNK);
    ssize_t n = read(STDIN_FILENO, s->in + 1, INPUT_CHUNK);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        s->in_ended = true;
        if (!s->config->tty)
            send_input(s, s->in, 0);
        return;
    }
    if (!s->config->tty) {
        send_input(s, s->in + 1, (size_t)n);
        return;
    }
    char *at;
    size_t passed;
    s->leaving = leave_typed(&s->leave, s->in, (size_t)n, &at, &passed);
    if (passed > 0)
        send_input(s, at, passed);
    else if (s->leaving)
        leave_program(s);
}

static void on_input_done(struct session *s)
{
    int r = s->input.result;
    if (r == 0 || s->finished || s->leaving) {
        request_done(&s->input);
        if (s->leaving)
            leave_program(s);
        return;
    }
    /* 409: it has ended, or closed its stdin; the rest of ours has no reader. A key typed into
     * a daemon that restarts is typed again; a pipe cannot be, and half of it is no input. */
    if (s->input.status == 409 || s->input.status == 404) {
        s->in_ended = true;
    } else if (!s->config->tty) {
        cli_note("standard input was cut off: %s", s->input.err.msg);
        s->in_ended = true;
    }
    request_done(&s->input);
}

/* ---- signals, window size ---- */

static void step_control(struct session *s)
{
    struct err err = ERR_INIT;
    char n[24];
    const char *verb = NULL, *method = "POST";
    if (s->control.done)
        request_done(
            &s->control); /* a failure means that the process is gone: the stream will say */
    if (s->control.active || s->process == 0)
        return;
    (void)snprintf(n, sizeof(n), "%" PRId64, s->process);
    free(take_ptr(s->control_body));
    if (s->kill) {
        s->kill = false;
        method = "DELETE";
    } else if (s->nsignals > 0) {
        verb = "signal";
        s->control_body = xasprintf("{\"signal\":%d,\"scope\":\"group\"}", s->signals[0]);
        memmove(s->signals, s->signals + 1, --s->nsignals);
    } else if (s->resize) {
        unsigned rows, cols;
        s->resize = false;
        (void)term_size(&rows, &cols);
        verb = "resize";
        s->control_body = xasprintf("{\"rows\":%u,\"cols\":%u}", rows, cols);
    } else {
        return;
    }
    free(s->control_path);
    s->control_path = api_path("sandboxes", s->config->sandbox, "processes", n, verb, NULL);
    s->control = (struct request){ .method = method, .path = s->control_path };
    if (s->control_body) {
        s->control.body = s->control_body;
        s->control.body_len = strlen(s->control_body);
        s->control.body_type = "application/json";
    }
    if (client_start(s->client, &s->control, &err) < 0)
        fail(s, &err);
}

static void pass_on(struct session *s, int signo)
{
    if (s->config->visitor || ++s->interrupts > 2 || (s->interrupts == 2 && s->process == 0)) {
        finish(s, 128 + signo);
    } else if (s->interrupts == 2) {
        s->kill = true; /* asked twice: no more choice for the program */
    } else if (s->nsignals < SIGNALS_QUEUED) {
        s->signals[s->nsignals++] = (unsigned char)signo;
    }
}

static void on_signal(struct session *s, int signo)
{
    struct err err = ERR_INIT;
    switch (signo) {
    case SIGWINCH: s->resize = s->config->tty; return;
    case SIGTSTP:
        term_restore();
        (void)raise(SIGSTOP);
        return; /* SIGCONT follows */
    case SIGCONT:
        if (s->config->tty && term_raw(&err) < 0)
            fail(s, &err);
        s->resize = s->config->tty;
        return;
    case SIGHUP: /* a window was closed, a connection lost */
        if (s->config->tty) {
            leave(s, 128 + signo);
            return;
        }
        pass_on(s, signo); /* we do not wait for its answer */
        step_control(s);
        finish(s, 128 + signo);
        return;
    default: pass_on(s, signo);
    }
}

/* ---- the loop ---- */

static int next_timeout_ms(const struct session *s)
{
    if (!s->retry_ms)
        return 1000;
    int64_t left = s->retry_ms - clock_mono_ms();
    return left < 0 ? 0 : (int)left;
}

static void step(struct session *s, bool readable)
{
    int signo;
    while ((signo = signals_next()))
        on_signal(s, signo);
    if (s->output.done && !s->finished)
        on_output_done(s);
    if (s->retry_ms && clock_mono_ms() >= s->retry_ms && !s->finished)
        follow(s);
    if (s->input.done)
        on_input_done(s);
    if (readable && !s->finished)
        read_input(s);
    step_control(s);
}

static void flush(struct session *s)
{
    int r = sink_flush(&s->sink);
    if (r == 0 || r == -EINTR)
        return;
    /* Whoever read our output is gone: end as a program in a pipeline does. */
    if (!s->config->visitor)
        s->kill = true;
    s->finished = true;
    s->status = 128 + SIGPIPE;
}

/* curl reports no hang-up on the descriptors it waits for, and a pipe's end is only that. */
static bool stdin_ready(void)
{
    struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
    return poll(&p, 1, 0) > 0;
}

static void loop(struct session *s)
{
    while (!s->finished) {
        bool want = s->config->input && !s->in_ended && !s->leaving && !s->input.active &&
                    s->process > 0 && s->output.active;
        struct curl_waitfd fds[2] = {
            { .fd = signals_fd(), .events = CURL_WAIT_POLLIN },
            { .fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN },
        };
        if (client_poll(s->client, fds, want ? 2 : 1, next_timeout_ms(s)) < 0) {
            struct err err = ERR_INIT;
            (void)err_set(&err, EIO, "waiting for warrend failed");
            fail(s, &err);
            return;
        }
        flush(s);
        step(s, want && (fds[1].revents != 0 || stdin_ready()));
    }
}

/* The end of the stream's answer comes right after the exit event; waiting for it keeps the
 * connection usable for the next request. A kill that was asked for must get out, too. */
static void settle(struct session *s)
{
    int64_t until = clock_mono_ms() + LINGER_MS;
    bool stop = s->kill;
    request_done(&s->input);
    if (stop || s->control.active) {
        step_control(s);
        until += 2000;
    }
    while ((s->control.active && !s->control.done) ||
           (s->output.active && !s->output.done && !stop)) {
        int64_t left = until - clock_mono_ms();
        if (left <= 0 || client_poll(s->client, NULL, 0, (int)left) < 0)
            break;
    }
}

static int session_loop(struct session *s)
{
    loop(s);
    settle(s);
    request_done(&s->output);
    request_done(&s->control);
    (void)sink_end(&s->sink);
    term_restore();
    sink_done(&s->sink);
    buf_done(&s->scratch);
    free(s->output_path);
    free(s->output_body);
    free(s->input_path);
    free(s->control_path);
    free(s->control_body);
    free(s->in);
    return s->status;
}

static int begin(struct session *s, struct cli *cli, const struct session_config *config)
{
    struct err err = ERR_INIT;
    *s = (struct session){ .cli = cli, .config = config, .scratch = BUF_INIT(SCRATCH_MAX) };
    s->client = cli_client(cli, &err);
    if (!s->client || signals_catch(config->tty, &err) < 0)
        return cli_fail(cli, &err);
    (void)fflush(stdout);
    sink_init(&s->sink, config->tty);
    return 0;
}

int session_run(struct cli *cli, const struct session_config *config, json_t *taken)
{
    _cleanup_json_ json_t *spec = taken;
    struct err err = ERR_INIT;
    struct session s;
    int r = begin(&s, cli, config);
    if (r != 0)
        return r;
    bool joined = config->tty || config->input;
    if (config->tty) {
        unsigned rows, cols;
        (void)term_size(&rows, &cols);
        (void)json_object_set_new(spec, "pty",
                                  json_pack("{s:i,s:i}", "rows", (int)rows, "cols", (int)cols));
        if (term_raw(&err) < 0) {
            fail(&s, &err);
            return session_loop(&s);
        }
    } else if (config->input) {
        (void)json_object_set_new(spec, "stdin", json_true());
    }
    s.output_body = json_dumps(spec, JSON_COMPACT);
    s.output_path = api_path("sandboxes", config->sandbox, joined ? "processes" : "exec", NULL);
    s.output = (struct request){ .method = "POST",
                                 .path = s.output_path,
                                 .body = s.output_body,
                                 .body_len = s.output_body ? strlen(s.output_body) : 0,
                                 .body_type = "application/json",
                                 .on_line = on_event,
                                 .arg = &s };
    if (client_start(s.client, &s.output, &err) < 0)
        fail(&s, &err);
    return session_loop(&s);
}

int session_attach(struct cli *cli, const struct session_config *config, int64_t process)
{
    struct err err = ERR_INIT;
    struct session s;
    int r = begin(&s, cli, config);
    if (r != 0)
        return r;
    s.process = process;
    s.resize = config->tty;
    if (config->tty && term_raw(&err) < 0)
        fail(&s, &err);
    else
        follow(&s);
    return session_loop(&s);
}

bool session_has_piped_stdin(void)
{
    struct stat st;
    if (fstat(STDIN_FILENO, &st) < 0 || isatty(STDIN_FILENO))
        return false;
    return !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)); /* /dev/null */
}

#include "core/process.h"

#include <errno.h>
#include <signal.h>

#include "base/fd.h"
#include "core/fake_init.h"

static void send_process(int fd, enum wire_type type, bool ended)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    (void)wire_put_u64(&b, WIRE_T_PROC, 3);
    (void)wire_put_u64(&b, WIRE_T_PID, 17);
    (void)wire_put_str(&b, WIRE_T_ARGV, "/bin/echo");
    (void)wire_put_str(&b, WIRE_T_ARGV, "hi");
    (void)wire_put_u64(&b, WIRE_T_STARTED_MS, 1000);
    if (ended) {
        (void)wire_put_u64(&b, WIRE_T_STATE, WIRE_ENDED);
        (void)wire_put_u64(&b, WIRE_T_ENDED_MS, 1012);
        (void)wire_put_u64(&b, WIRE_T_EXIT_SIGNAL, SIGTERM);
        (void)wire_put_u64(&b, WIRE_T_REASON, WIRE_SIGNALLED);
    }
    (void)wire_send(fd, type, &b);
}

static void send_output(int fd, enum wire_stream stream, uint64_t offset, const void *p, size_t n)
{
    unsigned char head[WIRE_HEADER_SIZE];
    wire_header_put(head, &(struct wire_header){ .len = (uint32_t)n,
                                                 .type = WIRE_OUTPUT,
                                                 .stream = (uint8_t)stream,
                                                 .offset = offset });
    (void)fd_write_full(fd, head, sizeof(head));
    (void)fd_write_full(fd, p, n);
}

static char *args[] = { (char[]){ "echo" }, (char[]){ "hi" }, NULL };
static const struct process_spec spec = { .argv = args, .argc = 2 };

/* ---- */

static void part_echo(int fd, struct stage *st)
{
    send_process(fd, WIRE_STARTED, false);
    send_output(fd, WIRE_STDOUT, 0, "hel", 3);
    send_output(fd, WIRE_STDERR, 3, "oh", 2);
    _cleanup_(buf_done) struct buf b = BUF_INIT(64);
    (void)wire_put_u64(&b, WIRE_T_BYTES, 99);
    (void)wire_send(fd, WIRE_DROPPED, &b);
    send_process(fd, WIRE_EXITED, true);
}

TEST(a_command_is_followed_to_its_end)
{
    _cleanup_(stage_close) struct stage st;
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    _cleanup_(process_done) struct process p = { 0 };
    struct process_event ev;

    stage_open(&st, part_echo);
    CHECK_OK(process_start(&st.core, &st.s, &spec, &stream, &p, NULL));
    CHECK_EQ(p.proc, 3);
    CHECK_EQ(p.pid, 17);
    CHECK_STR(p.argv[1], "hi");
    CHECK(p.argv[2] == NULL);
    CHECK_EQ(process_next(stream, 5000, -1, &ev, NULL), 1);
    CHECK_EQ(ev.type, PROCESS_OUTPUT);
    CHECK_EQ(ev.stream, WIRE_STDOUT);
    CHECK_EQ(ev.len, 3);
    CHECK_MEM(ev.data, "hel", 3);
    CHECK_EQ(process_next(stream, 5000, -1, &ev, NULL), 1);
    CHECK_EQ(ev.stream, WIRE_STDERR);
    CHECK_EQ(ev.offset, 3);
    CHECK_EQ(process_next(stream, 5000, -1, &ev, NULL), 1);
    CHECK_EQ(ev.type, PROCESS_DROPPED);
    CHECK_EQ(ev.len, 99);
    CHECK_EQ(process_next(stream, 5000, -1, &ev, NULL), 1);
    CHECK_EQ(ev.type, PROCESS_ENDED);
    CHECK_EQ(ev.ended.exit_code, 128 + SIGTERM);
    CHECK_EQ(ev.ended.reason, WIRE_SIGNALLED);
    CHECK(ev.ended.ended);
    process_done(&ev.ended);
    CHECK(process_next(stream, 0, -1, &ev, NULL) < 0);
    CHECK_EQ(st.core.execs, 1);
}

TEST(a_start_that_may_be_told_late_says_so)
{
    _cleanup_(stage_close) struct stage st;
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    struct process_spec with = spec;

    with.together = true;
    stage_open(&st, part_echo);
    CHECK_OK(process_start(&st.core, &st.s, &with, &stream, NULL, NULL));
    CHECK(st.asked.offset > 0); /* how long, in milliseconds */
}

TEST(the_environment_of_a_command_wins_over_the_sandboxs)
{
    _cleanup_(stage_close) struct stage st;
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    struct process_spec with = spec;
    struct wire_reader reader;
    struct wire_field f;
    size_t argc = 0, envc = 0;

    stage_open(&st, part_echo);
    CHECK_OK(pairs_add(&st.s.spec.env, "A", "1"));
    CHECK_OK(pairs_add(&st.s.spec.env, "B", "2"));
    CHECK_OK(pairs_add(&with.env, "B", "3"));
    with.cwd = args[1];
    CHECK_OK(process_start(&st.core, &st.s, &with, &stream, NULL, NULL));
    pairs_done(&with.env);
    CHECK_EQ(st.asked.type, WIRE_START);
    reader = (struct wire_reader){ st.ask.data, st.ask.len };
    while (wire_next(&reader, &f) > 0) {
        argc += f.tag == WIRE_T_ARGV;
        if (f.tag == WIRE_T_ENV)
            CHECK_MEM(f.p, envc++ == 0 ? "A=1" : "B=3", 3);
        if (f.tag == WIRE_T_CWD)
            CHECK_MEM(f.p, "hi", 2);
    }
    CHECK_EQ(argc, 2);
    CHECK_EQ(envc, 2);
}

TEST(a_sandbox_without_init_is_not_running)
{
    struct core core = { .run_dir = (char[]){ "/tmp/warren-not-there" } };
    struct sandbox s = { .id = "abcdefghijklmnopqrst" };
    struct process_stream *stream = NULL;
    struct err err = ERR_INIT;

    CHECK(process_start(&core, &s, &spec, &stream, NULL, &err) < 0);
    CHECK_STR(failure_name(err.failure), "sandbox_not_running");
    CHECK_EQ(core.exec_failures, 1);
}

static void part_refuse(int fd, struct stage *st)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    (void)wire_put_u64(&b, WIRE_T_CODE, ENOENT);
    (void)wire_put_str(&b, WIRE_T_WHAT, "program_not_found");
    (void)wire_put_str(&b, WIRE_T_MESSAGE, "there is no program 'ecoh'");
    (void)wire_send(fd, WIRE_ERROR, &b);
}

TEST(a_refusal_keeps_its_name_and_sentence)
{
    _cleanup_(stage_close) struct stage st;
    struct process_stream *stream = NULL;
    struct err err = ERR_INIT;

    stage_open(&st, part_refuse);
    CHECK_EQ(process_start(&st.core, &st.s, &spec, &stream, NULL, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "program_not_found");
    CHECK_STR(err.msg, "there is no program 'ecoh'");
}

static void part_silent(int fd, struct stage *st)
{
    char byte;
    send_process(fd, WIRE_STARTED, false);
    (void)!read(fd, &byte, 1); /* until the other side goes */
}

TEST(a_wait_ends_when_the_client_goes_away)
{
    _cleanup_(stage_close) struct stage st;
    struct process_stream *stream = NULL;
    struct process_event ev;
    int client[2];

    stage_open(&st, part_silent);
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, client));
    CHECK_OK(process_start(&st.core, &st.s, &spec, &stream, NULL, NULL));
    CHECK_EQ(process_next(stream, 20, client[0], &ev, NULL), -ETIMEDOUT);
    (void)close(client[1]);
    CHECK_EQ(process_next(stream, -1, client[0], &ev, NULL), -ECANCELED);
    (void)close(client[0]);
    process_stream_free(stream);
}

static void part_dies(int fd, struct stage *st)
{
    send_process(fd, WIRE_STARTED, false);
    (void)fd_write_full(fd, "\x05\0\0\0", 4); /* a quarter of a header */
}

TEST(a_sandbox_that_dies_under_a_command_is_told)
{
    _cleanup_(stage_close) struct stage st;
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    struct process_event ev;
    struct err err = ERR_INIT;

    stage_open(&st, part_dies);
    CHECK_OK(process_start(&st.core, &st.s, &spec, &stream, NULL, NULL));
    CHECK_EQ(process_next(stream, 5000, -1, &ev, &err), -ECONNRESET);
    CHECK_STR(failure_name(err.failure), "sandbox_not_running");
}

static void part_lies(int fd, struct stage *st)
{
    unsigned char head[WIRE_HEADER_SIZE] = { 0xff, 0xff, 0xff, 0xff, WIRE_OUTPUT };
    send_process(fd, WIRE_STARTED, false);
    (void)fd_write_full(fd, head, sizeof(head));
}

static void part_lies_in_fields(int fd, struct stage *st)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    send_process(fd, WIRE_STARTED, false);
    (void)wire_put_u64(&b, WIRE_T_EXIT_CODE, 1000000);
    (void)wire_send(fd, WIRE_EXITED, &b);
}

static void part_lies_about_the_stream(int fd, struct stage *st)
{
    send_process(fd, WIRE_STARTED, false);
    send_output(fd, (enum wire_stream)9, 0, "x", 1);
}

TEST(a_lying_init_is_caught)
{
    void (*const parts[])(int, struct stage *) = { part_lies, part_lies_in_fields,
                                                   part_lies_about_the_stream };

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        _cleanup_(stage_close) struct stage st;
        _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
        struct process_event ev;
        stage_open(&st, parts[i]);
        CHECK_OK(process_start(&st.core, &st.s, &spec, &stream, NULL, NULL));
        CHECK_EQ(process_next(stream, 5000, -1, &ev, NULL), -EPROTO);
    }
}

#define FLOOD (4u * 1024 * 1024)

/* Prints all it has before it reads anything: more than the sockets hold. */
static void part_prints_first(int fd, struct stage *st)
{
    static char block[WIRE_DATA_MAX];
    struct wire_header h = { 0 };
    size_t taken = 0;

    send_process(fd, WIRE_STARTED, false);
    for (size_t i = 0; i < FLOOD; i += sizeof(block))
        send_output(fd, WIRE_STDOUT, i, block, sizeof(block));
    while (wire_recv(fd, &h, &st->ask, 5000) == 0 && h.type == WIRE_INPUT)
        taken += h.len;
    if (h.type == WIRE_STDIN_EOF && taken == FLOOD)
        send_process(fd, WIRE_EXITED, true);
}

TEST(a_command_that_prints_before_it_reads_does_not_lock_up)
{
    _cleanup_(stage_close) struct stage st;
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    _cleanup_free_ char *input = calloc(1, FLOOD);
    struct process_event ev = { 0 };
    size_t printed = 0;

    CHECK(input != NULL);
    stage_open(&st, part_prints_first);
    CHECK_OK(process_start(&st.core, &st.s, &spec, &stream, NULL, NULL));
    process_feed_all(stream, input, FLOOD);
    while (process_next(stream, 5000, -1, &ev, NULL) == 1 && ev.type == PROCESS_OUTPUT)
        printed += ev.len;
    CHECK_EQ(ev.type, PROCESS_ENDED);
    CHECK_EQ(printed, FLOOD);
    process_done(&ev.ended);
}

static void part_list(int fd, struct stage *st)
{
    send_process(fd, WIRE_PROCESS, false);
    send_process(fd, WIRE_PROCESS, true);
    (void)wire_send(fd, WIRE_OK, NULL);
}

TEST(processes_are_listed)
{
    _cleanup_(stage_close) struct stage st;
    struct process *ps = NULL;
    size_t n = 0;

    stage_open(&st, part_list);
    CHECK_OK(process_list(&st.core, &st.s, true, &ps, &n, NULL));
    CHECK_EQ(n, 2);
    CHECK(ps[1].ended);
    process_list_free(ps, n);
}

TEST(a_process_that_is_not_there_is_not_found)
{
    _cleanup_(stage_close) struct stage st;
    struct process p;
    struct err err = ERR_INIT;

    stage_open(&st, part_list);
    CHECK(process_get(&st.core, &st.s, 4, &p, &err) < 0);
    CHECK_STR(failure_name(err.failure), "process_not_found");
}

static void part_ok(int fd, struct stage *st)
{
    (void)wire_send(fd, WIRE_OK, NULL);
}

TEST(a_signal_is_sent_with_its_scope)
{
    _cleanup_(stage_close) struct stage st;
    struct wire_reader reader;
    struct wire_field f;
    uint64_t v, sum = 0;

    stage_open(&st, part_ok);
    CHECK_OK(process_signal(&st.core, &st.s, 3, SIGKILL, WIRE_SCOPE_TREE, NULL));
    CHECK_EQ(st.asked.type, WIRE_SIGNAL);
    reader = (struct wire_reader){ st.ask.data, st.ask.len };
    while (wire_next(&reader, &f) > 0) {
        CHECK_OK(wire_field_u64(&f, &v));
        sum += v;
    }
    CHECK_EQ(sum, 3 + SIGKILL + WIRE_SCOPE_TREE);
}

TEST(signals_have_names)
{
    static const struct {
        const char *text;
        int signo;
    } good[] = { { "SIGTERM", SIGTERM }, { "TERM", SIGTERM }, { "sigint", SIGINT },
                 { "9", SIGKILL },       { "64", 64 },        { "WINCH", SIGWINCH } };
    static const char *const bad[] = { "",    "0",        "65",  "-1",         "9x",
                                       "SIG", "SIGTERMX", "15 ", "99999999999" };
    int signo;

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK_OK(process_signal_parse(good[i].text, &signo));
        CHECK_EQ(signo, good[i].signo);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(process_signal_parse(bad[i], &signo) < 0);
    CHECK_STR(process_signal_name(SIGKILL), "SIGKILL");
    CHECK(process_signal_name(63) == NULL);
    char text[PROCESS_STATUS_MAX];
    struct process p = { .exit_code = 3 };
    CHECK_STR(process_status_text(&p, text), "exit status 3");
    p.exit_signal = SIGKILL;
    CHECK_STR(process_status_text(&p, text), "signal: killed");
    p.exit_signal = 63;
    CHECK_STR(process_status_text(&p, text), "signal: unknown");
    p.reason = WIRE_OOM;
    CHECK_STR(process_status_text(&p, text), "signal: killed (out of memory)");
}

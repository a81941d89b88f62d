#include "core/file.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "core/fake_init.h"
#include "core/file_codec.h"

static void put_entry(struct buf *b, const char *path, uint64_t size)
{
    (void)wire_put_str(b, WIRE_T_PATH, path);
    (void)wire_put_u64(b, WIRE_T_TYPE, WIRE_REGULAR);
    (void)wire_put_u64(b, WIRE_T_MODE, 0640);
    (void)wire_put_u64(b, WIRE_T_SIZE, size);
    (void)wire_put_str(b, WIRE_T_ETAG, "abc");
    (void)wire_put(b, WIRE_T_XATTR, "user.a\0xy", 9);
}

static void send_entry(int fd, const char *path, uint64_t size)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    put_entry(&b, path, size);
    (void)wire_put_u64(&b, WIRE_T_LENGTH, size);
    (void)wire_send(fd, WIRE_ENTRY, &b);
}

static void send_error(int fd, enum wire_type type, const char *what, const char *message)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    (void)wire_put_str(&b, WIRE_T_PATH, "/etc/x");
    (void)wire_put_str(&b, WIRE_T_WHAT, what);
    (void)wire_put_str(&b, WIRE_T_MESSAGE, message);
    (void)wire_put_u64(&b, WIRE_T_SIZE, 77);
    (void)wire_send(fd, type, &b);
}

static const char *const one_path[] = { "/etc/x" };
#define ASK(op_)                                     \
    {                                                \
        .op = (op_), .paths = one_path, .n_paths = 1 \
    }

/* ---- */

static void part_stat(int fd, struct stage *st)
{
    send_entry(fd, "/etc/x", 5);
    (void)wire_send(fd, WIRE_OK, NULL);
}

TEST(an_entry_is_asked_for_and_decoded)
{
    _cleanup_(stage_close) struct stage st;
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    struct file_ask ask = ASK(WIRE_FILE_STAT);

    stage_open(&st, part_stat);
    ask.user = "someone";
    ask.have = FILE_HAVE(WIRE_T_MODE);
    CHECK_OK(file_do(&st.core, &st.s, &ask, &e, NULL, NULL));
    CHECK_STR(e.path, "/etc/x");
    CHECK_EQ(e.type, WIRE_REGULAR);
    CHECK_EQ(e.mode, 0640);
    CHECK_EQ(e.size, 5);
    CHECK_STR(e.etag, "abc");
    CHECK_EQ(e.n_xattrs, 1);
    CHECK_STR(e.xattrs[0].name, "user.a");
    CHECK_EQ(e.xattrs[0].len, 2);
    CHECK_EQ(st.asked.type, WIRE_FILE);
    struct wire_reader r = { st.ask.data, st.ask.len };
    struct wire_field f;
    bool user = false, mode = false, size = false;
    while (wire_next(&r, &f) > 0) {
        user |= f.tag == WIRE_T_USER && f.n == 7;
        mode |= f.tag == WIRE_T_MODE;
        size |= f.tag == WIRE_T_SIZE;
    }
    CHECK(user && mode && !size);
}

static void part_read(int fd, struct stage *st)
{
    send_entry(fd, "/etc/x", 600000);
    static char data[200000];
    memset(data, 'd', sizeof(data));
    for (int i = 0; i < 3; i++)
        (void)wire_send_raw(fd, WIRE_DATA, data, sizeof(data));
    (void)wire_send(fd, WIRE_OK, NULL);
}

TEST(the_bytes_of_a_file_come_whole_in_pieces_of_any_size)
{
    static const size_t sizes[] = { 1 << 20, 65536, 1000, 16 };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        _cleanup_(stage_close) struct stage st;
        _cleanup_(file_call_freep) struct file_call *call = NULL;
        _cleanup_free_ char *out = malloc(sizes[i]);
        struct file_ask ask = ASK(WIRE_FILE_READ);
        struct file_event ev;
        size_t total = 0;
        ssize_t n;

        stage_open(&st, part_read);
        CHECK_OK(file_begin(&st.core, &st.s, &ask, &call, NULL));
        CHECK_EQ(file_next(call, 5000, -1, &ev, NULL), 1);
        CHECK_EQ(ev.type, FILE_ENTRY);
        CHECK_EQ(ev.entry.length, 600000);
        file_event_done(&ev);
        while ((n = file_read(call, out, sizes[i], -1, NULL)) > 0) {
            for (ssize_t k = 0; k < n; k++)
                CHECK_EQ(out[k], 'd');
            total += (size_t)n;
        }
        CHECK_EQ(n, 0);
        CHECK_EQ(total, 600000);
        CHECK_EQ(file_read(call, out, sizes[i], -1, NULL), 0);
    }
}

/* A frame each 20 ms, with a byte or without one. */
static void trickle(int fd, size_t n)
{
    send_entry(fd, "/etc/x", 600000);
    for (int i = 0; i < 500 && wire_send_raw(fd, WIRE_DATA, "d", n) == 0; i++)
        (void)poll(NULL, 0, 20);
}

static void part_trickle(int fd, struct stage *st)
{
    trickle(fd, 1);
}

static void part_trickle_nothing(int fd, struct stage *st)
{
    trickle(fd, 0);
}

TEST(a_worker_that_sends_a_little_now_and_then_is_given_up)
{
    void (*const parts[])(int, struct stage *) = { part_trickle, part_trickle_nothing };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        _cleanup_(stage_close) struct stage st;
        _cleanup_(file_call_freep) struct file_call *call = NULL;
        struct file_ask ask = ASK(WIRE_FILE_READ);
        struct file_event ev;
        struct err err = ERR_INIT;
        char out[16];
        ssize_t n;

        stage_open(&st, parts[i]);
        CHECK_OK(file_begin(&st.core, &st.s, &ask, &call, NULL));
        file_call_hurry(call, 300);
        CHECK_EQ(file_next(call, 5000, -1, &ev, NULL), 1);
        file_event_done(&ev);
        int64_t began = clock_mono_ms();
        while ((n = file_read(call, out, sizeof(out), -1, &err)) > 0)
            ;
        CHECK_EQ(n, -ETIMEDOUT);
        CHECK_STR(failure_name(err.failure), "sandbox_busy");
        CHECK(clock_mono_ms() - began < 5000);
        file_call_free(take_ptr(call)); /* the worker sees the end */
    }
}

static void part_refuse(int fd, struct stage *st)
{
    send_error(fd, WIRE_ERROR, "file_not_found", "there is no '/etc/x'");
}

TEST(a_refusal_keeps_its_name_and_its_sentence)
{
    _cleanup_(stage_close) struct stage st;
    struct file_ask ask = ASK(WIRE_FILE_STAT);
    struct err err = ERR_INIT;

    stage_open(&st, part_refuse);
    CHECK_EQ(file_do(&st.core, &st.s, &ask, NULL, NULL, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "file_not_found");
    CHECK_STR(err.msg, "there is no '/etc/x'");
}

static void part_early(int fd, struct stage *st)
{
    send_error(fd, WIRE_ERROR, "no_space", "full");
    /* closing with unread data: the writer is cut off */
}

TEST(a_write_that_was_refused_early_can_still_be_told_why)
{
    _cleanup_(stage_close) struct stage st;
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    struct file_ask ask = ASK(WIRE_FILE_WRITE);
    struct file_event ev;
    struct err err = ERR_INIT;
    static char data[WIRE_BULK_MAX + 10];

    stage_open(&st, part_early);
    CHECK_OK(file_begin(&st.core, &st.s, &ask, &call, NULL));
    int r = 0;
    for (int i = 0; i < 64 && r >= 0; i++)
        r = file_put_data(call, data, sizeof(data));
    CHECK_EQ(r, -EPIPE);
    CHECK_EQ(file_next(call, 5000, -1, &ev, &err), -ENOSPC);
    CHECK_STR(failure_name(err.failure), "no_space");
    CHECK_EQ(file_call_size(call), 77);
}

static void part_skip(int fd, struct stage *st)
{
    send_error(fd, WIRE_SKIPPED, "permission_denied", "not yours");
    (void)wire_send(fd, WIRE_OK, NULL);
}

TEST(what_was_skipped_is_an_event_and_not_a_failure)
{
    _cleanup_(stage_close) struct stage st;
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    struct file_ask ask = ASK(WIRE_FILE_TREE_OUT);
    struct file_event ev;

    stage_open(&st, part_skip);
    CHECK_OK(file_begin(&st.core, &st.s, &ask, &call, NULL));
    CHECK_EQ(file_next(call, 5000, -1, &ev, NULL), 1);
    CHECK_EQ(ev.type, FILE_SKIPPED);
    CHECK_STR(ev.entry.path, "/etc/x");
    CHECK_STR(failure_name(ev.err.failure), "permission_denied");
    file_event_done(&ev);
    CHECK_EQ(file_next(call, 5000, -1, &ev, NULL), 1);
    CHECK_EQ(ev.type, FILE_DONE);
}

static void part_vanish(int fd, struct stage *st)
{
}

TEST(a_worker_that_dies_is_told_as_such)
{
    _cleanup_(stage_close) struct stage st;
    struct file_ask ask = ASK(WIRE_FILE_USAGE);
    struct err err = ERR_INIT;

    stage_open(&st, part_vanish);
    CHECK_EQ(file_do(&st.core, &st.s, &ask, NULL, NULL, &err), -ECONNRESET);
    CHECK_STR(failure_name(err.failure), "sandbox_not_running");
}

TEST(an_entry_with_a_nul_a_wrong_type_or_a_cut_field_is_refused)
{
    static const struct {
        enum wire_tag tag;
        const char *p;
        size_t n;
    } cases[] = {
        { WIRE_T_PATH, "a\0b", 3 },  { WIRE_T_TYPE, "\0\0\0\0\0\0\0\0", 8 },
        { WIRE_T_SIZE, "1234", 4 },  { WIRE_T_TYPE, "\11\0\0\0\0\0\0\0", 8 },
        { WIRE_T_XATTR, "name", 4 }, { WIRE_T_XATTR, "\0value", 6 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        struct file_event ev;
        put_entry(&b, "/x", 1);
        CHECK_OK(wire_put(&b, cases[i].tag, cases[i].p, cases[i].n));
        CHECK_EQ(file_decode(b.data, b.len, &ev), -EPROTO);
        CHECK_EQ(file_decode(b.data, b.len - 1, &ev), -EPROTO);
    }
}

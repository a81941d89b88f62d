#include "init/call.h"

#include <errno.h>

#include "base/check.h"

static int decode(enum wire_type type, struct buf *b, struct call *call, struct err *err)
{
    struct wire_header h = { .len = (uint32_t)b->len, .type = (uint8_t)type };
    CHECK_OK(buf_reserve(b, 1));
    return call_decode(&h, b->data, call, err);
}

TEST(a_start_is_decoded_whole)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    _cleanup_(call_done) struct call call = { 0 };
    struct err err = ERR_INIT;
    CHECK_OK(wire_put_str(&b, WIRE_T_ARGV, "sh"));
    CHECK_OK(wire_put_str(&b, WIRE_T_ENV, "A=1"));
    CHECK_OK(wire_put_str(&b, WIRE_T_ARGV, ""));
    CHECK_OK(wire_put_u64(&b, WIRE_T_FLAGS, WIRE_F_PTY | WIRE_F_STDIN));
    CHECK_OK(wire_put_str(&b, WIRE_T_CWD, "/tmp"));
    CHECK_OK(wire_put_u64(&b, WIRE_T_TIMEOUT_MS, 1500));
    CHECK_OK(wire_put_str(&b, WIRE_T_ENV, "B="));
    CHECK_OK(decode(WIRE_START, &b, &call, &err));
    CHECK_EQ(call.argc, 2);
    CHECK_STR(call.argv[0], "sh");
    CHECK_STR(call.argv[1], "");
    CHECK(call.argv[2] == NULL);
    CHECK_EQ(call.envc, 2);
    CHECK_STR(call.env[0], "A=1");
    CHECK_STR(call.env[1], "B=");
    CHECK(call.env[2] == NULL);
    CHECK_STR(call.cwd, "/tmp");
    CHECK_STR(call.user, "");
    CHECK_EQ(call.flags, WIRE_F_PTY | WIRE_F_STDIN);
    CHECK_EQ(call.timeout_ms, 1500);
    CHECK(!call_has(&call, WIRE_T_USER));
}

TEST(bad_fields_are_named_in_the_answer)
{
    static const struct {
        enum wire_type type;
        enum wire_tag tag;
        const char *text; /* NULL: the number */
        size_t n;
        uint64_t number;
        int r;
        const char *what;
    } cases[] = {
        { WIRE_START, WIRE_T_ENV, "novalue", 7, 0, -EINVAL, "invalid_field" },
        { WIRE_START, WIRE_T_ENV, "=x", 2, 0, -EINVAL, "invalid_field" },
        { WIRE_START, WIRE_T_ENV, "A=b\0c", 5, 0, -EINVAL, "invalid_field" },
        { WIRE_START, WIRE_T_ARGV, "a\0b", 3, 0, -EINVAL, "invalid_field" },
        { WIRE_START, WIRE_T_ARGV, "", 0, 0, -EINVAL, "invalid_field" },
        { WIRE_START, WIRE_T_LABEL, "x", 1, 0, -EINVAL, "missing_field" },
        { WIRE_START, WIRE_T_FLAGS, NULL, 0, 64, -EINVAL, "invalid_field" },
        { WIRE_START, WIRE_T_ROWS, NULL, 0, 65536, -EINVAL, "invalid_field" },
        { WIRE_START, WIRE_T_DATA, "x", 1, 0, -EINVAL, "invalid_field" },
        { WIRE_START, WIRE_T_TIMEOUT_MS, NULL, 0, UINT64_MAX, -EINVAL, "invalid_field" },
        { WIRE_SIGNAL, WIRE_T_SIGNO, NULL, 0, 0, -EINVAL, "invalid_field" },
        { WIRE_SIGNAL, WIRE_T_SIGNO, NULL, 0, 65, -EINVAL, "invalid_field" },
        { WIRE_SIGNAL, WIRE_T_SCOPE, NULL, 0, 3, -EINVAL, "invalid_field" },
        { WIRE_RESIZE, WIRE_T_ROWS, NULL, 0, 10, -EINVAL, "invalid_field" },
        { WIRE_LIST, WIRE_T_PROC, NULL, 0, 1, -EINVAL, "invalid_field" },
        { WIRE_PING, WIRE_T_MESSAGE, "x", 1, 0, -EINVAL, "invalid_field" },
        { WIRE_SIGNAL, WIRE_T_SIGNO, "123", 3, 0, -EPROTO, NULL },
        { WIRE_OK, WIRE_T_MESSAGE, "x", 1, 0, -EPROTO, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        _cleanup_(call_done) struct call call = { 0 };
        struct err err = ERR_INIT;
        if (cases[i].text)
            CHECK_OK(wire_put(&b, cases[i].tag, cases[i].text, cases[i].n));
        else
            CHECK_OK(wire_put_u64(&b, cases[i].tag, cases[i].number));
        CHECK_EQ(decode(cases[i].type, &b, &call, &err), cases[i].r);
        if (cases[i].what)
            CHECK_STR(failure_name(err.failure), cases[i].what);
    }
}

TEST(a_field_given_twice_is_refused)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct call call;
    struct err err = ERR_INIT;
    CHECK_OK(wire_put_u64(&b, WIRE_T_PROC, 1));
    CHECK_OK(wire_put_u64(&b, WIRE_T_PROC, 2));
    CHECK_EQ(decode(WIRE_CLOSE, &b, &call, &err), -EINVAL);
}

TEST(an_empty_request_that_needs_nothing_is_fine)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct call call;
    CHECK_OK(decode(WIRE_PING, &b, &call, NULL));
    CHECK_OK(decode(WIRE_LIST, &b, &call, NULL));
    CHECK_OK(decode(WIRE_SHUTDOWN, &b, &call, NULL));
}

TEST(a_field_that_runs_past_the_payload_is_a_broken_peer)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct call call;
    CHECK_OK(buf_append(&b, "\x01\xff\xff\xff\xff", 5));
    CHECK_EQ(decode(WIRE_START, &b, &call, NULL), -EPROTO);
}

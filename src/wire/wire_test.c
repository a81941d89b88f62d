#include "wire/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

TEST(fields_come_back_as_they_went_in)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1000);
    CHECK_OK(wire_put_str(&b, WIRE_T_ARGV, "echo"));
    CHECK_OK(wire_put_str(&b, WIRE_T_ARGV, ""));
    CHECK_OK(wire_put_u64(&b, WIRE_T_ROWS, 24));

    struct wire_reader r = { b.data, b.len };
    struct wire_field f;
    uint64_t v;
    CHECK_EQ(wire_next(&r, &f), 1);
    CHECK_EQ(f.tag, WIRE_T_ARGV);
    CHECK_MEM(f.p, "echo", 4);
    CHECK_EQ(wire_next(&r, &f), 1);
    CHECK_EQ(f.n, 0);
    CHECK_EQ(wire_next(&r, &f), 1);
    CHECK_OK(wire_field_u64(&f, &v));
    CHECK_EQ(v, 24);
    CHECK_EQ(wire_next(&r, &f), 0);
}

TEST(a_field_longer_than_its_payload_is_refused)
{
    char bytes[] = { WIRE_T_ARGV, 9, 0, 0, 0, 'x' };
    struct wire_reader r = { bytes, sizeof(bytes) };
    struct wire_field f;
    CHECK_EQ(wire_next(&r, &f), -EPROTO);
    r = (struct wire_reader){ bytes, 3 };
    CHECK_EQ(wire_next(&r, &f), -EPROTO);
}

TEST(a_header_with_a_lying_length_is_refused)
{
    unsigned char raw[WIRE_HEADER_SIZE];
    struct wire_header h = { .len = WIRE_PAYLOAD_MAX + 1, .type = WIRE_START };
    wire_header_put(raw, &h);
    CHECK_EQ(wire_header_get(raw, &h), -EPROTO);
    h = (struct wire_header){ .len = WIRE_DATA_MAX + 1, .type = WIRE_OUTPUT };
    wire_header_put(raw, &h);
    CHECK_EQ(wire_header_get(raw, &h), -EPROTO);
}

TEST(a_string_with_a_nul_is_refused)
{
    struct wire_field f = { WIRE_T_CWD, "a\0b", 3 };
    char *s = NULL;
    CHECK_EQ(wire_field_str(&f, &s), -EINVAL);
}

TEST(a_frame_crosses_a_socket_whole)
{
    int sv[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    CHECK_OK(wire_send_raw(sv[0], WIRE_INPUT, "hello", 5));
    struct wire_header h;
    _cleanup_(buf_done) struct buf b = BUF_INIT(WIRE_PAYLOAD_MAX);
    CHECK_OK(wire_recv(sv[1], &h, &b, 1000));
    CHECK_EQ(h.type, WIRE_INPUT);
    CHECK_MEM(b.data, "hello", 5);
    CHECK_EQ(wire_recv(sv[1], &h, &b, 0), -ETIMEDOUT);
    close(sv[0]);
    CHECK_EQ(wire_recv(sv[1], &h, &b, 1000), -EPIPE);
    close(sv[1]);
}

TEST(a_data_frame_is_no_longer_than_a_piece)
{
    unsigned char head[WIRE_HEADER_SIZE];
    struct wire_header h = { .type = WIRE_DATA, .len = WIRE_BULK_MAX }, got;
    wire_header_put(head, &h);
    CHECK_OK(wire_header_get(head, &got));
    h.len++;
    wire_header_put(head, &h);
    CHECK_EQ(wire_header_get(head, &got), -EPROTO);
}

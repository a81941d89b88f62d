#include "broker/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

struct rig {
    struct loop *loop;
    struct sock from, to;
    int sender, receiver;
    struct buf early, pending;
};

static void rig_init(struct rig *r)
{
    int a[2], b[2];
    *r = (struct rig){ .early = BUF_INIT(2 * FLOW_PIECE), .pending = BUF_INIT(2 * FLOW_PIECE) };
    CHECK_OK(loop_new(&r->loop));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b));
    sock_init(&r->from, r->loop, a[0], NULL);
    sock_init(&r->to, r->loop, b[0], NULL);
    r->sender = a[1];
    r->receiver = b[1];
}

static void rig_done(struct rig *r)
{
    sock_close(&r->from);
    sock_close(&r->to);
    if (r->sender >= 0)
        (void)close(r->sender);
    (void)close(r->receiver);
    buf_done(&r->early);
    buf_done(&r->pending);
    loop_free(r->loop);
}

static enum flow_state go(struct rig *r, struct flow *f)
{
    return flow_run(f, &r->from, &r->early, &r->to, &r->pending);
}

TEST(flow_stops_at_the_end_of_the_body_and_keeps_the_rest)
{
    struct rig r;
    struct flow f;
    char got[64];
    rig_init(&r);
    flow_start(&f, BODY_LENGTH, 5);
    CHECK_OK(buf_puts(&r.early, "ab"));
    CHECK_EQ(write(r.sender, "cdeNEXT", 7), 7);
    CHECK_EQ(go(&r, &f), FLOW_DONE);
    CHECK_EQ(read(r.receiver, got, sizeof(got)), 5);
    CHECK_MEM(got, "abcde", 5);
    CHECK_STR(r.early.data, "NEXT");
    rig_done(&r);
}

TEST(flow_reads_no_more_than_its_receiver_takes)
{
    static char piece[FLOW_PIECE];
    struct rig r;
    struct flow f;
    enum flow_state last = FLOW_DONE;
    size_t in = 0, out = 0;
    ssize_t n;
    rig_init(&r);
    flow_start(&f, BODY_UNTIL_END, 0);
    for (int i = 0; i < 200; i++) {
        while ((n = write(r.sender, piece, sizeof(piece))) > 0)
            in += (size_t)n;
        last = go(&r, &f); /* nobody reads */
        CHECK(r.pending.len <= FLOW_PIECE);
    }
    CHECK_EQ(last, FLOW_WAIT_TO);
    (void)close(r.sender);
    r.sender = -1;
    for (;;) {
        while ((n = read(r.receiver, piece, sizeof(piece))) > 0)
            out += (size_t)n;
        if (go(&r, &f) == FLOW_DONE && r.pending.len == 0)
            break;
    }
    while ((n = read(r.receiver, piece, sizeof(piece))) > 0)
        out += (size_t)n;
    CHECK_EQ(in, out);
    CHECK(f.ended);
    rig_done(&r);
}

TEST(flow_knows_who_was_lost)
{
    struct rig r;
    struct flow f;
    rig_init(&r);
    flow_start(&f, BODY_LENGTH, 5);
    CHECK_EQ(write(r.sender, "abc", 3), 3);
    CHECK_EQ(go(&r, &f), FLOW_WAIT_FROM);
    CHECK_OK(shutdown(r.sender, SHUT_WR));
    CHECK_EQ(go(&r, &f), FLOW_FROM_LOST);
    rig_done(&r);

    rig_init(&r);
    flow_start(&f, BODY_CHUNKED, 0);
    CHECK_EQ(write(r.sender, "zz\r\n", 4), 4);
    CHECK_EQ(go(&r, &f), FLOW_BROKEN);
    rig_done(&r);

    rig_init(&r);
    flow_start(&f, BODY_LENGTH, 5);
    CHECK_OK(shutdown(r.receiver, SHUT_RDWR));
    CHECK_EQ(write(r.sender, "abcde", 5), 5);
    CHECK_EQ(go(&r, &f), FLOW_TO_LOST);
    rig_done(&r);
}

TEST(flow_moves_no_more_than_it_may)
{
    struct rig r;
    struct flow f;
    static char many[100000], got[100000];
    rig_init(&r);
    flow_start(&f, BODY_LENGTH, sizeof(many));
    CHECK_EQ(write(r.sender, many, sizeof(many)), sizeof(many));
    for (size_t i = 1; i <= 3; i++) {
        f.most = 10000;
        CHECK_EQ(go(&r, &f), FLOW_WAIT_FROM);
        CHECK_EQ(f.passed, i * 10000);
    }
    f.most = 0;
    CHECK_EQ(go(&r, &f), FLOW_DONE);
    CHECK_EQ(recv(r.receiver, got, sizeof(got), MSG_WAITALL), sizeof(got));
    rig_done(&r);
}

TEST(flow_says_what_has_come_of_it)
{
    struct rig r;
    bool lost = false, ended = false;
    char byte;
    rig_init(&r);
    CHECK_EQ(flow_result(FLOW_DONE), 1);
    CHECK_EQ(flow_result(FLOW_WAIT_TO), 0);
    CHECK_EQ(flow_result(FLOW_BROKEN), -ECONNRESET);
    CHECK_OK(buf_puts(&r.pending, "x"));
    CHECK_EQ(flow_sent(FLOW_BROKEN, &r.pending, &lost), -EBADMSG);
    CHECK(!lost && r.pending.len == 1);
    CHECK_EQ(flow_sent(FLOW_TO_LOST, &r.pending, &lost), 1);
    CHECK(lost && r.pending.len == 0);
    CHECK_EQ(flow_tunnelled(FLOW_WAIT_FROM, &r.to, &ended), 0);
    CHECK(!ended && read(r.receiver, &byte, 1) < 0);
    CHECK_EQ(flow_tunnelled(FLOW_DONE, &r.to, &ended), 0);
    CHECK(ended && read(r.receiver, &byte, 1) == 0);
    CHECK_EQ(flow_tunnelled(FLOW_FROM_LOST, &r.to, &ended), -ECONNRESET);
    rig_done(&r);
}

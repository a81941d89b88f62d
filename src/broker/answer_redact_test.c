#include "broker/answer_redact.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"

#define WORD "s3cr3t-word"
#define STARS "***********"

static struct redact_words *words(void)
{
    struct redact_words *w = redact_words_new();
    CHECK(w);
    CHECK_OK(redact_words_add(w, WORD, strlen(WORD)));
    return w;
}

static void check_head(const char *in, const struct answer_redact_head *how, const char *want)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
    struct head h;
    CHECK_OK(head_answer(in, strlen(in), false, &h));
    CHECK_OK(answer_redact_head(&h, how, &out));
    CHECK_STR(out.data, want);
}

TEST(a_head_is_clean_and_says_how_its_body_ends)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words();
    struct answer_redact_head how = { .words = w, .hides = true, .keep = true, .chunks = true };
    check_head("HTTP/1.0 200 " WORD "\r\nX-" WORD ": a " WORD "\r\nContent-Length: 3\r\n"
               "Connection: X-Hop\r\nX-Hop: 1\r\nAlt-Svc: h3\r\n\r\n",
               &how,
               "HTTP/1.1 200 " STARS "\r\nX-" STARS ": a " STARS "\r\nContent-Length: 3\r\n\r\n");
    check_head("HTTP/1.1 200 OK\r\n\r\n", &how,
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    how.chunks = how.keep = false;
    check_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &how,
               "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    check_head("HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
               "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
               &how, "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

/* What a client gets of a body that comes in pieces of this size. */
static enum flow_state pass(enum body_kind kind, const char *in, size_t piece, bool chunks,
                            struct buf *out)
{
    int from[2], to[2];
    struct sock in_sock, out_sock;
    struct answer_redact w = { 0 };
    struct buf early = BUF_INIT(65536), pending = BUF_INIT(65536);
    enum flow_state s = FLOW_WAIT_FROM;
    struct redact_words *found = words();
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, from), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, to), 0);
    sock_init(&in_sock, NULL, from[0], NULL);
    sock_init(&out_sock, NULL, to[0], NULL);
    CHECK_OK(answer_redact_start(&w, kind, strlen(in), found, chunks));
    for (size_t at = 0, n = strlen(in); at < n && s == FLOW_WAIT_FROM; at += piece) {
        CHECK_OK(fd_write_full(from[1], in + at, n - at < piece ? n - at : piece));
        s = answer_redact_run(&w, &in_sock, &early, &out_sock, &pending);
    }
    (void)close(from[1]);
    if (s == FLOW_WAIT_FROM)
        s = answer_redact_run(&w, &in_sock, &early, &out_sock, &pending);
    (void)close(to[0]);
    char got[4096];
    for (ssize_t n; (n = read(to[1], got, sizeof(got))) > 0;)
        CHECK_OK(buf_append(out, got, (size_t)n));
    (void)close(to[1]);
    (void)close(from[0]);
    answer_redact_done(&w);
    buf_done(&early);
    buf_done(&pending);
    redact_words_unref(found);
    return s;
}

TEST(a_length_stays_true)
{
    static const char in[] = "a " WORD " and s3cr3t and " WORD;
    for (size_t piece = 1; piece < sizeof(in); piece++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        CHECK_EQ(pass(BODY_LENGTH, in, piece, true, &out), FLOW_DONE);
        CHECK_STR(out.data, "a " STARS " and s3cr3t and " STARS);
    }
}

TEST(chunks_are_made_anew_or_left_out)
{
    static const char in[] =
        "3;x=" WORD "\r\na s\r\n6\r\n3cr3t-\r\n5\r\nword!\r\n0\r\nX: " WORD "\r\n\r\n";
    _cleanup_(buf_done) struct buf whole = BUF_INIT(65536);
    CHECK_EQ(pass(BODY_CHUNKED, in, sizeof(in), true, &whole), FLOW_DONE);
    CHECK_STR(whole.data, "e\r\na " STARS "!\r\n0\r\n\r\n");
    for (size_t piece = 1; piece < sizeof(in); piece++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        CHECK_EQ(pass(BODY_CHUNKED, in, piece, false, &out), FLOW_DONE);
        CHECK_STR(out.data, "a " STARS "!");
    }
}

TEST(what_ends_with_its_sender_is_whole_and_what_was_cut_is_not)
{
    _cleanup_(buf_done) struct buf whole = BUF_INIT(65536), cut = BUF_INIT(65536);
    CHECK_EQ(pass(BODY_UNTIL_END, "x " WORD, 3, true, &whole), FLOW_DONE);
    CHECK(strstr(whole.data, "\r\n0\r\n\r\n"));
    CHECK(!strstr(whole.data, "s3c"));
    CHECK_EQ(pass(BODY_CHUNKED, "5\r\nab", 3, true, &cut), FLOW_FROM_LOST);
}

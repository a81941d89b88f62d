#include "front/http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "front/http/request.h"

/* ---- handlers ---- */

static _Atomic int frees, cancels, sunk, hung;
static _Atomic int lines; /* that a stream may say */

static int say_ok(struct request *req, struct err *err)
{
    struct buf b = BUF_INIT(1000);
    struct jout j = JOUT_INIT(&b);
    jout_open(&j, NULL, '{');
    jout_uint(&j, "body", req->body.len);
    jout_str(&j, "arg", req->args[0]);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

static int say_taken(struct request *req, struct err *err)
{
    return err_fail(err, FAIL_NAME_TAKEN, "it is \"taken\"");
}

static int fail_without_a_word(struct request *req, struct err *err)
{
    return -EIO;
}

static int wait_for_hangup(struct request *req, struct err *err)
{
    atomic_fetch_add(&hung, 1);
    int r = fd_wait(req->fd, POLLRDHUP, 60000);
    atomic_fetch_add(&cancels, r > 0);
    return -ECANCELED;
}

static int three(void *arg, struct buf *out)
{
    int *n = arg;
    if (*n == 3)
        return 0;
    WAIT_FOR(atomic_load(&lines) > *n);
    return buf_printf(out, "line %d\n", ++*n) < 0 ? -ENOMEM : 1;
}

static void free_three(void *arg)
{
    atomic_fetch_add(&frees, 1);
    free(arg);
}

static int stream_three(struct request *req, struct err *err)
{
    static const struct reply_source source = { three, free_three };
    return reply_stream(req, "text/plain", &source, calloc(1, sizeof(int)));
}

static int sink_begin(struct request *req, struct err *err)
{
    return 0;
}

static int sink_write(struct request *req, const char *p, size_t n, struct err *err)
{
    atomic_fetch_add(&sunk, (int)n);
    return p[0] == '!' ? err_fail(err, FAIL_INVALID_IMAGE, "not a tar") : 0;
}

static void sink_end(struct request *req)
{
    atomic_fetch_add(&frees, 1);
}

static const struct route_sink sink = { sink_begin, sink_write, sink_end, NULL };

static const struct route routes[] = {
    { "GET", "/ok", auth_none, BODY_NONE, say_ok, NULL },
    { "POST", "/json/{x}", auth_none, BODY_JSON, say_ok, NULL },
    { "GET", "/fail", auth_none, BODY_NONE, say_taken, NULL },
    { "GET", "/quiet", auth_none, BODY_NONE, fail_without_a_word, NULL },
    { "GET", "/hang", auth_none, BODY_NONE, wait_for_hangup, NULL },
    { "GET", "/stream", auth_none, BODY_NONE, stream_three, NULL },
    { "PUT", "/sink", auth_none, BODY_STREAM, say_ok, &sink },
};

static int put_error(struct request *req, const struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    jout_open(&j, NULL, '{');
    jout_str(&j, "code", failure_name(err->failure));
    jout_str(&j, "message", err->msg);
    jout_close(&j, '}');
    return reply_json(req, failure_status(err->failure), &j);
}

static const struct dialect dialect = {
    .name = "test", .routes = routes, .nroutes = ARRAY_LEN(routes), .error = put_error
};
static const struct dialect *const dialects[] = { &dialect, NULL };

/* ---- a client of a few lines ---- */

static struct server *server;
static struct sockaddr_in address;

static void up(void)
{
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    address = (struct sockaddr_in){ .sin_family = AF_INET };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_OK(bind(fd, (struct sockaddr *)&address, sizeof(address)));
    CHECK_OK(listen(fd, 16));
    CHECK_OK(getsockname(fd, (struct sockaddr *)&address, &n));
    struct server_config c = {
        .dialects = dialects, .tcp_fd = fd, .admin_fd = -1, .connections = { 64, 64, 64, 16 }
    };
    CHECK_OK(server_new(&c, &server, NULL));
}

static void down(void)
{
    server_free(server);
    server = NULL;
}

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_OK(connect(fd, (struct sockaddr *)&address, sizeof(address)));
    return fd;
}

/* Send, then read until `end` was seen or the other side closed. */
static void talk(int fd, const char *ask, const char *end, struct buf *got)
{
    CHECK_OK(fd_write_full(fd, ask, strlen(ask)));
    buf_clear(got);
    while (!got->data || !strstr(got->data, end)) {
        char piece[4096];
        if (fd_wait(fd, POLLIN, 5000) <= 0)
            break;
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n <= 0)
            break;
        CHECK_OK(buf_append(got, piece, (size_t)n));
    }
}

static void expect(const char *ask, const char *status, const char *inside)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    _cleanup_fd_ int fd = dial();

    talk(fd, ask, "}", &got);
    CHECK(got.data != NULL);
    if (!strstr(got.data, status) || !strstr(got.data, inside))
        print_message("asked: %.60s\ngot: %s\n", ask, got.data);
    CHECK(strstr(got.data, status) != NULL);
    CHECK(strstr(got.data, inside) != NULL);
}

#define GET(path_) "GET " path_ " HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST(head_, body_) "POST /json/a%20b HTTP/1.1\r\nHost: x\r\n" head_ "\r\n" body_

TEST(requests_find_their_handlers_and_failures_their_codes)
{
    up();
    expect(GET("/ok"), "200 OK", "\"body\":0");
    expect(GET("/ok"), "X-Request-Id: r", "");
    expect(POST("Content-Length: 2\r\n", "{}"), "200 OK", "{\"body\":2,\"arg\":\"a b\"}");
    expect(POST("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), "200 OK", "\"body\":2");
    expect(GET("/fail"), "409 Conflict", "\"name_taken\",\"message\":\"it is \\\"taken\\\"\"");
    expect(GET("/quiet"), "500 ", "\"internal\"");
    expect(GET("/nope"), "404 ", "\"not_found\"");
    expect("DELETE /ok HTTP/1.1\r\nHost: x\r\n\r\n", "Allow: GET, HEAD", "method_not_allowed");
    expect(GET("/%zz"), "400 ", "\"invalid_path\"");
    down();
}

TEST(heads_that_could_be_read_two_ways_are_refused)
{
    up();
    expect(POST("Content-Length: 2\r\nContent-Length: 3\r\n", "{}x"), "400 ", "");
    expect(POST("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
           "400 ", "");
    expect("GET /ok HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400 ", "");
    expect("GET /ok HTTP/1.1\r\n\r\n", "400 ", "");
    down();
}

TEST(a_body_over_the_limit_is_refused_and_the_answer_arrives)
{
    _cleanup_(buf_done) struct buf ask = BUF_INIT(16 << 20);
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    const size_t n = REQUEST_JSON_MAX + 1;

    up();
    CHECK_OK(
        buf_printf(&ask, "POST /json/x HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", n));
    CHECK_OK(buf_reserve(&ask, n));
    memset(ask.data + ask.len, 'x', n);
    ask.data[ask.len + n] = '\0';
    _cleanup_fd_ int fd = dial();
    talk(fd, ask.data, "}", &got);
    CHECK(strstr(got.data, "413 ") != NULL);
    CHECK(strstr(got.data, "body_too_large") != NULL);
    talk(fd, GET("/ok"), "}", &got); /* and the connection is still good */
    CHECK(strstr(got.data, "200 OK") != NULL);
    down();
}

TEST(a_stream_comes_line_by_line_and_is_freed)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);

    up();
    atomic_store(&frees, 0);
    atomic_store(&lines, 1);
    _cleanup_fd_ int fd = dial();
    talk(fd, GET("/stream"), "line 1\n", &got);
    CHECK(strstr(got.data, "line 2") == NULL);
    atomic_store(&lines, 3);
    talk(fd, "", "\r\n0\r\n", &got);
    CHECK(strstr(got.data, "line 3") != NULL);
    talk(fd, GET("/ok"), "}", &got);
    CHECK(strstr(got.data, "200 OK") != NULL);
    down();
    CHECK_EQ(atomic_load(&frees), 1);
}

TEST(a_client_that_hangs_up_is_noticed)
{
    up();
    atomic_store(&cancels, 0);
    atomic_store(&hung, 0);
    int fd = dial();
    CHECK_OK(fd_write_full(fd, GET("/hang"), strlen(GET("/hang"))));
    WAIT_FOR(atomic_load(&hung) == 1);
    (void)close(fd);
    WAIT_FOR(atomic_load(&cancels) == 1);
    down();
}

TEST(an_upload_is_passed_on_and_its_sink_always_ends)
{
    up();
    atomic_store(&frees, 0);
    atomic_store(&sunk, 0);
    expect("PUT /sink HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde", "200 OK", "");
    CHECK_EQ(atomic_load(&sunk), 5);
    expect("PUT /sink HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n!bcde", "400 ",
           "invalid_image");
    int fd = dial(); /* and one that stops half-way */
    const char *half = "PUT /sink HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab";
    CHECK_OK(fd_write_full(fd, half, strlen(half)));
    WAIT_FOR(atomic_load(&sunk) == 12);
    (void)close(fd);
    down();
    CHECK_EQ(atomic_load(&frees), 3);
}

TEST(stopping_cuts_what_waits)
{
    up();
    atomic_store(&hung, 0);
    _cleanup_fd_ int fd = dial();
    CHECK_OK(fd_write_full(fd, GET("/hang"), strlen(GET("/hang"))));
    WAIT_FOR(atomic_load(&hung) == 1);
    int64_t start = clock_mono_ms();
    server_stop(server, 100);
    CHECK(clock_mono_ms() - start < 30000); /* it would wait for a minute */
    down();
}

/* A tap between a client of ours and a real server under TLS, in a process of its own. The server says
 * what it got, in several forms. */
#include "broker/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "broker/bound.h"
#include "broker/egress_private.h"
#include "broker/leaf.h"
#include "broker/leaf_kit.h"
#include "broker/trust.h"

#define ID "a0000000000000000000"
#define VALUE "s3cr3t-Value/42"
#define WAIT_MS 60000 /* far longer than anything here takes */

static struct {
    struct loop *loop;
    struct egress *egress;
    struct network *net;
    struct trust *trust;
    struct authority world, box;
    struct range opened;
    uint16_t port;
    pid_t server;
    struct egress_record last;
    size_t records, gathered;
    char ca_path[64];
} w;

/* ---- the server ---- */

static void say(SSL *ssl, const char *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        int r = SSL_write(ssl, p + at, (int)(n - at));
        if (r <= 0)
            _exit(0);
        at += (size_t)r;
    }
}

static void say_text(SSL *ssl, const char *text)
{
    say(ssl, text, strlen(text));
}

static void say_frame(SSL *ssl, unsigned first, const char *p, size_t n)
{
    const char head[] = { (char)first, 126, (char)(n >> 8), (char)n };
    say(ssl, head, sizeof(head));
    say(ssl, p, n);
}

/* A head and, of a small body, all. */
static size_t hear(SSL *ssl, char *got, size_t size)
{
    size_t n = 0, end = 0, want = 0;
    while (n < size - 1) {
        int r = SSL_read(ssl, got + n, (int)(size - 1 - n));
        if (r <= 0)
            return 0;
        n += (size_t)r;
        got[n] = '\0';
        const char *blank = strstr(got, "\r\n\r\n"), *length = strcasestr(got, "content-length:");
        end = blank ? (size_t)(blank + 4 - got) : 0;
        want = length ? strtoul(length + 15, NULL, 10) : 0;
        if (end && n >= end + want)
            break;
    }
    return n;
}

static void answer(SSL *ssl, const char *got, size_t n)
{
    char head[256];
    struct buf encoded = BUF_INIT(1 << 20);
    if (strstr(got, "GET /gzip")) {
        say_text(ssl, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx");
    } else if (strstr(got, "GET /chunks")) {
        say_text(ssl, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (size_t i = 0; i < n; i++) {
            (void)snprintf(head, sizeof(head), "1\r\n%c\r\n", got[i]);
            say_text(ssl, head);
        }
        say_text(ssl, "0\r\nX-Trailer: " VALUE "\r\n\r\n");
    } else if (strstr(got, "GET /until")) {
        say_text(ssl, "HTTP/1.1 200 OK\r\n\r\n");
        say(ssl, got, n);
        (void)SSL_shutdown(ssl);
        _exit(0);
    } else if (strstr(got, "GET /socket")) {
        say_text(ssl, "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
        say_frame(ssl, 0x01, got, n / 2); /* in two: a border among the credentials */
        say_frame(ssl, 0x80, got + n / 2, n - n / 2);
        int r = SSL_read(ssl, head, sizeof(head));
        if (r > 0)
            say_frame(ssl, 0x81, head, (size_t)r);
        (void)SSL_shutdown(ssl);
        _exit(0);
    } else {
        CHECK_OK(base64_encode(got, n, &encoded));
        (void)snprintf(head, sizeof(head),
                       "HTTP/1.1 302 Go %s\r\nLocation: https://evil.test/?k=%s\r\n"
                       "Content-Length: %zu\r\n\r\n",
                       VALUE, VALUE, n + encoded.len);
        say_text(ssl, head);
        say(ssl, got, n);
        say(ssl, encoded.data, encoded.len);
    }
    buf_done(&encoded);
}

static _Noreturn void serve(int fd, SSL *ssl)
{
    static char got[65536];
    (void)SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1)
        for (size_t n, before = 0; (n = hear(ssl, got, sizeof(got))) > 0; before++) {
            if (before && strstr(got, "/lost "))
                break; /* perhaps after it did as it was told */
            answer(ssl, got, n);
        }
    _exit(0);
}

static pid_t start_server(const char *host, uint16_t *ret_port)
{
    struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(sa);
    struct leaves *l = NULL;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    CHECK_EQ(listen(fd, 16), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    *ret_port = ntohs(sa.sin_port);
    CHECK_OK(leaves_new(w.world.pem, w.world.n, &l, NULL));
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGCHLD, SIG_IGN);
        for (;;) {
            int one = accept(fd, NULL, NULL);
            if (one >= 0 && fork() == 0)
                serve(one, leaves_accept(l, host));
            (void)close(one);
        }
    }
    leaves_free(l);
    (void)close(fd);
    return pid;
}

/* ---- the world ---- */

static void on_record(void *arg, const struct egress_record *rec)
{
    w.last = *rec;
    w.records++;
    w.gathered = w.net->n_gathered; /* what it was when the request was over */
}

/* '@' is the server's port. */
static void bind_lines(const char *lines, const char *value)
{
    struct bindings bs = BINDINGS_INIT;
    struct buf packed = BUF_INIT(1 << 20);
    struct buf text = BUF_INIT(1024);
    for (const char *p = lines; *p; p++)
        CHECK_OK(*p == '@' ? buf_printf(&text, "%u", w.port) : buf_append(&text, p, 1));
    CHECK_OK(bindings_parse(text.data, text.len, &bs, NULL));
    buf_done(&text);
    for (size_t i = 0; i < bs.n && value; i++) {
        bs.items[i].value = strdup(value);
        bs.items[i].n_value = strlen(value);
    }
    CHECK_OK(bindings_pack(&bs, &packed));
    CHECK_OK(egress_bindings(w.egress, ID, packed.data, packed.len, NULL));
    bindings_done(&bs);
    buf_done(&packed);
}

static void need_world(void)
{
    struct egress_config config = { .record = on_record, .opened = &w.opened, .n_opened = 1 };
    struct err err = ERR_INIT;
    if (w.loop)
        return;
    (void)signal(SIGPIPE, SIG_IGN);
    w.world = make_authority();
    w.box = make_authority();
    (void)snprintf(w.ca_path, sizeof(w.ca_path), "/tmp/tap_test.%d.pem", (int)getpid());
    FILE *f = fopen(w.ca_path, "we");
    CHECK(f && PEM_write_X509(f, w.world.cert) == 1);
    (void)fclose(f);
    CHECK_OK(trust_new(w.ca_path, &w.trust, &err));
    (void)unlink(w.ca_path);
    config.trust = w.trust;
    CHECK_OK(range_parse("127.0.0.1/32", 12, &w.opened));
    w.server = start_server("api.test", &w.port);
    CHECK_OK(loop_new(&w.loop));
    CHECK_OK(egress_new(w.loop, &config, &w.egress, &err));
    CHECK_OK(egress_ca(w.egress, ID, w.box.pem, w.box.n, &err));
    for (size_t i = 0; i < ARRAY_LEN(w.egress->networks); i++)
        w.net = w.egress->networks[i] ? w.egress->networks[i] : w.net;
    CHECK(w.net);
}

/* ---- a client, on a blocking socket in a process of its own ---- */

struct client {
    struct watch watch;
    struct deadline late;
    int fd;
    struct buf got;
};

static void on_got(struct watch *watch, uint32_t events)
{
    struct client *c = container_of(watch, struct client, watch);
    char piece[65536];
    ssize_t n = read(c->fd, piece, sizeof(piece));
    if (n <= 0)
        loop_stop(w.loop);
    else
        CHECK_OK(buf_append(&c->got, piece, (size_t)n));
}

static void on_late(struct deadline *d)
{
    fail_msg("nothing came");
}

/* Says it under TLS to the host, and gives back what it hears. */
static _Noreturn void speak(int fd, int out, const char *host, const char *text, size_t n)
{
    static char piece[65536];
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    (void)X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), w.box.cert);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL *ssl = SSL_new(ctx);
    (void)SSL_set1_host(ssl, host);
    (void)SSL_set_fd(ssl, fd);
    if (SSL_connect(ssl) != 1)
        _exit(1);
    for (size_t at = 0; at < n;) {
        int r = SSL_write(ssl, text + at, (int)(n - at));
        if (r <= 0)
            break;
        at += (size_t)r;
    }
    for (int r; (r = SSL_read(ssl, piece, sizeof(piece))) > 0;)
        (void)fd_write_full(out, piece, (size_t)r);
    _exit(0);
}

/* What comes back for these bytes until the connection ends. */
static void talk(const char *text, size_t n, struct buf *out)
{
    int pair[2], said[2];
    struct client c = { .watch = { -1, on_got }, .got = BUF_INIT(16 << 20) };
    need_world();
    w.records = 0;
    struct address here = address_v4((const uint8_t[4]){ 127, 0, 0, 1 });
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQ(pipe(said), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        (void)close(said[0]);
        speak(pair[1], said[1], "api.test", text, n);
    }
    (void)close(pair[1]);
    (void)close(said[1]);
    c.fd = said[0];
    CHECK_OK(loop_add(w.loop, &c.watch, c.fd, EPOLLIN));
    loop_deadline(w.loop, &c.late, clock_mono_ms() + WAIT_MS, on_late);
    struct buf nothing = BUF_INIT(1);
    CHECK_OK(fd_set_nonblock(pair[0], true));
    tap_begin(w.net, pair[0], &nothing, "api.test", &here, w.port);
    CHECK_OK(loop_run(w.loop, 0, NULL, NULL));
    loop_no_deadline(w.loop, &c.late);
    loop_remove(w.loop, &c.watch);
    (void)close(c.fd);
    (void)waitpid(pid, NULL, 0);
    CHECK_OK(buf_append(out, c.got.data ? c.got.data : "", c.got.len));
    buf_done(&c.got);
}

static void ask(const char *text, struct buf *out)
{
    talk(text, strlen(text), out);
}

static bool shows(const struct buf *b, const char *what)
{
    return memmem(b->data, b->len, what, strlen(what)) != NULL;
}

#define BEARER                                                              \
    "secret=s host=api.test port=@ methods=GET,POST path=/v1/* as=bearer\n" \
    "secret=s host=api.test port=@ path=/* methods=GET,POST as=header header=X-Key"
#define CLOSE "Host: api.test\r\nConnection: close\r\n\r\n"

static void check_hidden(const struct buf *b)
{
    CHECK(!shows(b, VALUE));
    CHECK(!shows(b, "czNjcjN0LVZhbHVlLzQy") && !shows(b, "M2NyM3QtVmFsdWUvNDI") &&
          !shows(b, "zY3IzdC1WYWx1ZS80M"));
}

TEST(an_echo_shows_that_there_was_a_credential_and_not_which)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    need_world();
    bind_lines(BEARER, VALUE);
    ask("GET /v1/x HTTP/1.1\r\nAuthorization: mine\r\n" CLOSE, &got);
    CHECK(shows(&got, "HTTP/1.1 302 Go ***************\r\n"));
    CHECK(shows(&got, "Location: https://evil.test/?k=***************\r\n"));
    CHECK(shows(&got, "Authorization: Bearer ***************\r\n"));
    CHECK(shows(&got, "X-Key: ***************\r\n") && !shows(&got, "mine"));
    check_hidden(&got);
    CHECK_EQ(w.records, 1);
    CHECK_STR(w.last.binding, "s");
    CHECK_STR(w.last.name, "api.test");
    CHECK(w.last.allowed && w.last.sent_bytes > 50 && w.last.received_bytes > 100);
}

TEST(chunks_do_not_part_a_secret)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    need_world();
    bind_lines(BEARER, VALUE);
    ask("GET /chunks HTTP/1.1\r\n" CLOSE, &got);
    CHECK(shows(&got, "Transfer-Encoding: chunked\r\n") && shows(&got, "\r\n0\r\n\r\n"));
    CHECK(!shows(&got, "X-Trailer"));
    check_hidden(&got);
}

TEST(a_client_of_http_1_0_gets_no_chunks)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    need_world();
    bind_lines(BEARER, VALUE);
    ask("GET /chunks HTTP/1.0\r\n\r\n", &got);
    CHECK(shows(&got, "X-Key: ***************\r\n"));
    CHECK(!shows(&got, "Transfer-Encoding"));
    CHECK(shows(&got, "\r\n\r\nGET /chunks HTTP/1.1\r\n"));
    check_hidden(&got);
}

TEST(an_answer_without_a_length_is_sent_on)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    need_world();
    bind_lines(BEARER, VALUE);
    ask("GET /until HTTP/1.1\r\n" CLOSE, &got);
    CHECK(shows(&got, "X-Key: ***************\r\n") && shows(&got, "\r\n0\r\n\r\n"));
    check_hidden(&got);
}

TEST(requests_follow_each_other_on_one_connection)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    need_world();
    bind_lines(BEARER, VALUE);
    ask("GET /v1/a HTTP/1.1\r\nHost: api.test\r\n\r\n"
        "POST /v1/b HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\n\r\nhello"
        "GET /v1/c HTTP/1.1\r\n" CLOSE,
        &got);
    CHECK(shows(&got, "GET /v1/a HTTP/1.1\r\n") && shows(&got, "POST /v1/b HTTP/1.1\r\n") &&
          shows(&got, "GET /v1/c HTTP/1.1\r\n"));
    CHECK_EQ(w.records, 3);
    check_hidden(&got);
}

TEST(what_may_have_been_done_is_not_asked_for_again)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20), post = BUF_INIT(1 << 20);
    need_world();
    bind_lines(BEARER, VALUE);
    ask("GET /v1/a HTTP/1.1\r\nHost: api.test\r\n\r\nGET /v1/lost HTTP/1.1\r\n" CLOSE, &got);
    CHECK(shows(&got, "GET /v1/lost HTTP/1.1\r\n")); /* on another connection */
    ask("GET /v1/a HTTP/1.1\r\nHost: api.test\r\n\r\n"
        "POST /v1/lost HTTP/1.1\r\nContent-Length: 0\r\n" CLOSE,
        &post);
    CHECK(shows(&post, " 502 ") && shows(&post, "binding_broken_answer"));
    CHECK(!shows(&post, "POST /v1/lost"));
}

TEST(nothing_goes_along_beside_a_body)
{
    static const char *const bodies[] = {
        "5;a=\"b\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX-HTTP-Method-Override: DELETE\r\n\r\n",
        "5\r\nhello\r\n0;x\r\n\r\n",
    };
    need_world();
    bind_lines(BEARER, VALUE);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20), text = BUF_INIT(4096);
        CHECK_OK(buf_printf(
            &text, "POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" CLOSE "%s", bodies[i]));
        ask(text.data, &got);
        CHECK(shows(&got, " 400 ") && !shows(&got, "Override"));
    }
}

static size_t uses;
static char used[4][400];

static int on_row(void *arg, const struct tally_row *row)
{
    if (row->kind == TALLY_USE && uses < ARRAY_LEN(used))
        (void)snprintf(used[uses++], sizeof(used[0]), "%s %s %u", row->binding, row->host,
                       row->connections);
    return 0;
}

TEST(every_secret_that_went_along_is_told_of_whatever_the_log_has_room_for)
{
    static struct tally tally;
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20), refused = BUF_INIT(1 << 20);
    need_world();
    tally_init(&tally, w.loop, on_row, NULL);
    w.egress->config.tally = &tally;
    bind_lines("secret=one host=api.test port=@ path=/v1/* as=bearer\n"
               "secret=two host=api.test port=@ path=/v1/* as=header header=X-Key\n"
               "secret=three host=api.test port=@ path=/v1/* as=header header=authorization\n"
               "secret=four host=api.test port=@ path=/v2/* as=bearer\n"
               "value=five host=api.test port=@ path=/v1/* as=header header=X-Five",
               VALUE);
    struct bucket room = w.net->records;
    w.net->records.level = INT32_MIN; /* there is none */
    ask("GET /v1/a HTTP/1.1\r\nHost: api.test\r\n\r\nGET /v1/b HTTP/1.1\r\n" CLOSE, &got);
    CHECK_EQ(w.records, 0);
    ask("GET /v3/b HTTP/1.1\r\n" CLOSE, &refused);
    tally_done(&tally);
    w.egress->config.tally = NULL;
    w.net->records = room;
    CHECK_EQ(uses, 2); /* the third sets what the first did */
    size_t first = strncmp(used[0], "one", 3) != 0;
    CHECK_STR(used[first], "one api.test 2");
    CHECK_STR(used[!first], "two api.test 2");
}

TEST(what_no_binding_fits_is_refused_and_the_rules_may_let_it_pass_bare)
{
    static const char rule[] = "allow api.test";
    _cleanup_(buf_done) struct buf denied = BUF_INIT(1 << 20), passed = BUF_INIT(1 << 20);
    need_world();
    bind_lines("secret=s host=api.test port=@ methods=GET path=/v1/* as=bearer", VALUE);
    ask("DELETE /v1/x HTTP/1.1\r\n" CLOSE, &denied);
    CHECK(shows(&denied, "HTTP/1.1 403 ") && shows(&denied, "network_denied"));
    CHECK(!w.last.allowed);
    CHECK_OK(egress_rules(w.egress, ID, rule, strlen(rule), false, NULL));
    ask("DELETE /v1/x HTTP/1.1\r\nAuthorization: mine\r\n" CLOSE, &passed);
    CHECK(shows(&passed, "Authorization: mine\r\n") && !shows(&passed, "Bearer"));
    CHECK_STR(w.last.binding, "");
    CHECK_OK(egress_rules(w.egress, ID, "", 0, false, NULL));
}

TEST(what_could_deceive_is_refused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "GET /v1/x HTTP/1.1\r\nHost: evil.test\r\n\r\n", " 421 " },
        { "TRACE /v1/x HTTP/1.1\r\n" CLOSE, " 405 " },
        { "GET /v1/x HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n" CLOSE,
          " 400 " },
        { "GET /v1/x HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n" CLOSE, " 400 " },
        { "GET /v1/x HTTP/1.1\nHost: api.test\n\n", " 400 " },
        { "GET http://evil.test/ HTTP/1.1\r\n" CLOSE, " 400 " },
        { "GET /v1/../admin HTTP/1.1\r\n" CLOSE, " 403 " },
        { "GET /v1/%2e%2e/admin HTTP/1.1\r\n" CLOSE, " 403 " },
        { "GET /gzip HTTP/1.1\r\n" CLOSE, " 403 " },
        { "GET /v1/GET /gzip HTTP/1.1\r\n" CLOSE, " 400 " },
    };
    need_world();
    bind_lines("secret=s host=api.test port=@ methods=GET path=/v1/* as=bearer", VALUE);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
        ask(cases[i].text, &got);
        CHECK(shows(&got, cases[i].want));
        CHECK(!shows(&got, "Bearer"));
    }
}

TEST(an_encoded_answer_is_refused)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    need_world();
    bind_lines(BEARER, VALUE);
    ask("GET /gzip HTTP/1.1\r\n" CLOSE, &got);
    CHECK(shows(&got, " 502 ") && shows(&got, "binding_encoded_answer"));
}

TEST(a_socket_is_looked_through_as_well)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    need_world();
    bind_lines(BEARER, VALUE);
    ask("GET /socket HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        "Host: api.test\r\n\r\nand " VALUE "!",
        &got);
    CHECK(shows(&got, "HTTP/1.1 101 ") && !shows(&got, "deflate"));
    CHECK(shows(&got, "X-Key: ***************\r\n") && shows(&got, "and ***************!"));
    check_hidden(&got);
}

TEST(without_its_value_nothing_is_sent)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    need_world();
    bind_lines(BEARER, NULL);
    ask("GET /v1/x HTTP/1.1\r\n" CLOSE, &got);
    CHECK(shows(&got, " 503 ") && shows(&got, "binding_no_value"));
}

TEST(another_certificate_is_not_sent_anything)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    uint16_t right;
    need_world();
    right = w.port;
    pid_t other = start_server("other.test", &w.port);
    bind_lines(BEARER, VALUE);
    ask("GET /v1/x HTTP/1.1\r\n" CLOSE, &got);
    w.port = right;
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    CHECK(shows(&got, " 502 ") && shows(&got, "binding_certificate"));
    CHECK(w.last.failure != 0);
}

TEST(a_large_body_passes_both_ways)
{
    enum { SIZE = 60000 };
    static char text[SIZE + 200];
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    int n =
        snprintf(text, sizeof(text), "POST /v1/x HTTP/1.1\r\nContent-Length: %d\r\n" CLOSE, SIZE);
    need_world();
    bind_lines(BEARER, VALUE);
    memset(text + n, 'x', SIZE);
    talk(text, (size_t)n + SIZE, &got);
    CHECK(got.len > SIZE + SIZE / 3 * 4);
}

TEST(a_body_is_gathered_and_signed)
{
    _cleanup_(buf_done) struct buf got = BUF_INIT(1 << 20);
    need_world();
    bind_lines("secret=s host=api.test port=@ as=sigv4 access_key=AK region=r service=lambda",
               VALUE);
    ask("POST /v1/x HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n"
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        &got);
    CHECK(shows(&got, "Authorization: AWS4-HMAC-SHA256 Credential=AK/"));
    CHECK(shows(&got, "Content-Length: 5\r\n\r\nabcde"));
    CHECK_EQ(w.gathered, 5);
    CHECK_EQ(w.net->n_gathered, 0);
    CHECK_EQ(w.egress->n_gathered, 0);
}

TEST(a_value_that_was_replaced_stays_hidden)
{
    _cleanup_(buf_done) struct buf one = BUF_INIT(1 << 20), two = BUF_INIT(1 << 20);
    need_world();
    bind_lines(BEARER, VALUE);
    bind_lines("secret=s host=api.test port=@ path=/* methods=GET as=basic user=u", "second-Value");
    CHECK_OK(egress_bindings(w.egress, ID, NULL, 0, NULL)); /* with nothing bound in between */
    bind_lines(BEARER, "third-Value");
    ask("GET /v1/" VALUE "/second-Value/dTpzZWNvbmQtVmFsdWU= HTTP/1.1\r\n" CLOSE, &one);
    check_hidden(&one);
    CHECK(!shows(&one, "second-Value") && !shows(&one, "dTpzZWNvbmQtVmFsdWU="));
    CHECK(shows(&one, "Bearer ***********\r\n"));
    for (int i = '0'; i < '6'; i++) /* what is kept is bounded */
        bind_lines(BEARER, (char[]){ 'v', 'a', 'l', 'u', 'e', '-', (char)i, '\0' });
    ask("GET /v1/" VALUE "/value-2 HTTP/1.1\r\n" CLOSE, &two);
    CHECK(shows(&two, VALUE) && !shows(&two, "value-2"));
}

TEST(a_sandbox_that_goes_takes_its_connections_along)
{
    need_world();
    egress_free(w.egress);
    w.egress = NULL;
    trust_free(w.trust);
    (void)kill(w.server, SIGKILL);
    (void)waitpid(w.server, NULL, 0);
    authority_done(&w.world);
    authority_done(&w.box);
    loop_free(w.loop);
}

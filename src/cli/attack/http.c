/* http - requests that two readers could understand differently, and connections that never end.
 * A strict reader answers with an error and closes, so that nothing can hide behind the first
 * request. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/attack/attack.h"
#include "cli/attack/wire.h"
#include "cli/xmem.h"

#define QUIET_MS 2500
#define ANSWER_MAX (1 << 20)
#define HIDDEN "GET /v1/hidden HTTP/1.1\r\nHost: HOST\r\n\r\n"
#define CROWD 256  /* connections that any daemon stands */
#define FLOOD 4400 /* connections that broke one */

/* Replace "HOST" in a row with the real one. */
static char *fill_in(const struct attack *a, const char *text)
{
    char host[256];
    struct buf b = BUF_INIT(1 << 20);
    (void)wire_host(a, host, sizeof(host));
    for (const char *at; (at = strstr(text, "HOST")); text = at + 4) {
        xputn(&b, text, (size_t)(at - text));
        xputs(&b, host);
    }
    xputs(&b, text);
    return buf_steal(&b);
}

/* Does the connection serve a second request? */
static bool still_serves(const struct attack *a, int fd)
{
    _cleanup_free_ char *again = fill_in(a, "GET /v1/health HTTP/1.1\r\nHost: HOST\r\n\r\n");
    struct buf b = BUF_INIT(ANSWER_MAX);
    if (wire_send(fd, again, strlen(again)))
        (void)wire_read(fd, &b, QUIET_MS);
    bool serves = wire_answers(&b) > 0;
    buf_done(&b);
    return serves;
}

static void judge(struct attack *a, int fd, struct buf *answer, bool closed, struct trial *t)
{
    int status = wire_status(answer);
    unsigned n = wire_answers(answer);
    if (n > 1)
        trial_broke(t, "%u answers: something hid behind the first request", n);
    else if (status >= 200 && status < 300)
        trial_broke(t, "it was taken for a good request: %d", status);
    else if (status == 0 && !closed)
        trial_broke(t, "no answer, and the connection stays");
    else if (!closed && still_serves(a, fd))
        trial_broke(t, "%d, and the connection is used on", status);
    else
        trial_held(t, "%d, and the connection is closed", status);
}

static void run_bytes(struct attack *a, const char *bytes, size_t n, struct trial *t)
{
    _cleanup_fd_ int fd = wire_open(a);
    struct buf answer = BUF_INIT(ANSWER_MAX);
    if (fd < 0) {
        trial_error(t, "cannot connect: %s", strerror(-fd));
        return;
    }
    (void)wire_send(fd, bytes, n);
    bool closed = wire_read(fd, &answer, QUIET_MS);
    judge(a, fd, &answer, closed, t);
    buf_done(&answer);
}

static void run_strange(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *bytes = fill_in(a, self->text);
    run_bytes(a, bytes, strlen(bytes), t);
}

/* A well-formed request that must be refused: the connection may go on. */
static void run_refused(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *bytes = fill_in(a, self->text);
    _cleanup_fd_ int fd = wire_open(a);
    struct buf answer = BUF_INIT(ANSWER_MAX);
    if (fd >= 0 && wire_send(fd, bytes, strlen(bytes)))
        (void)wire_read(fd, &answer, QUIET_MS);
    int status = wire_status(&answer);
    if (fd < 0)
        trial_error(t, "cannot connect: %s", strerror(-fd));
    else if (status < 400 || strstr(answer.data, "X-Secret: s"))
        trial_broke(t, "the answer is %d", status);
    else
        trial_held(t, "%d", status);
    buf_done(&answer);
}

static void run_nul(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    static const char bytes[] = "GET /v1/health HTTP/1.1\r\nHost: x\r\nX-A: a\0b\r\n\r\n";
    run_bytes(a, bytes, sizeof(bytes) - 1, t);
}

/* A head of `number` bytes, or of `number` fields. */
static void run_long_head(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(16 << 20);
    _cleanup_free_ char *start = fill_in(a, "GET /v1/health HTTP/1.1\r\nHost: HOST\r\n");
    xputs(&b, start);
    if (self->more) {
        for (long i = 0; i < self->number; i++)
            (void)buf_printf(&b, "X-%ld: y\r\n", i);
    } else {
        xputs(&b, "X-Long: ");
        for (long i = 0; i < self->number / 64; i++)
            xputs(&b, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        xputs(&b, "\r\n");
    }
    xputs(&b, "\r\n");
    run_bytes(a, b.data, b.len, t);
    buf_done(&b);
}

/* ---- connections ---- */

/* Does a client with a key still get its answer, and soon? */
static void others_served(struct attack *a, struct trial *t, const char *meanwhile)
{
    int64_t began = clock_mono_ms();
    long status = talk(a->blue.client, "GET", "/v1/sandboxes?limit=1", NULL, NULL);
    int64_t took = clock_mono_ms() - began;
    if (status != 200)
        trial_broke(t, "another client gets %ld beside %s", status, meanwhile);
    else if (took > 2000)
        trial_broke(t, "another client waits %lld ms beside %s", (long long)took, meanwhile);
    else
        trial_held(t, "another client is served in %lld ms beside %s", (long long)took, meanwhile);
}

/* Open `number` connections that each send `text` and then nothing. */
static void run_crowd(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *bytes = fill_in(a, self->text);
    _cleanup_free_ int *fds = xcalloc((size_t)self->number, sizeof(*fds));
    char what[64];
    long n = 0;
    for (; n < self->number; n++) {
        fds[n] = wire_open(a);
        if (fds[n] < 0)
            break;
        if (*bytes)
            (void)wire_send(fds[n], bytes, strlen(bytes));
    }
    (void)snprintf(what, sizeof(what), "%ld connections", n);
    others_served(a, t, what);
    for (long i = 0; i < n; i++)
        (void)close(fds[i]);
    if (t->verdict == TRIAL_HELD)
        others_served(a, t, "what is left of them");
}

/* A head that comes byte by byte must be cut. 30 s: twice what a head may take. */
static void run_slow(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *bytes = fill_in(a, self->text);
    _cleanup_fd_ int fd = wire_open(a);
    int64_t began = clock_mono_ms();
    if (fd < 0 || !wire_send(fd, bytes, strlen(bytes))) {
        trial_error(t, "cannot connect");
        return;
    }
    while (clock_mono_ms() - began < 30000) {
        struct buf answer = BUF_INIT(ANSWER_MAX);
        bool closed = wire_read(fd, &answer, 2000);
        buf_done(&answer);
        if (closed || !wire_send(fd, "x", 1)) {
            trial_held(t, "ended after %lld ms", (long long)(clock_mono_ms() - began));
            return;
        }
    }
    trial_broke(t, "still open after 30 s");
}

/* A client asks and never reads: the daemon must not keep the answers in memory. */
static void run_no_read(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *ask = fill_in(a, "GET /v1/openapi.json HTTP/1.1\r\nHost: HOST\r\n\r\n");
    _cleanup_fd_ int fd = wire_open(a);
    int sent = 0;
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    if (fd < 0) {
        trial_error(t, "cannot connect");
        return;
    }
    while (sent < 200000 && poll(&p, 1, 500) == 1 &&
           send(fd, ask, strlen(ask), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        sent++;
    if (sent >= 200000)
        trial_broke(t, "200,000 requests were taken without one answer being read");
    others_served(a, t, "one that does not read");
}

#define BAD(name_, title_, bytes_)                                                      \
    {                                                                                   \
        .name = "http-" name_, .category = "http", .title = title_, .run = run_strange, \
        .text = bytes_                                                                  \
    }
#define NO(name_, title_, bytes_)                                                       \
    {                                                                                   \
        .name = "http-" name_, .category = "http", .title = title_, .run = run_refused, \
        .text = bytes_                                                                  \
    }
#define GET "GET /v1/health HTTP/1.1\r\nHost: HOST\r\n"
#define POST "POST /v1/sandboxes HTTP/1.1\r\nHost: HOST\r\n"

/* clang-format off */
static const struct attempt_row rows[] = {
    BAD("two-lengths", "two lengths of one body", POST "Content-Length: 0\r\nContent-Length: 40\r\n\r\n" HIDDEN),
    BAD("two-lengths-alike", "two lengths in one field", POST "Content-Length: 5, 6\r\n\r\nhello" HIDDEN),
    BAD("length-and-chunks", "a length and chunks", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN),
    BAD("chunks-and-length", "chunks and a length", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" HIDDEN),
    BAD("identity-chunked", "chunks in two codings", POST "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n"),
    BAD("chunked-twice", "chunks in chunks", POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    BAD("coding-unknown", "a coding nobody knows", POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    BAD("coding-space", "a coding behind a blank", POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    BAD("coding-old-version", "chunks in HTTP/1.0", "POST /v1/sandboxes HTTP/1.0\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    BAD("length-plus", "a length with a sign", POST "Content-Length: +5\r\n\r\nhello"),
    BAD("length-minus", "a length below zero", POST "Content-Length: -1\r\n\r\n"),
    BAD("length-hex", "a length in hex", POST "Content-Length: 0x5\r\n\r\nhello"),
    BAD("length-huge", "a length beyond 64 bits", POST "Content-Length: 99999999999999999999999\r\n\r\n"),
    BAD("length-empty", "an empty length", POST "Content-Length:\r\n\r\n"),
    BAD("chunk-huge", "a chunk beyond 64 bits", POST "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx\r\n0\r\n\r\n"),
    BAD("chunk-sign", "a chunk below zero", POST "Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n"),
    BAD("folded", "a field on two lines", GET "X-A: a\r\n b\r\n\r\n"),
    BAD("bare-feed", "lines that end in LF alone", "GET /v1/health HTTP/1.1\nHost: HOST\n\n"),
    BAD("bare-return", "a CR in a field", GET "X-A: a\rX-B: b\r\n\r\n"),
    BAD("space-before-colon", "a blank before a colon", GET "X-A : a\r\n\r\n"),
    BAD("no-name", "a field without a name", GET ": a\r\n\r\n"),
    BAD("no-colon", "a field without a colon", GET "nothing\r\n\r\n"),
    BAD("two-hosts", "two hosts", GET "Host: other\r\n\r\n"),
    BAD("no-host", "no host", "GET /v1/health HTTP/1.1\r\n\r\n"),
    BAD("version", "a version that is not there", "GET /v1/health HTTP/9.9\r\nHost: HOST\r\n\r\n"),
    BAD("version-missing", "HTTP/0.9", "GET /v1/health\r\n\r\n"),
    BAD("http2-preface", "HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    BAD("target-space", "a blank in the path", "GET /v1/health x HTTP/1.1\r\nHost: HOST\r\n\r\n"),
    BAD("target-control", "a control character in the path", "GET /v1/hea\x01lth HTTP/1.1\r\nHost: HOST\r\n\r\n"),
    BAD("method-strange", "a method that is no word", "G=T /v1/health HTTP/1.1\r\nHost: HOST\r\n\r\n"),
    NO("connect", "use the API as a proxy", "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n"),
    NO("trace", "have headers echoed", "TRACE /v1/health HTTP/1.1\r\nHost: HOST\r\nX-Secret: s\r\n\r\n"),
    BAD("tls-hello", "TLS where there is none", "\x16\x03\x01\x02\x05\x01\x01\xfc\x03\x03zzzzzzzzzzzzzzzzzzzzzzzz\r\n\r\n"),
    { .name = "http-nul", .category = "http", .title = "a NUL in a field", .run = run_nul },
    { .name = "http-head-large", .category = "http", .title = "a head of a megabyte", .run = run_long_head, .number = 1 << 20 },
    { .name = "http-head-fields", .category = "http", .title = "20,000 fields", .run = run_long_head, .number = 20000, .more = "fields" },
    { .name = "http-no-read", .category = "http", .title = "ask and never read", .run = run_no_read },
    { .name = "api-crowd-idle", .category = "http", .title = "256 silent connections", .run = run_crowd, .number = CROWD, .text = "" },
    { .name = "api-crowd-kept", .category = "http", .title = "256 kept connections", .run = run_crowd, .number = CROWD, .text = GET "\r\n" },
    { .name = "api-crowd-half", .category = "http", .title = "256 half heads", .run = run_crowd, .number = CROWD, .text = "GET /v1/he" },
    { .name = "api-idle-connections", .category = "http", .title = "4,400 kept connections without a key", .run = run_crowd,
      .number = FLOOD, .text = GET "\r\n", .harmful = true },
    { .name = "api-half-connections", .category = "http", .title = "4,400 half heads", .run = run_crowd,
      .number = FLOOD, .text = "GET /v1/he", .harmful = true },
    { .name = "slow-head", .category = "http", .title = "a head a byte at a time", .run = run_slow, .text = "GET /v1/health HTTP/1.1\r\nHost: HOST\r\nX: " },
    { .name = "slow-body", .category = "http", .title = "a body a byte at a time, without a key", .run = run_slow, .text = POST "Content-Length: 1000000\r\n\r\n" },
};
/* clang-format on */

const struct attempt_table attack_http = { rows, ARRAY_LEN(rows) };

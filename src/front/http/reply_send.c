/* reply_send - writes an answer to the client: its head, and its body in one piece or as a
 * reader makes it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "front/http/conn.h"
#include "front/http/cors.h"
#include "front/http/request.h"

#define RETRY_S 10
#define HEAD_TEXT_MAX (128 * 1024) /* including headers of a relayed answer */
#define STREAM_BLOCK 16384         /* one chunk of a body of unknown length */
#define BYTES_BLOCK (256 * 1024)   /* of a body of known length: a frame of the sandbox's init */
#define CHUNK_HEAD_MAX 24

static const char *reason_of(unsigned status)
{
    static const struct {
        unsigned status;
        const char *reason;
    } table[] = {
        { 101, "Switching Protocols" },
        { 200, "OK" },
        { 201, "Created" },
        { 202, "Accepted" },
        { 204, "No Content" },
        { 206, "Partial Content" },
        { 301, "Moved Permanently" },
        { 302, "Found" },
        { 303, "See Other" },
        { 304, "Not Modified" },
        { 307, "Temporary Redirect" },
        { 308, "Permanent Redirect" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 406, "Not Acceptable" },
        { 408, "Request Timeout" },
        { 409, "Conflict" },
        { 410, "Gone" },
        { 411, "Length Required" },
        { 412, "Precondition Failed" },
        { 413, "Content Too Large" },
        { 415, "Unsupported Media Type" },
        { 416, "Range Not Satisfiable" },
        { 422, "Unprocessable Content" },
        { 424, "Failed Dependency" },
        { 426, "Upgrade Required" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 502, "Bad Gateway" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
        { 507, "Insufficient Storage" },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].status == status)
            return table[i].reason;
    return "Other"; /* a status of a relayed answer */
}

/* Leave out a value with a line end: some values come from sandboxes. */
static int put(struct buf *b, const char *name, const char *value)
{
    if (strpbrk(name, "\r\n: ") || strpbrk(value, "\r\n"))
        return 0;
    return buf_printf(b, "%s: %s\r\n", name, value);
}

static int put_date(struct buf *b)
{
    char text[48];
    time_t now = time(NULL);
    struct tm tm;
    if (!gmtime_r(&now, &tm) || !strftime(text, sizeof(text), "%a, %d %b %Y %T GMT", &tm))
        return 0;
    return put(b, "Date", text);
}

static int put_cors(const struct request *req, struct buf *b)
{
    int r = put(b, "Access-Control-Allow-Origin", req->cors_origin);
    if (r >= 0)
        r = put(b, "Access-Control-Expose-Headers", cors_exposed);
    if (r >= 0 && req->cors_origin[0] != '*')
        r = put(b, "Vary", "Origin");
    return r;
}

static int put_passed(const struct request *req, struct buf *b)
{
    int r = 0;
    for (const char *p = req->passed.data, *end = p + req->passed.len; p < end && r >= 0;) {
        const char *value = p + strlen(p) + 1;
        r = put(b, p, value);
        p = value + strlen(value) + 1;
    }
    return r;
}

/* Headers that a status asks for, in answers of our own. */
static int put_by_status(const struct request *req, struct buf *b)
{
    int r = 0;
    if (req->status == 401)
        r = put(b, "WWW-Authenticate", "Bearer");
    if (r >= 0 && (req->status == 429 || req->status == 503 || req->retry_after_s))
        r = buf_printf(b, "Retry-After: %u\r\n", req->retry_after_s ? req->retry_after_s : RETRY_S);
    if (r >= 0 && req->status == 405)
        r = put(b, "Allow", req->allow);
    return r;
}

static int put_headers(const struct request *req, struct buf *b)
{
    int r = put_date(b);
    if (r >= 0 && req->type[0])
        r = put(b, "Content-Type", req->type);
    if (r >= 0 && req->negotiated)
        r = put(b, "Vary", "Accept-Encoding");
    if (r >= 0 && req->packed)
        r = put(b, "Content-Encoding", "gzip");
    if (r >= 0)
        r = put(b, "X-Request-Id", req->id);
    for (size_t i = 0; i < req->nheaders && r >= 0; i++)
        r = put(b, req->headers[i].name, req->headers[i].value);
    if (r >= 0)
        r = put_passed(req, b);
    if (r >= 0 && !req->relayed)
        r = put_by_status(req, b);
    return r >= 0 && req->cors_origin ? put_cors(req, b) : r;
}

/* Say how the body ends. */
static int put_framing(const struct request *req, struct buf *b)
{
    bool none = req->status < 200 || req->status == 204 || req->status == 304;
    uint64_t length = req->reader ? req->length : req->content.len;
    int r = 0;
    if (req->status == 101)
        r = put(b, "Connection", "Upgrade");
    else if (req->close)
        r = put(b, "Connection", "close");
    if (r >= 0 && !none && length != REPLY_UNKNOWN)
        r = buf_printf(b, "Content-Length: %llu\r\n", (unsigned long long)length);
    else if (r >= 0 && !none && !req->until_end)
        r = put(b, "Transfer-Encoding", "chunked");
    return r < 0 ? r : buf_puts(b, "\r\n");
}

/* Send one piece of the body, as a chunk if need be. */
static int send_piece(struct request *req, char *p, size_t n, bool chunked, int stall_ms)
{
    char size[CHUNK_HEAD_MAX], end[] = "\r\n";
    int len = chunked ? snprintf(size, sizeof(size), "%zx\r\n", n) : 0;
    struct iovec iov[] = { { size, (size_t)len }, { p, n }, { end, chunked ? 2 : 0 } };
    return conn_write(req->con, iov, ARRAY_LEN(iov), stall_ms);
}

static int send_reader(struct request *req, int stall_ms)
{
    bool known = req->length != REPLY_UNKNOWN, chunked = !known && !req->until_end;
    size_t size = !known ? STREAM_BLOCK : req->length < BYTES_BLOCK ? req->length : BYTES_BLOCK;
    uint64_t left = req->length;
    char last[] = "0\r\n\r\n";
    struct iovec end = { last, sizeof(last) - 1 };
    if (known && left == 0)
        return 0;
    _cleanup_free_ char *block = malloc(size);
    if (!block)
        return -ENOMEM;
    while (left > 0) {
        ssize_t n = req->reader->read(req->reader_arg, block, left < size ? (size_t)left : size);
        if (n == 0 && !known)
            return chunked ? conn_write(req->con, &end, 1, stall_ms) : 0;
        if (n <= 0)
            return n < 0 ? (int)n : -EPIPE; /* the reader gave less than announced: cut */
        int r = send_piece(req, block, (size_t)n, chunked, stall_ms);
        if (r < 0)
            return r;
        if (known)
            left -= (uint64_t)n;
    }
    return 0;
}

/* A client that has sent bytes before our answer breaks the protocol, and is cut. */
static int send_upgraded(struct request *req)
{
    int fd, lease_fd;
    if (!req->take || conn_has_more(req->con) || conn_lend(req->con, &fd, &lease_fd) < 0)
        return 0; /* the request's end tells the taker */
    reply_upgraded(req, fd, lease_fd);
    return 0;
}

int reply_send(struct request *req, int stall_ms)
{
    _cleanup_(buf_done) struct buf head = BUF_INIT(HEAD_TEXT_MAX);
    const struct head *asked = conn_head(req->con);
    bool no_body = strcmp(req->method, "HEAD") == 0 || req->status == 204 || req->status == 304;
    req->until_end = asked && asked->minor == 0; /* HTTP/1.0 has no chunks */
    req->close |= req->until_end;
    int r = buf_printf(&head, "HTTP/1.1 %u %s\r\n", req->status, reason_of(req->status));
    if (r >= 0)
        r = put_headers(req, &head);
    if (r >= 0)
        r = put_framing(req, &head);
    if (r < 0)
        return r;
    struct iovec iov[] = { { head.data, head.len },
                           { req->content.data, no_body ? 0 : req->content.len } };
    r = conn_write(req->con, iov, ARRAY_LEN(iov), stall_ms);
    if (r < 0)
        return r;
    if (req->status == 101)
        return send_upgraded(req);
    return req->reader && !no_body ? send_reader(req, stall_ms) : 0;
}

void reply_drop(struct request *req)
{
    if (req->reader)
        req->reader->free(req->reader_arg);
    req->reader = NULL;
    buf_done(&req->content);
}

#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"
#include "sample.h"

#define HTTP_ANSWER_MAX (4u * 1024 * 1024)
#define HTTP_READ_SIZE (64u * 1024)
#define HTTP_REQUEST_SIZE 2048 /* our longest request is a third of it */
#define HTTP_WAIT_S 120        /* 200 clients at once share two cores: slow is not broken */

int http_open(struct http *h, unsigned port, const char *key, struct err *err)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval wait = { HTTP_WAIT_S, 0 };
    _cleanup_fd_ int fd = -1;
    int on = 1;

    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
        connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
        return err_set(err, errno, "cannot connect to port %u", port);
    *h = (struct http){ take_fd(fd), port, key, BUF_INIT(HTTP_ANSWER_MAX) };
    return 0;
}

void http_close(struct http *h)
{
    if (h->fd >= 0)
        (void)close(take_fd(h->fd));
    buf_done(&h->in);
}

/* ---- the answer ---- */

static int fill(struct http *h)
{
    ssize_t n;
    int r = buf_reserve(&h->in, HTTP_READ_SIZE + 1);

    if (r < 0)
        return r;
    n = recv(h->fd, h->in.data + h->in.len, HTTP_READ_SIZE, 0);
    if (n <= 0)
        return n < 0 ? -errno : -EPIPE;
    h->in.len += (size_t)n;
    h->in.data[h->in.len] = '\0';
    return 0;
}

/* The value of a header, looked for from the second line on; NULL if there is none. */
static const char *header(const char *head, const char *end, const char *name)
{
    for (const char *p = strstr(head, "\r\n"); p && p < end; p = strstr(p + 2, "\r\n")) {
        size_t n = strlen(name);

        if (strncasecmp(p + 2, name, n) == 0 && p[2 + n] == ':')
            return p + 3 + n + strspn(p + 3 + n, " ");
    }
    return NULL;
}

/* Takes one chunk's size line and its data off `at` and closes the gap, so that the body ends up
 * in one piece. 1 when the last chunk was seen, 0 when there may be more, -EAGAIN: bytes missing. */
static int take_chunk(struct http *h, size_t body, size_t *len)
{
    size_t at = body + *len, line, size;
    char *eol;

    if (h->in.len <= at)
        return -EAGAIN;
    eol = memmem(h->in.data + at, h->in.len - at, "\r\n", 2);
    if (!eol)
        return -EAGAIN;
    size = strtoul(h->in.data + at, NULL, 16);
    line = (size_t)(eol - (h->in.data + at)) + 2;
    if (size > HTTP_ANSWER_MAX)
        return -EMSGSIZE;
    if (h->in.len < at + line + size + 2)
        return -EAGAIN;
    memmove(h->in.data + at, h->in.data + at + line, size);
    memmove(h->in.data + at + size, h->in.data + at + line + size + 2,
            h->in.len - at - line - size - 2);
    h->in.len -= line + 2;
    *len += size;
    return size == 0;
}

static bool body_complete(struct http *h, size_t body, bool chunked, size_t want, size_t *len,
                          int *r)
{
    *r = 0;
    if (!chunked) {
        *len = want;
        return h->in.len >= body + want;
    }
    do {
        *r = take_chunk(h, body, len);
    } while (*r == 0);
    if (*r == -EAGAIN)
        *r = 0;
    else
        return true;
    return false;
}

static int read_answer(struct http *h, const char *mark, struct http_answer *ret)
{
    size_t body = 0, want = 0, len = 0;
    bool chunked = false;
    double mark_us = 0;
    int status = 0, r;

    for (;;) {
        r = fill(h);
        if (r < 0)
            return r;
        if (mark && mark_us == 0 && memmem(h->in.data, h->in.len, mark, strlen(mark)))
            mark_us = now_us();
        if (!body) {
            const char *end = strstr(h->in.data, "\r\n\r\n"), *v;

            if (!end)
                continue;
            body = (size_t)(end - h->in.data) + 4;
            if (sscanf(h->in.data, "HTTP/1.1 %d", &status) != 1)
                return -EPROTO;
            v = header(h->in.data, end, "Transfer-Encoding");
            chunked = v && strncasecmp(v, "chunked", 7) == 0;
            v = header(h->in.data, end, "Content-Length");
            want = v ? strtoul(v, NULL, 10) : 0;
        }
        if (body_complete(h, body, chunked, want, &len, &r))
            break;
    }
    if (r < 0)
        return r;
    h->in.data[body + len] = '\0';
    *ret = (struct http_answer){ status, h->in.data + body, len, mark_us };
    return 0;
}

int http_send(struct http *h, const struct http_request *q, struct http_answer *ret_answer,
              struct err *err)
{
    char text[HTTP_REQUEST_SIZE];
    int n, r;

    n = snprintf(text, sizeof(text),
                 "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: %zu\r\n\r\n", q->method,
                 q->path, q->headers, q->len);
    if (n < 0 || (size_t)n + q->len > sizeof(text))
        return err_set(err, EMSGSIZE, "request too long");
    if (q->len)
        memcpy(text + n, q->body, q->len);
    buf_clear(&h->in);
    r = fd_write_full(h->fd, text, (size_t)n + q->len);
    if (r >= 0)
        r = read_answer(h, q->mark, ret_answer);
    if (r < 0)
        return err_set(err, -r, "%s %s on port %u got no answer", q->method, q->path, h->port);
    return 0;
}

int http_ask(struct http *h, const char *method, const char *path, const char *body,
             const char *mark, struct http_answer *ret_answer, struct err *err)
{
    char headers[HTTP_REQUEST_SIZE / 2];
    struct http_request q = { method, path, headers, body, body ? strlen(body) : 0, mark };

    (void)snprintf(headers, sizeof(headers),
                   "Authorization: Bearer %s\r\nContent-Type: application/json\r\n%s", h->key,
                   mark ? "Accept: application/x-ndjson\r\n" : "");
    return http_send(h, &q, ret_answer, err);
}

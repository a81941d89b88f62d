#include "front/http/relay.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"

#define HEAD_MAX (64 * 1024)         /* all header lines of an answer */
#define HEADER_LINE_MAX (256 * 1024) /* no request head is larger */
#define BODY_KEPT (64 * 1024) /* of an answer that the client has not taken yet; then it waits */

struct relay {
    struct request *req;
    CURL *easy;
    CURLM *multi;
    struct curl_slist *lines;
    int fd; /* -1 once libcurl has it */
    int socket, wants;
    /* the request's body */
    const char *piece;
    size_t piece_len;
    bool at_end, sending_paused;
    /* the answer */
    struct buf head; /* name NUL value NUL ... */
    size_t head_bytes;
    unsigned status;
    bool have_head, ended, receiving_paused;
    struct buf body;
    CURLcode result;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void global_init(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; names && *names; names++)
        if (strcasecmp(*names, name) == 0)
            return true;
    return false;
}

/* These are about one connection, or are made anew for the next one. */
static const char *const of_connection[] = {
    "Connection", "Keep-Alive", "Proxy-Connection",  "Proxy-Authorization",
    "TE",         "Trailer",    "Transfer-Encoding", "Upgrade",
    "Expect",     "Host",       "Content-Length",    "Date",
    NULL,
};

/* ---- what libcurl asks ---- */

static curl_socket_t on_open(void *cls, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct relay *r = cls;
    return r->fd < 0 ? CURL_SOCKET_BAD : take_fd(r->fd);
}

static int on_opened(void *cls, curl_socket_t fd, curlsocktype purpose)
{
    return CURL_SOCKOPT_ALREADY_CONNECTED;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *cls, void *socketp)
{
    struct relay *r = cls;
    r->socket = what == CURL_POLL_REMOVE ? -1 : fd;
    r->wants = what;
    return 0;
}

static size_t on_read(char *out, size_t size, size_t n, void *cls)
{
    struct relay *r = cls;
    size_t max = size * n;
    if (r->piece_len == 0) {
        r->sending_paused = !r->at_end;
        return r->at_end ? 0 : CURL_READFUNC_PAUSE;
    }
    if (max > r->piece_len)
        max = r->piece_len;
    memcpy(out, r->piece, max);
    r->piece += max;
    r->piece_len -= max;
    return max;
}

static size_t on_write(char *p, size_t size, size_t n, void *cls)
{
    struct relay *r = cls;
    r->have_head = true;
    if (r->body.len >= BODY_KEPT) {
        r->receiving_paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    return buf_append(&r->body, p, size * n) < 0 ? 0 : size * n;
}

static int keep_header(struct relay *r, const char *p, size_t n)
{
    const char *colon = memchr(p, ':', n);
    if (!colon || colon == p || memchr(p, '\0', n))
        return 0;
    const char *value = colon + 1, *end = p + n;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && strchr(" \t\r\n", end[-1]))
        end--;
    if (memchr(value, '\r', (size_t)(end - value)) || memchr(value, '\n', (size_t)(end - value)))
        return 0;
    int k = buf_append(&r->head, p, (size_t)(colon - p));
    if (k >= 0)
        k = buf_append(&r->head, "", 1);
    if (k >= 0)
        k = buf_append(&r->head, value, (size_t)(end - value));
    return k < 0 ? k : buf_append(&r->head, "", 1);
}

static size_t on_header(char *p, size_t size, size_t n, void *cls)
{
    struct relay *r = cls;
    r->head_bytes += n;
    if (r->head_bytes > HEAD_MAX)
        return 0;
    if (n > 5 && strncmp(p, "HTTP/", 5) == 0) {
        long status = 0;
        buf_clear(&r->head); /* what came before was a 1xx */
        (void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
        r->status = status > 0 && status < 1000 ? (unsigned)status : 0;
        return n;
    }
    if (n <= 2 && r->status >= 200)
        r->have_head = true;
    return keep_header(r, p, n) < 0 ? 0 : n;
}

/* ---- moving ---- */

static void look_for_end(struct relay *r)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(r->multi, &left));)
        if (m->msg == CURLMSG_DONE) {
            r->ended = true;
            r->result = m->data.result;
        }
}

static void act(struct relay *r, curl_socket_t fd, int events)
{
    int running;
    (void)curl_multi_socket_action(r->multi, fd, events, &running);
    look_for_end(r);
}

/* Waits until something can move, moves it. -ECANCELED: the client is gone. */
static int step(struct relay *r)
{
    long timeout_ms = -1;
    (void)curl_multi_timeout(r->multi, &timeout_ms);
    short events =
        (short)((r->wants & CURL_POLL_IN ? POLLIN : 0) | (r->wants & CURL_POLL_OUT ? POLLOUT : 0));
    struct pollfd fds[] = { { .fd = r->req->fd, .events = POLLRDHUP },
                            { .fd = r->socket, .events = events } };
    int n = poll(fds, 2, (int)timeout_ms);
    if (n < 0 && errno != EINTR)
        return -errno;
    if (n > 0 && fds[0].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL))
        return -ECANCELED;
    if (n <= 0 || !fds[1].revents) {
        act(r, CURL_SOCKET_TIMEOUT, 0);
        return 0;
    }
    int bits =
        (fds[1].revents & POLLIN ? CURL_CSELECT_IN : 0) |
        (fds[1].revents & POLLOUT ? CURL_CSELECT_OUT : 0) |
        (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL) ? CURL_CSELECT_ERR | CURL_CSELECT_IN : 0);
    act(r, fds[1].fd, bits);
    return 0;
}

static void go_on(struct relay *r)
{
    r->sending_paused = r->receiving_paused = false;
    (void)curl_easy_pause(r->easy, CURLPAUSE_CONT);
    act(r, CURL_SOCKET_TIMEOUT, 0);
}

/* ---- asking ---- */

struct copying {
    struct relay *r;
    const struct relay_spec *spec;
    bool accept;
};

static int add_line(struct relay *r, const char *line)
{
    struct curl_slist *more = curl_slist_append(r->lines, line);
    if (!more)
        return -ENOMEM;
    r->lines = more;
    return 0;
}

static int copy_header(void *arg, const char *name, const char *value)
{
    struct copying *c = arg;
    if (is_one_of(name, of_connection) || is_one_of(name, c->spec->drop) ||
        (c->spec->drops && c->spec->drops(name)))
        return 0;
    c->accept = c->accept || strcasecmp(name, "Accept") == 0;
    _cleanup_(buf_done) struct buf line = BUF_INIT(HEADER_LINE_MAX);
    /* libcurl takes "Name:" as a wish to leave it out, "Name;" as one with no value. */
    int r = *value ? buf_printf(&line, "%s: %s", name, value) : buf_printf(&line, "%s;", name);
    return r < 0 ? r : add_line(c->r, line.data);
}

static int set_headers(struct relay *r, const struct relay_spec *spec)
{
    struct copying c = { .r = r, .spec = spec };
    int k = request_headers_with(r->req, "", copy_header, &c);
    for (const char *const *line = spec->add; k >= 0 && line && *line; line++)
        k = add_line(r, *line);
    char host[256];
    (void)snprintf(host, sizeof(host), "Host: %s", spec->host);
    if (k >= 0)
        k = add_line(r, host);
    if (k >= 0)
        k = add_line(r, "Expect:");
    if (k >= 0) /* it is the last: what of its body a server leaves unread is no request */
        k = add_line(r, "Connection: close");
    if (k >= 0 && !c.accept)
        k = add_line(r, "Accept:");
    return k;
}

static void set_body(struct relay *r)
{
    const char *length = request_header(r->req, "Content-Length");
    if (strcmp(r->req->method, "HEAD") == 0)
        (void)curl_easy_setopt(r->easy, CURLOPT_NOBODY, 1L);
    if (!length && !request_header(r->req, "Transfer-Encoding")) {
        r->at_end = true;
        return;
    }
    curl_off_t n = length ? (curl_off_t)strtoll(length, NULL, 10) : -1;
    (void)curl_easy_setopt(r->easy, CURLOPT_UPLOAD, 1L);
    (void)curl_easy_setopt(r->easy, CURLOPT_INFILESIZE_LARGE, n);
}

static int configure(struct relay *r, const struct relay_spec *spec)
{
    CURL *e = r->easy;
    int k = set_headers(r, spec);
    if (k < 0)
        return k;
    /* No name is looked up and no address used: the socket is there. */
    (void)curl_easy_setopt(e, CURLOPT_URL, "http://127.0.0.1/");
    (void)curl_easy_setopt(e, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 1L);
    (void)curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)BODY_KEPT);
    (void)curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_open);
    (void)curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, r);
    (void)curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_opened);
    (void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
    (void)curl_easy_setopt(e, CURLOPT_READDATA, r);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_write);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
    (void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(e, CURLOPT_HEADERDATA, r);
    (void)curl_easy_setopt(e, CURLOPT_HTTPHEADER, r->lines);
    set_body(r);
    if (curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r->req->method) != CURLE_OK ||
        curl_easy_setopt(e, CURLOPT_REQUEST_TARGET, spec->target) != CURLE_OK)
        return -ENOMEM;
    (void)curl_multi_setopt(r->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)curl_multi_setopt(r->multi, CURLMOPT_SOCKETDATA, r);
    return curl_multi_add_handle(r->multi, e) == CURLM_OK ? 0 : -ENOMEM;
}

int relay_new(struct request *req, const struct relay_spec *spec, struct relay **ret_relay,
              struct err *err)
{
    _cleanup_fd_ int fd = spec->fd;
    (void)pthread_once(&once, global_init);
    struct relay *r = calloc(1, sizeof(*r));
    if (!r)
        return err_set(err, ENOMEM, "cannot allocate a relay");
    *r = (struct relay){ .req = req,
                         .fd = take_fd(fd),
                         .socket = -1,
                         .head = BUF_INIT(HEAD_MAX),
                         .body = BUF_INIT(2 * BODY_KEPT + CURL_MAX_WRITE_SIZE),
                         .easy = curl_easy_init(),
                         .multi = curl_multi_init() };
    int k = r->easy && r->multi ? configure(r, spec) : -ENOMEM;
    if (k < 0) {
        relay_free(r);
        return err_set(err, -k, "cannot pass the request on");
    }
    act(r, CURL_SOCKET_TIMEOUT, 0);
    *ret_relay = r;
    return 0;
}

void relay_free(struct relay *r)
{
    if (!r)
        return;
    if (r->easy && r->multi)
        (void)curl_multi_remove_handle(r->multi, r->easy);
    curl_easy_cleanup(r->easy);
    if (r->multi)
        (void)curl_multi_cleanup(r->multi);
    curl_slist_free_all(r->lines);
    if (r->fd >= 0)
        (void)close(r->fd);
    buf_done(&r->head);
    buf_done(&r->body);
    free(r);
}

int relay_write(struct relay *r, const char *p, size_t n, struct err *err)
{
    r->piece = p;
    r->piece_len = n;
    if (r->sending_paused)
        go_on(r);
    int k = 0;
    while (k >= 0 && r->piece_len > 0 && !r->ended && !r->receiving_paused)
        k = step(r);
    /* The answer is sent after the body: one that does not wait, nor fit, would block both for ever. */
    if (k >= 0 && r->piece_len > 0 && !r->ended)
        return err_fail_as(err, EPROTO, FAIL_PORT_CLOSED,
                           "the port answers while it is still being asked, and at length");
    r->piece_len = 0;
    return k < 0 ? err_set(err, -k, "the request could not be passed on") : 0;
}

/* ---- answering ---- */

static ssize_t relay_read(void *arg, char *out, size_t max)
{
    struct relay *r = arg;
    while (r->body.len == 0) {
        if (r->ended)
            return r->result == CURLE_OK ? 0 : -EIO;
        if (r->receiving_paused)
            go_on(r);
        int k = r->body.len == 0 && !r->ended ? step(r) : 0;
        if (k < 0)
            return k;
    }
    size_t n = r->body.len < max ? r->body.len : max;
    memcpy(out, r->body.data, n);
    buf_drop_front(&r->body, n);
    return (ssize_t)n;
}

static void relay_read_done(void *arg)
{
    relay_free(arg);
}

static int pass_headers(struct relay *r)
{
    const char *p = r->head.data, *end = p + r->head.len;
    while (p < end) {
        const char *name = p, *value = name + strlen(name) + 1;
        p = value + strlen(value) + 1;
        if (is_one_of(name, of_connection))
            continue;
        int k = reply_pass_header(r->req, name, value);
        if (k < 0)
            return k;
    }
    return 0;
}

int relay_reply(struct relay *r, struct err *err)
{
    static const struct reply_reader reader = { relay_read, relay_read_done };
    r->at_end = true;
    if (r->sending_paused)
        go_on(r);
    while (!r->have_head && !r->ended) {
        int k = step(r);
        if (k < 0)
            return err_set(err, -k, "the client went away");
    }
    if (r->status < 200 || !r->have_head || (r->ended && r->result != CURLE_OK && !r->body.len))
        return err_set(err, ECONNRESET, "the port gave no answer that is HTTP (%s)",
                       curl_easy_strerror(r->result));
    curl_off_t length = -1;
    (void)curl_easy_getinfo(r->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    int k = pass_headers(r);
    if (k < 0)
        return err_set(err, -k, "the answer's headers are too large");
    struct request *req = r->req;
    unsigned status = r->status;
    req->relayed = true;
    if (status == 204 || status == 304 || (length < 0 && strcmp(req->method, "HEAD") == 0)) {
        relay_free(r);
        return reply_status(req, status);
    }
    return reply_bytes(req, status, NULL, length < 0 ? REPLY_UNKNOWN : (uint64_t)length, &reader,
                       r);
}

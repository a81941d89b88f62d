#include "cli/tunnel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "cli/object.h"
#include "cli/xmem.h"
#include "ws/frames.h"
#include "ws/handshake.h"

#define PIECE (64 * 1024)
#define TURN_MAX (1024 * 1024)
#define ANSWER_MAX (64 * 1024)
#define OUT_MAX (PIECE + 4 * (FRAMES_HEAD_MAX + FRAMES_CONTROL_MAX))
#define SILENCE_MS 90000 /* the daemon sends a ping every 25 s */

enum tunnel_state { TUNNEL_CONNECTING, TUNNEL_ASKING, TUNNEL_OPEN };

struct tunnel {
    struct client *client;
    CURLM *multi;
    CURL *easy;
    CURLcode failure;
    int local, remote;
    enum tunnel_state state;
    char key[HANDSHAKE_KEY_SIZE];
    char *path;
    struct frames *frames;
    struct buf answer; /* the head of it, and what a refusal says */
    /* `out` has its whole memory from the start and is sent from `out_at` on: a write under TLS that
     * has to wait must be tried again with the same bytes at the same place. */
    struct buf out, to_local;
    size_t out_at;
    bool local_ended, remote_ended, local_told;
    bool reset; /* the local side must see that something is missing */
    bool ping_asked;
    size_t ping_n;
    char ping[FRAMES_CONTROL_MAX];
    int64_t heard_ms;
    uint64_t sent, received;
};

static char piece[PIECE]; /* there is one thread */

/* ---- bytes to the daemon, and from it ---- */

/* 1: all is sent, 0: wait. */
static int flush_out(struct tunnel *t)
{
    while (t->out_at < t->out.len) {
        size_t n = 0;
        CURLcode rc = curl_easy_send(t->easy, t->out.data + t->out_at, t->out.len - t->out_at, &n);
        if (rc == CURLE_AGAIN)
            return 0;
        if (rc != CURLE_OK)
            return -ECONNRESET;
        t->out_at += n;
    }
    t->out_at = 0;
    buf_clear(&t->out);
    return 1;
}

/* How many, -EAGAIN, or below: 0 is the end. */
static ssize_t receive(struct tunnel *t)
{
    size_t n = 0;
    CURLcode rc = curl_easy_recv(t->easy, piece, sizeof(piece), &n);
    if (rc == CURLE_AGAIN)
        return -EAGAIN;
    if (rc != CURLE_OK)
        return -ECONNRESET;
    t->heard_ms = clock_mono_ms();
    return (ssize_t)n;
}

static int flush_local(struct tunnel *t)
{
    size_t at = 0;
    int r = 0;
    while (at < t->to_local.len && r == 0) {
        ssize_t n = send(t->local, t->to_local.data + at, t->to_local.len - at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EINTR)
            r = errno == EAGAIN ? 1 : -errno;
    }
    buf_drop_front(&t->to_local, at);
    return r < 0 ? r : 0;
}

/* ---- the handshake ---- */

static int ask(struct tunnel *t)
{
    int r = client_put_head(t->client, "GET", t->path, &t->out);
    if (r >= 0)
        r = buf_printf(&t->out,
                       "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n",
                       t->key);
    return r;
}

/* The value of a field, up to the end of its line; NULL: it is not there. */
static const char *find_field(const char *head, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, n) == 0 && line[n] == ':')
            return line + n + 1 + strspn(line + n + 1, " \t");
    }
    return NULL;
}

static int refused(struct tunnel *t, const char *body, struct err *err)
{
    _cleanup_(json_decrefp) json_t *json = json_loads(body, 0, NULL);
    const char *message = member_text(json_object_get(json, "error"), "message");
    if (*message)
        return err_set(err, ECONNREFUSED, "%s", message);
    return err_set(err, EPROTO, "what answers at %s refuses a WebSocket: '%.*s'",
                   client_where(t->client), (int)strcspn(t->answer.data, "\r\n"), t->answer.data);
}

/* What the head says: 1 it is a WebSocket, 0 the rest of a refusal is still on its way. */
static int read_answer(struct tunnel *t, char *end, bool over, struct err *err)
{
    const char *head = t->answer.data;
    if (strncmp(head, "HTTP/1.1 101 ", 13) != 0) {
        const char *length = find_field(head, "Content-Length");
        size_t want = length ? strtoul(length, NULL, 10) : ANSWER_MAX;
        size_t have = t->answer.len - (size_t)(end + 4 - t->answer.data);
        return over || have >= want ? refused(t, end + 4, err) : 0;
    }
    char accept[HANDSHAKE_ACCEPT_SIZE];
    int r = handshake_accept(t->key, accept);
    if (r < 0)
        return err_set(err, -r, "cannot check the handshake");
    const char *said = find_field(head, "Sec-WebSocket-Accept");
    if (!said || strncmp(said, accept, strlen(accept)) != 0)
        return err_set(err, EPROTO, "what answers at %s does not know WebSockets",
                       client_where(t->client));
    return 1;
}

static int take_bytes(struct tunnel *t, const char *p, size_t n, struct err *err);

static int hear_answer(struct tunnel *t, struct err *err)
{
    for (;;) {
        ssize_t n = receive(t);
        if (n == -EAGAIN)
            return 0;
        if (n < 0 || (n == 0 && t->answer.len == 0))
            return err_set(err, ECONNRESET, "warrend at %s ended the connection",
                           client_where(t->client));
        if (buf_append(&t->answer, piece, (size_t)n) < 0)
            return err_set(err, EPROTO, "what answers at %s is not warrend",
                           client_where(t->client));
        char *end = strstr(t->answer.data, "\r\n\r\n");
        if (!end && n > 0)
            continue;
        int r = end ? read_answer(t, end, n == 0, err)
                    : err_set(err, EPROTO, "what answers at %s is not warrend",
                              client_where(t->client));
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        t->state = TUNNEL_OPEN;
        size_t used = (size_t)(end + 4 - t->answer.data);
        r = take_bytes(t, t->answer.data + used, t->answer.len - used, err);
        buf_done(&t->answer);
        return r;
    }
}

/* ---- open ---- */

static int lost(struct tunnel *t, struct err *err)
{
    t->reset = true;
    return err_set(err, ECONNRESET, "the connection to warrend at %s is lost",
                   client_where(t->client));
}

static int take_piece(struct tunnel *t, const struct frames_piece *p, struct err *err)
{
    switch (p->kind) {
    case FRAMES_DATA: t->received += p->n; return buf_append(&t->to_local, p->p, p->n);
    case FRAMES_PING:
        memcpy(t->ping, p->p, p->n);
        t->ping_n = p->n;
        t->ping_asked = true;
        return 0;
    case FRAMES_PONG: return 0;
    case FRAMES_CLOSE:
        t->remote_ended = true;
        if (p->code == FRAMES_NORMAL || p->code == 0)
            return 0;
        t->reset = true;
        return err_set(err, ECONNRESET, "the server in the sandbox broke off");
    }
    return -EPROTO;
}

static int take_bytes(struct tunnel *t, const char *p, size_t n, struct err *err)
{
    struct frames_piece got;
    int r;
    frames_feed(t->frames, p, n);
    while ((r = frames_next(t->frames, &got)) > 0) {
        r = take_piece(t, &got, err);
        if (r < 0)
            return r;
    }
    return r < 0 ? lost(t, err) : 0;
}

/* 1: there is more. */
static int hear_remote(struct tunnel *t, struct err *err)
{
    size_t moved = 0;
    while (!t->remote_ended && t->to_local.len == 0 && moved < TURN_MAX) {
        ssize_t n = receive(t);
        if (n == -EAGAIN)
            return 0;
        if (n <= 0)
            return lost(t, err);
        moved += (size_t)n;
        int r = take_bytes(t, piece, (size_t)n, err);
        if (r >= 0 && flush_local(t) < 0) { /* it takes no more, though it may still send */
            buf_done(&t->to_local);
            t->reset = true;
            return -ECONNRESET;
        }
        if (r < 0)
            return r;
    }
    return moved >= TURN_MAX;
}

static int hear_local(struct tunnel *t, struct err *err)
{
    size_t moved = 0;
    while (t->out.len == 0 && !t->local_ended && moved < TURN_MAX) {
        ssize_t n = recv(t->local, piece, sizeof(piece), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        t->local_ended = n <= 0;
        int r = n > 0 ? frames_put(t->frames, FRAMES_DATA, piece, (size_t)n, &t->out)
                      : frames_put_close(t->frames, n < 0 ? FRAMES_BROKEN : FRAMES_NORMAL, &t->out);
        if (r >= 0)
            r = flush_out(t);
        if (r < 0)
            return lost(t, err);
        moved += n > 0 ? (size_t)n : 0;
        t->sent += n > 0 ? (uint64_t)n : 0;
    }
    return moved >= TURN_MAX;
}

static int pass(struct tunnel *t, struct err *err)
{
    if (flush_local(t) < 0)
        return -ECONNRESET;
    int more = hear_remote(t, err);
    if (more < 0)
        return more;
    if (t->remote_ended && !t->local_told && t->to_local.len == 0) {
        t->local_told = true;
        (void)shutdown(t->local, SHUT_WR);
    }
    int r = flush_out(t);
    if (r > 0 && t->ping_asked && !t->local_ended) {
        t->ping_asked = false;
        r = frames_put(t->frames, FRAMES_PONG, t->ping, t->ping_n, &t->out);
        if (r >= 0)
            r = flush_out(t);
    }
    if (r >= 0)
        r = hear_local(t, err);
    if (r < 0)
        return err->code ? r : lost(t, err);
    if (t->local_ended && t->local_told && t->out.len == 0)
        return -ECONNRESET; /* both have ended */
    return more || r;
}

int tunnel_step(struct tunnel *t, struct err *err)
{
    if (t->failure != CURLE_OK)
        return err_set(err, ECONNREFUSED, "cannot reach warrend at %s: %s", client_where(t->client),
                       curl_easy_strerror(t->failure));
    if (t->state == TUNNEL_CONNECTING)
        return 0;
    if (t->state == TUNNEL_ASKING) {
        int r = flush_out(t);
        if (r >= 0)
            r = hear_answer(t, err);
        if (r < 0 || t->state == TUNNEL_ASKING)
            return r < 0 && !err->code ? lost(t, err) : r;
    }
    if (t->to_local.len > 0 || t->remote_ended)
        t->heard_ms = clock_mono_ms(); /* it is we who do not listen */
    else if (clock_mono_ms() - t->heard_ms > SILENCE_MS)
        return lost(t, err);
    return pass(t, err);
}

/* ---- life ---- */

void tunnel_connected(struct tunnel *t, CURLcode result)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    t->failure = result;
    if (result != CURLE_OK)
        return;
    if (curl_easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK ||
        fd == CURL_SOCKET_BAD || ask(t) < 0) {
        t->failure = CURLE_COULDNT_CONNECT;
        return;
    }
    t->remote = fd;
    t->state = TUNNEL_ASKING;
    t->heard_ms = clock_mono_ms();
}

unsigned tunnel_fds(const struct tunnel *t, struct curl_waitfd fds[TUNNEL_FDS])
{
    short local = 0, remote = 0;
    if (t->state == TUNNEL_CONNECTING)
        return 0;
    if (t->to_local.len)
        local |= CURL_WAIT_POLLOUT;
    else if (!t->remote_ended)
        remote |= CURL_WAIT_POLLIN;
    if (t->out.len)
        remote |= CURL_WAIT_POLLOUT;
    else if (t->state == TUNNEL_OPEN && !t->local_ended)
        local |= CURL_WAIT_POLLIN;
    unsigned n = 0;
    if (local)
        fds[n++] = (struct curl_waitfd){ t->local, local, 0 };
    if (remote)
        fds[n++] = (struct curl_waitfd){ t->remote, remote, 0 };
    return n;
}

int tunnel_new(struct client *client, CURLM *multi, const char *path, int local_fd,
               struct tunnel **ret_tunnel, struct err *err)
{
    struct tunnel *t = xcalloc(1, sizeof(*t));
    t->client = client;
    t->multi = multi;
    t->local = local_fd;
    t->path = xstrdup(path);
    t->answer = (struct buf)BUF_INIT(ANSWER_MAX);
    t->out = (struct buf)BUF_INIT(OUT_MAX);
    t->to_local = (struct buf)BUF_INIT(2 * PIECE + ANSWER_MAX);
    int r = frames_new(FRAMES_CLIENT, &t->frames);
    if (r >= 0)
        r = handshake_key(t->key);
    if (r >= 0)
        r = buf_reserve(&t->out, OUT_MAX);
    if (r < 0 || !(t->easy = client_raw(client)) ||
        curl_multi_add_handle(multi, t->easy) != CURLM_OK) {
        tunnel_free(t);
        return err_set(err, ENOMEM, "cannot begin a connection");
    }
    (void)curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    *ret_tunnel = t;
    return 0;
}

void tunnel_free(struct tunnel *t)
{
    const struct linger now = { 1, 0 };
    if (!t)
        return;
    if (t->reset || !t->local_told)
        (void)setsockopt(t->local, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    (void)close(t->local);
    if (t->easy) {
        (void)curl_multi_remove_handle(t->multi, t->easy);
        curl_easy_cleanup(t->easy);
    }
    frames_free(t->frames);
    buf_done(&t->answer);
    buf_done(&t->out);
    buf_done(&t->to_local);
    free(t->path);
    free(t);
}

bool tunnel_is_open(const struct tunnel *t)
{
    return t->state == TUNNEL_OPEN;
}

uint64_t tunnel_sent(const struct tunnel *t)
{
    return t->sent;
}

uint64_t tunnel_received(const struct tunnel *t)
{
    return t->received;
}

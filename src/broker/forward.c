#include "broker/forward.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "broker/flow.h"
#include "base/share.h"
#include "broker/sock.h"
#include "ws/frames.h"

#define LOG_MODULE "forward"
#define FORWARDS_MAX 10000
#define TURN_MAX (1024 * 1024) /* then others get their turn */
#define PING_MS 25000          /* proxies forget a connection that is silent for a minute */
#define ENDING_MS 5000         /* for a client to hear why */
#define TOUCH_MS 5000
#define OUT_MAX (FLOW_PIECE + 4 * (FRAMES_HEAD_MAX + FRAMES_CONTROL_MAX))

enum forward_state {
    FORWARD_OPEN,
    FORWARD_ENDING, /* the client was told why; what it still says is thrown away */
    FORWARD_CLOSED,
};

struct forward {
    struct forwards *all;
    struct forward *next, **at;
    enum forward_state state;
    struct sock client, inside;
    int lease_fd; /* warrend counts the connection until this is closed */
    struct frames *frames;
    struct buf to_client, to_inside;
    bool client_ended, inside_ended; /* will send no more */
    bool inside_told;                /* that the client ended */
    bool inside_lost;                /* it takes no more */
    bool client_told;                /* FORWARD_ENDING: all that it will hear is with the kernel */
    struct deadline deadline;
    struct later later;
    int64_t sent_ms, touched_ms;
    char sandbox[ID_SIZE];
    bool ping_asked; /* an answer is due: to the latest one, as the RFC lets us */
    size_t ping_n;
    char ping[FRAMES_CONTROL_MAX];
};

static char piece[FLOW_PIECE]; /* the loop has one thread */

/* ---- the end ---- */

static void free_forward(struct later *later)
{
    free(container_of(later, struct forward, later));
}

/* What was not passed on in full must not look as if it was: the server inside sees a reset. */
static void reset_inside(struct forward *f)
{
    const struct linger now = { 1, 0 };
    (void)setsockopt(f->inside.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

static void forward_close(struct forward *f)
{
    if (f->state == FORWARD_CLOSED)
        return;
    f->state = FORWARD_CLOSED;
    if (!f->client_ended || !f->inside_ended)
        reset_inside(f);
    loop_no_deadline(f->all->loop, &f->deadline);
    sock_close(&f->client);
    sock_close(&f->inside);
    cleanup_close(&f->lease_fd);
    frames_free(f->frames);
    buf_done(&f->to_client);
    buf_done(&f->to_inside);
    *f->at = f->next;
    if (f->next)
        f->next->at = f->at;
    f->all->n--;
    loop_defer(f->all->loop, &f->later, free_forward);
}

static void on_ending(struct deadline *d)
{
    forward_close(container_of(d, struct forward, deadline));
}

/* No more of this: the client is told, and has a moment to hear it. */
static int begin_ending(struct forward *f, enum frames_code code)
{
    bool said = f->inside_ended;
    f->state = FORWARD_ENDING;
    buf_done(&f->to_inside);
    (void)sock_want(&f->inside, 0);
    loop_deadline(f->all->loop, &f->deadline, clock_mono_ms() + ENDING_MS, on_ending);
    return said ? 0 : frames_put_close(f->frames, code, &f->to_client);
}

/* ---- from the client ---- */

static int take_piece(struct forward *f, const struct frames_piece *p)
{
    switch (p->kind) {
    case FRAMES_DATA: return f->client_ended ? -EPROTO : buf_append(&f->to_inside, p->p, p->n);
    case FRAMES_PING:
        memcpy(f->ping, p->p, p->n);
        f->ping_n = p->n;
        f->ping_asked = true;
        return 0;
    case FRAMES_PONG: return 0;
    case FRAMES_CLOSE:
        if (p->code == FRAMES_BROKEN)
            return -ECONNRESET; /* its own side broke off: so does ours */
        f->client_ended = true;
        return 0;
    }
    return -EPROTO;
}

static int take_bytes(struct forward *f, size_t n)
{
    struct frames_piece p;
    int r;
    frames_feed(f->frames, piece, n);
    while ((r = frames_next(f->frames, &p)) > 0) {
        r = take_piece(f, &p);
        if (r < 0)
            break;
    }
    return r == -EPROTO ? begin_ending(f, FRAMES_WRONG) : r;
}

/* What a server that takes no more has still to say comes first; then it is over. */
static int push_inside(struct forward *f)
{
    if (!f->inside_lost && flow_flush(&f->inside, &f->to_inside) >= 0)
        return 0;
    f->inside_lost = true;
    buf_done(&f->to_inside);
    return f->inside_ended && f->state == FORWARD_OPEN ? begin_ending(f, FRAMES_BROKEN) : 0;
}

/* Below zero: the client is gone. Of one that was told of the end, what it still says is thrown away. */
static int hear_client(struct forward *f)
{
    for (size_t moved = 0; f->to_inside.len == 0 && moved < TURN_MAX;) {
        ssize_t n = sock_read(&f->client, piece, sizeof(piece));
        if (n == -EAGAIN)
            return 0;
        if (n <= 0)
            return -ECONNRESET;
        moved += (size_t)n;
        int r = f->state == FORWARD_OPEN ? take_bytes(f, (size_t)n) : 0;
        if (r >= 0)
            r = push_inside(f);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- from inside ---- */

static int hear_inside(struct forward *f)
{
    for (size_t moved = 0; f->state == FORWARD_OPEN && !f->inside_ended && f->to_client.len == 0 &&
                           moved < TURN_MAX;) {
        ssize_t n = sock_read(&f->inside, piece, sizeof(piece));
        if (n == -EAGAIN)
            return 0;
        if (n < 0 || (n == 0 && f->inside_lost))
            return begin_ending(f, FRAMES_BROKEN);
        moved += (size_t)n;
        f->inside_ended = n == 0;
        int r = n ? frames_put(f->frames, FRAMES_DATA, piece, (size_t)n, &f->to_client)
                  : frames_put_close(f->frames, FRAMES_NORMAL, &f->to_client);
        if (r >= 0)
            r = flow_flush(&f->client, &f->to_client);
        if (r < 0)
            return r;
        f->sent_ms = clock_mono_ms();
    }
    return 0;
}

/* ---- steps ---- */

static int answer_ping(struct forward *f)
{
    if (!f->ping_asked || f->to_client.len || f->inside_ended || f->state != FORWARD_OPEN)
        return 0;
    f->ping_asked = false;
    return frames_put(f->frames, FRAMES_PONG, f->ping, f->ping_n, &f->to_client);
}

static void tell_inside(struct forward *f)
{
    if (f->state != FORWARD_OPEN || !f->client_ended || f->inside_told || f->to_inside.len)
        return;
    f->inside_told = true;
    sock_end(&f->inside);
}

static int step(struct forward *f)
{
    int r = push_inside(f);
    if (r >= 0)
        r = hear_client(f);
    if (r < 0)
        return r;
    tell_inside(f);
    r = flow_flush(&f->client, &f->to_client);
    if (r >= 0)
        r = hear_inside(f);
    if (r >= 0)
        r = answer_ping(f);
    if (r >= 0)
        r = flow_flush(&f->client, &f->to_client);
    if (r < 0)
        return r;
    if (f->state == FORWARD_ENDING && f->to_client.len == 0 && !f->client_told) {
        f->client_told = true;
        sock_end(&f->client);
    }
    bool over = f->client_ended && f->inside_ended && f->to_client.len == 0 && f->inside_told;
    return over ? -ECONNRESET : 0;
}

/* Somebody is at work in the sandbox: it is not idle. */
static void touch(struct forward *f)
{
    struct broker_touch msg = { .type = BROKER_TOUCH };
    int64_t now = clock_mono_ms();
    if (now - f->touched_ms < TOUCH_MS)
        return;
    f->touched_ms = now;
    memcpy(msg.sandbox, f->sandbox, ID_SIZE);
    (void)link_send(f->all->link, &msg, sizeof(msg), -1);
}

static int watch_both(struct forward *f)
{
    uint32_t client = f->to_client.len ? EPOLLOUT : 0, inside = f->to_inside.len ? EPOLLOUT : 0;
    if (f->to_inside.len == 0)
        client |= EPOLLIN;
    if (f->state == FORWARD_OPEN && !f->inside_ended && f->to_client.len == 0)
        inside |= EPOLLIN;
    int r = sock_want(&f->client, client);
    return r < 0 ? r : sock_want(&f->inside, inside);
}

static void forward_step(struct forward *f)
{
    if (f->state == FORWARD_CLOSED)
        return;
    if (step(f) < 0 || watch_both(f) < 0)
        forward_close(f);
}

static void on_client(struct watch *w, uint32_t events)
{
    struct forward *f = container_of(w, struct forward, client.watch);
    touch(f);
    forward_step(f);
}

static void on_inside(struct watch *w, uint32_t events)
{
    struct forward *f = container_of(w, struct forward, inside.watch);
    touch(f);
    forward_step(f);
}

static void on_quiet(struct deadline *d)
{
    struct forward *f = container_of(d, struct forward, deadline);
    int64_t now = clock_mono_ms();
    if (now - f->sent_ms >= PING_MS && f->to_client.len == 0 && !f->inside_ended) {
        f->sent_ms = now;
        if (frames_put(f->frames, FRAMES_PING, NULL, 0, &f->to_client) < 0) {
            forward_close(f);
            return;
        }
    }
    loop_deadline(f->all->loop, &f->deadline, f->sent_ms + PING_MS, on_quiet);
    forward_step(f);
}

/* ---- life ---- */

void forwards_init(struct forwards *all, struct loop *loop, struct link *link)
{
    *all = (struct forwards){ .loop = loop, .link = link, .most = FORWARDS_MAX };
}

void forwards_done(struct forwards *all)
{
    while (all->first)
        forward_close(all->first);
}

static bool has_room(const struct forwards *all, const char *sandbox)
{
    size_t own = 0;
    for (const struct forward *f = all->first; f; f = f->next)
        own += strncmp(f->sandbox, sandbox, ID_LEN) == 0;
    return own < share(all->most, all->n, all->most);
}

void forward_begin(struct forwards *all, const char *sandbox, const int fds[BROKER_FORWARD_FDS])
{
    int client = fds[0], inside = fds[1];
    struct forward *f = has_room(all, sandbox) ? calloc(1, sizeof(*f)) : NULL;
    if (!f || frames_new(FRAMES_SERVER, &f->frames) < 0 || fd_set_nonblock(client, true) < 0 ||
        fd_set_nonblock(inside, true) < 0) {
        log_warn("a forwarded connection is refused sandbox=%.*s connections=%u", ID_LEN, sandbox,
                 all->n);
        fd_close_all(fds, BROKER_FORWARD_FDS);
        if (f)
            frames_free(f->frames);
        free(f);
        return;
    }
    sock_tune(client);
    f->all = all;
    f->lease_fd = fds[2];
    (void)snprintf(f->sandbox, sizeof(f->sandbox), "%.*s", ID_LEN, sandbox);
    sock_init(&f->client, all->loop, client, on_client);
    sock_init(&f->inside, all->loop, inside, on_inside);
    f->to_client = (struct buf)BUF_INIT(OUT_MAX);
    f->to_inside = (struct buf)BUF_INIT(2 * FLOW_PIECE);
    f->sent_ms = f->touched_ms = clock_mono_ms();
    f->next = all->first;
    f->at = &all->first;
    if (f->next)
        f->next->at = &f->next;
    all->first = f;
    all->n++;
    loop_deadline(all->loop, &f->deadline, f->sent_ms + PING_MS, on_quiet);
    forward_step(f);
}

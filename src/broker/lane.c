#include "broker/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE (64 * 1024)
#define TURN_MAX (1024 * 1024) /* then others get their turn */

void lane_init(struct lane *l, size_t early_max)
{
    *l = (struct lane){ .pipe = { -1, -1 }, .may = SIZE_MAX, .early = BUF_INIT(early_max) };
}

static void close_pipe(const int pipe[2])
{
    (void)close(pipe[0]);
    (void)close(pipe[1]);
}

void lane_shelf_done(struct lane_shelf *s)
{
    while (s->n)
        close_pipe(s->pipes[--s->n]);
}

static int take_pipe(struct lane *l, struct lane_shelf *s)
{
    if (l->open)
        return 0;
    if (s->n) {
        s->n--;
        l->pipe[0] = s->pipes[s->n][0];
        l->pipe[1] = s->pipes[s->n][1];
    } else if (pipe2(l->pipe, O_NONBLOCK | O_CLOEXEC) < 0) {
        return -errno;
    }
    l->open = true;
    return 0;
}

/* Only an empty one is fit for somebody else. */
static void give_pipe(struct lane *l, struct lane_shelf *s)
{
    if (!l->open)
        return;
    if (l->inside == 0 && s->n < LANE_SHELF) {
        s->pipes[s->n][0] = l->pipe[0];
        s->pipes[s->n][1] = l->pipe[1];
        s->n++;
    } else {
        close_pipe(l->pipe);
    }
    l->open = false;
}

void lane_done(struct lane *l, struct lane_shelf *s)
{
    give_pipe(l, s);
    buf_done(&l->early);
}

int lane_push(struct lane *l, int to)
{
    size_t done = 0;
    while (done < l->early.len) {
        ssize_t n =
            send(to, l->early.data + done, l->early.len - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            return -errno;
        if (n < 0)
            break;
        done += (size_t)n;
    }
    l->passed += done;
    bool all = done == l->early.len;
    if (all)
        buf_done(&l->early);
    else
        buf_drop_front(&l->early, done);
    return all;
}

static int push_pipe(struct lane *l, int to)
{
    while (l->inside) {
        ssize_t n =
            splice(l->pipe[0], NULL, to, NULL, l->inside, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        l->inside -= (size_t)n;
        l->passed += (uint64_t)n;
    }
    return 1;
}

/* Bytes that came, 0 at the end, -EAGAIN. */
static ssize_t pull(struct lane *l, struct lane_shelf *s, int from)
{
    size_t most = l->may < PIECE ? l->may : PIECE;
    int r = take_pipe(l, s);
    if (r < 0)
        return r;
    ssize_t n;
    do
        n = splice(from, NULL, l->pipe[1], NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        l->inside += (size_t)n;
        l->may -= (size_t)n;
    }
    return n < 0 ? -errno : n;
}

static enum lane_state run(struct lane *l, struct lane_shelf *s, int from, int to)
{
    for (size_t moved = 0;;) {
        int r = l->early.len ? lane_push(l, to) : push_pipe(l, to);
        if (r <= 0)
            return r < 0 ? LANE_LOST : LANE_WAIT_TO;
        if (l->ended)
            return shutdown(to, SHUT_WR) < 0 && errno != ENOTCONN ? LANE_LOST : LANE_DONE;
        if (moved >= TURN_MAX)
            return LANE_WAIT_FROM;
        if (l->may == 0)
            return LANE_WAIT_TURN;
        ssize_t n = pull(l, s, from);
        if (n == -EAGAIN)
            return LANE_WAIT_FROM;
        if (n < 0)
            return LANE_LOST;
        l->ended = n == 0;
        moved += (size_t)n;
    }
}

enum lane_state lane_run(struct lane *l, struct lane_shelf *s, int from, int to)
{
    enum lane_state state = run(l, s, from, to);
    if (l->inside == 0)
        give_pipe(l, s);
    return state;
}

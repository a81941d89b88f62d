#include "cli/sink.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "cli/xmem.h"

#define SINK_MAX \
    (32u << 20) /* one round of the loop brings 64 KiB; escapes make it at most 4 times that */

void sink_init(struct sink *s, bool own_terminal)
{
    *s = (struct sink){ .data = BUF_INIT(SINK_MAX) };
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        s->cleaned[fd] = !own_terminal && isatty(fd);
}

void sink_done(struct sink *s)
{
    buf_done(&s->data);
    free(s->pieces);
    s->pieces = NULL;
    s->n = s->cap = 0;
}

static void note(struct sink *s, int fd, size_t len)
{
    if (len == 0)
        return;
    if (s->n > 0 && s->pieces[s->n - 1].fd == fd) {
        s->pieces[s->n - 1].len += len;
        return;
    }
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 16;
        s->pieces = xrealloc(s->pieces, s->cap, sizeof(*s->pieces));
    }
    s->pieces[s->n++] = (struct sink_piece){ .fd = fd, .len = len };
}

int sink_put(struct sink *s, int fd, const char *p, size_t n)
{
    size_t before = s->data.len;
    int r = s->cleaned[fd] ? sanitise(&s->clean[fd], p, n, &s->data) : buf_append(&s->data, p, n);
    note(s, fd, s->data.len - before);
    return r;
}

static void drop_written(struct sink *s, size_t bytes, size_t pieces)
{
    if (bytes >= s->data.len)
        buf_clear(&s->data);
    else
        buf_drop_front(&s->data, bytes);
    s->n -= pieces;
    memmove(s->pieces, s->pieces + pieces, s->n * sizeof(*s->pieces));
}

int sink_flush(struct sink *s)
{
    size_t at = 0, i = 0;
    int r = 0;
    while (r == 0 && i < s->n) {
        struct sink_piece *piece = &s->pieces[i];
        ssize_t w = write(piece->fd, s->data.data + at, piece->len);
        if (w < 0 && errno == EAGAIN) { /* someone we share it with made it non-blocking */
            struct pollfd p = { .fd = piece->fd, .events = POLLOUT };
            if (poll(&p, 1, -1) < 0)
                r = -errno;
        } else if (w < 0) {
            r = -errno;
        } else {
            at += (size_t)w;
            piece->len -= (size_t)w;
            i += piece->len == 0;
        }
    }
    if (r < 0 && r != -EINTR)
        drop_written(s, s->data.len, s->n);
    else if (at > 0 || i > 0)
        drop_written(s, at, i);
    return r;
}

int sink_end(struct sink *s)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        size_t before = s->data.len;
        if (s->cleaned[fd])
            (void)sanitise_end(&s->clean[fd], &s->data);
        note(s, fd, s->data.len - before);
    }
    int r;
    do {
        r = sink_flush(s);
    } while (r == -EINTR);
    return r;
}

/* conn_fuzz - requests on one connection, one after another: the same bytes must be read the
 * same however they arrive. The first byte of the input says where the rest is cut in two. */
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <errno.h>
#include <unistd.h>

#include "front/http/conn.h"

#define INPUT_MAX (48 * 1024) /* fits into a socket */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t add(uint64_t hash, const void *p, size_t n)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ c[i]) * UINT64_C(1099511628211);
    return hash;
}

struct reading {
    struct conn *c;
    bool in_body;
    int result; /* below zero: the connection is over */
    uint64_t seen;
};

static void note_head(struct reading *r)
{
    const struct head *h = conn_head(r->c);
    r->seen = add(r->seen, h->method.p, strlen(h->method.p) + 1);
    r->seen = add(r->seen, h->target.p, strlen(h->target.p) + 1);
    for (size_t i = 0; i < h->nfields; i++) {
        if (strlen(h->fields[i].name.p) != h->fields[i].name.n ||
            strlen(h->fields[i].value.p) != h->fields[i].value.n)
            __builtin_trap();
        r->seen = add(r->seen, h->fields[i].name.p, h->fields[i].name.n + 1);
        r->seen = add(r->seen, h->fields[i].value.p, h->fields[i].value.n + 1);
    }
}

/* Read requests as far as the bytes go. */
static void go_on(struct reading *r)
{
    while (r->result >= 0) {
        const char *p = NULL;
        size_t n = 0;
        int k = r->in_body ? conn_read_body(r->c, 0, &p, &n) : conn_read_head(r->c, 0);
        if (k == -ETIMEDOUT)
            return;
        if (r->in_body && k >= 0) {
            r->seen = add(r->seen, p, n);
            r->in_body = k == 0;
        } else if (k == 1) {
            note_head(r);
            r->in_body = true;
        } else {
            r->result = k ? k : -EPIPE;
        }
    }
}

static struct reading read_all(const uint8_t *p, size_t n, size_t cut)
{
    struct reading r = { 0 };
    const struct sockaddr nobody = { .sa_family = AF_UNIX };
    const int room = 256 * 1024;
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
        __builtin_trap();
    (void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    r.c = conn_new(fds[0], &nobody, sizeof(nobody));
    if (!r.c || send(fds[1], p, cut, MSG_NOSIGNAL) != (ssize_t)cut)
        __builtin_trap();
    go_on(&r);
    if (send(fds[1], p + cut, n - cut, MSG_NOSIGNAL) != (ssize_t)(n - cut))
        __builtin_trap();
    (void)shutdown(fds[1], SHUT_WR);
    go_on(&r);
    conn_free(r.c);
    (void)close(fds[1]);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > INPUT_MAX)
        return 0;
    size_t cut = (size - 1) * data[0] / 255;
    struct reading whole = read_all(data + 1, size - 1, size - 1);
    struct reading cut_once = read_all(data + 1, size - 1, cut);
    if (whole.result >= 0 || whole.result != cut_once.result || whole.seen != cut_once.seen)
        __builtin_trap();
    return 0;
}
